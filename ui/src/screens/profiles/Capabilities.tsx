import { ExpandableSection, Label, SearchInput } from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, must } from '../../api/client'
import { Failure } from '../../parts/Failure'

const looks = { lossless: 'green', emulated: 'teal', lossy: 'orange', unsupported: 'red' } as const
const said = { lossless: 'yes', emulated: 'by other means', lossy: 'in part', unsupported: 'no' }

// Capabilities says what the image's format can carry, before somebody writes what it cannot.
export function Capabilities({ image, format }: { image: string; format: string }) {
  const [isOpen, setOpen] = useState(false)
  const [sought, setSought] = useState('')
  const table = useQuery({
    queryKey: ['capabilities', image],
    queryFn: () => must(api.GET('/api/v1/capabilities', { params: { query: { image } } })),
    enabled: isOpen && image !== '',
  })
  const read = (table.data?.formats ?? []).filter((f) => f.isRead)
  const column = read.find((f) => f.format === format) ?? read[0]
  const rows = (table.data?.fields ?? []).filter((f) =>
    `${f.path} ${f.about}`.toLowerCase().includes(sought.toLowerCase()),
  )
  return (
    <ExpandableSection
      toggleText="Parts that this image’s format supports"
      isExpanded={isOpen}
      onToggle={(_, v) => setOpen(v)}
    >
      {!image && <p>Choose an image first.</p>}
      {table.error && <Failure error={table.error} />}
      {table.data && !column && (
        <p>This image reads no configuration: what is written here does not reach its hosts.</p>
      )}
      {column && (
        <>
          <p>
            {table.data?.target} reads {column.format} {column.tool}.
          </p>
          <SearchInput
            aria-label="Search parts"
            placeholder="Search"
            value={sought}
            onChange={(_, v) => setSought(v)}
            onClear={() => setSought('')}
          />
          <Table aria-label="Parts that the format supports" variant="compact">
            <Thead>
              <Tr>
                <Th>Part</Th>
                <Th>Carried</Th>
                <Th>How, or what to use instead</Th>
              </Tr>
            </Thead>
            <Tbody>
              {rows.map((f) => {
                const cell = column.cells[f.path]
                return (
                  <Tr key={f.path}>
                    <Td dataLabel="Part">
                      {f.about} <code>{f.path}</code>
                    </Td>
                    <Td dataLabel="Carried">
                      {cell && (
                        <Label isCompact color={looks[cell.support]}>
                          {said[cell.support]}
                        </Label>
                      )}
                    </Td>
                    <Td dataLabel="How, or what to use instead">{cell?.note}</Td>
                  </Tr>
                )
              })}
            </Tbody>
          </Table>
        </>
      )}
    </ExpandableSection>
  )
}
