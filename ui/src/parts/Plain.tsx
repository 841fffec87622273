import { Button, Tooltip } from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { type ReactNode, useState } from 'react'
import { useSearchParams } from 'react-router'
import type { Nouns, Query } from '../api/client'
import { useList } from '../api/queries'
import { Ask, dryOf } from './Ask'
import { Loaded } from './Failure'
import { type Column, type Sort, VirtualTable } from './VirtualTable'

// useChosen is which one of a list is open in its form, as the address of the page says it: '' is a new one, null is none.
export function useChosen(param: string): [string | null, (name?: string) => void] {
  const [params, setParams] = useSearchParams()
  const open = (name?: string) => {
    const next = new URLSearchParams(params)
    if (name === undefined) next.delete(param)
    else next.set(param, name)
    setParams(next)
  }
  return [params.get(param), open]
}

interface Action {
  text: string
  of?: string // whose action it is, for screen readers
  not?: string | undefined // why it cannot be done now
  act: () => void
  variant?: 'primary' | 'secondary' | 'link'
}

// Act is a button that says why it does nothing.
export function Act({ text, of, not, act, variant = 'link' }: Action) {
  const button = (
    <Button
      variant={variant}
      isInline={variant === 'link'}
      {...(of && { 'aria-label': `${text} ${of}` })}
      isAriaDisabled={not !== undefined}
      onClick={() => not === undefined && act()}
    >
      {text}
    </Button>
  )
  return not ? <Tooltip content={not}>{button}</Tooltip> : button
}

// Add is the button above a list that opens the form of a new one.
export function Add(p: Pick<Action, 'text' | 'not' | 'act' | 'variant'>) {
  return (
    <p style={{ marginBlock: '0.5rem' }}>
      <Act variant="primary" {...p} />
    </p>
  )
}

// Removal asks before one goes.
interface Removal {
  title: string
  verb?: string // Delete
  cli?: string
  not?: string | undefined
}

interface Listed<N extends keyof Nouns, T = Nouns[N]> {
  noun: N
  query?: Query
  label: string
  columns: Column<T>[]
  keyOf: (one: T) => string // as the API names it
  of?: (one: T) => string // whose actions they are, for screen readers; its key
  acts: (one: T) => Omit<Action, 'of' | 'variant'>[]
  removal: (one: T) => Removal
  nothing: ReactNode // in place of a table without rows
  shown?: (all: T[]) => T[] // the rows, in their order; all of them
  about?: (rows: T[], all: T[]) => ReactNode // above the table
  isLong?: boolean // there may be thousands
  sort?: Sort
  onSort?: (s: Sort) => void
}

// Plain is the list of a plain noun: a table, what can be done with each row, and the question before one goes.
export function Plain<N extends keyof Nouns>(p: Listed<N>) {
  type T = Nouns[N]
  const { noun, keyOf, of = keyOf } = p
  const list = useList(noun, p.query)
  const [gone, remove] = useState<T>()
  const columns: Column<T>[] = [
    ...p.columns,
    {
      key: 'do',
      name: 'Actions',
      min: 10,
      cell: (one) => {
        const { verb = 'Delete', not } = p.removal(one)
        return (
          <div style={{ display: 'flex', gap: '0.75rem', flexWrap: 'wrap' }}>
            {[...p.acts(one), { text: verb, not, act: () => remove(one) }].map((a) => (
              <Act key={a.text} of={of(one)} {...a} />
            ))}
          </div>
        )
      },
    },
  ]
  return (
    <>
      <Loaded query={list}>
        {(all) => {
          const rows = p.shown ? p.shown(all) : all
          if (rows.length === 0) return p.nothing
          return (
            <>
              {p.about?.(rows, all)}
              {p.isLong ? (
                <VirtualTable {...p} columns={columns} rows={rows} height="28rem" />
              ) : (
                <Short label={p.label} columns={columns} rows={rows} keyOf={keyOf} />
              )}
            </>
          )
        }}
      </Loaded>
      {gone && (
        <AskRemoval
          {...p.removal(gone)}
          path={`/${noun}/${encodeURIComponent(keyOf(gone))}`}
          one={gone}
          close={() => remove(undefined)}
        />
      )}
    </>
  )
}

function Short<T>({
  label,
  columns,
  rows,
  keyOf,
}: {
  label: string
  columns: Column<T>[]
  rows: T[]
  keyOf: (one: T) => string
}) {
  return (
    <Table aria-label={label} variant="compact">
      <Thead>
        <Tr>
          {columns.map((c) =>
            c.key === 'do' ? <Th key={c.key} screenReaderText={c.name} /> : <Th key={c.key}>{c.name}</Th>,
          )}
        </Tr>
      </Thead>
      <Tbody>
        {rows.map((one) => (
          <Tr key={keyOf(one)}>
            {columns.map((c) => (
              <Td key={c.key} dataLabel={c.name}>
                {/* as wide as its words, also where a narrow window stretches what is in a cell */}
                <div>{c.cell(one)}</div>
              </Td>
            ))}
          </Tr>
        ))}
      </Tbody>
    </Table>
  )
}

function AskRemoval({
  title,
  verb = 'Delete',
  cli,
  path,
  one,
  close,
}: Removal & { path: string; one: object; close: () => void }) {
  const version = 'version' in one ? Number(one.version) : undefined
  const call = { method: 'DELETE', path, version } as const
  return <Ask title={title} verb={verb} foresees={dryOf(call)} call={call} {...(cli && { cli })} close={close} />
}
