import { ExpandableSection, Label, SearchInput } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, must } from '../../api/client'
import { Failure } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'

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
      {table.data && !column && <p>This image reads no configuration: hosts do not get the text.</p>}
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
          <Rows
            label="Parts that the format supports"
            rows={rows.map((f) => ({ ...f, cell: column.cells[f.path] }))}
            keyOf={(f) => f.path}
            columns={[
              [
                'Part',
                (f) => (
                  <>
                    {f.about} <code>{f.path}</code>
                  </>
                ),
              ],
              [
                'Carried',
                ({ cell }) =>
                  cell && (
                    <Label isCompact color={looks[cell.support]}>
                      {said[cell.support]}
                    </Label>
                  ),
              ],
              ['How, or what to use instead', ({ cell }) => cell?.note],
            ]}
          />
        </>
      )}
    </ExpandableSection>
  )
}
