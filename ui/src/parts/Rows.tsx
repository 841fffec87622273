import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import type { CSSProperties, ReactNode } from 'react'

interface More {
  width?: 20 | 25 | 30 | 35 | 50 // percent
  modifier?: 'nowrap' | 'breakWord'
  className?: string
  style?: CSSProperties
}

export type Cells<T> = [name: string, cell: (row: T) => ReactNode, more?: More]

interface Shown<T> {
  label: string
  rows: readonly T[]
  keyOf: (row: T, at: number) => string | number
  columns: Cells<T>[]
}

// Rows is a table of a few rows. VirtualTable is for many.
export function Rows<T>({ label, rows, keyOf, columns }: Shown<T>) {
  return (
    <Table aria-label={label} variant="compact">
      <Thead>
        <Tr>
          {columns.map(([name, , { width } = {}]) =>
            name === 'Actions' ? (
              <Th key={name} screenReaderText={name} />
            ) : (
              <Th key={name} {...(width && { width })}>
                {name}
              </Th>
            ),
          )}
        </Tr>
      </Thead>
      <Tbody>
        {rows.map((row, at) => (
          <Tr key={keyOf(row, at)}>
            {columns.map(([name, cell, { width: _, ...more } = {}]) => (
              <Td key={name} dataLabel={name} {...more}>
                {cell(row)}
              </Td>
            ))}
          </Tr>
        ))}
      </Tbody>
    </Table>
  )
}
