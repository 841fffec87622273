import { Alert, Label, Title } from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useQuery } from '@tanstack/react-query'
import { ask, type Host, type Schemas } from '../../api/client'
import { useOne } from '../../api/queries'
import { bytesOf } from '../../parts/bytes'
import { Command } from '../../parts/Command'
import { Facts } from '../../parts/Facts'
import { Loaded, Nothing } from '../../parts/Failure'
import { When } from '../../parts/When'
import { writeDisk } from './EditHost'

interface Certificate {
  disk: Schemas['Disk']
  mode: string
  method: string
  bytes: number
  verifiedN: number
  seconds: number
  isKept?: boolean
  error?: string
}

// Wipe is the report of one; the API describes the body of no kind of report.
type Wipe = Omit<Schemas['InventoryReport'], 'body'> & { body: Certificate[] | null }

const isWell = (health: string | undefined) => !health || health === 'ok'

// Storage shows the disks of a host, which of them is written to and why, and the wipes they went through.
export function Storage({ host: h }: { host: Host }) {
  const disks = useOne('hosts', h.name, '/disks')
  const wipes = useQuery({
    queryKey: ['hosts', h.name, 'wipes'],
    queryFn: async () =>
      (await ask<{ items: Wipe[] }>('GET', `/hosts/${encodeURIComponent(h.name)}/reports?kind=wipe`)).items,
  })
  return (
    <>
      <Facts
        rows={[
          ['Root disk', writeDisk(h.rootDisk) || 'chosen: the smallest of the fastest kind'],
          ['Disks to keep', (h.keepDisks ?? []).map(writeDisk).join('; ') || 'none'],
          ['Written to', h.isDirty ? 'yes: it is wiped before another machine gets it' : 'not since it was last wiped'],
        ]}
      />
      <Loaded query={disks}>
        {(d) => (
          <>
            {d.problem && (
              <Alert isInline variant="warning" title={`No disk can be chosen: ${d.problem}`} component="h2">
                {d.hint}
              </Alert>
            )}
            {d.items.length > 0 && (
              <Table aria-label="Disks" variant="compact">
                <Thead>
                  <Tr>
                    {['Disk', 'Use', 'Size', 'Model', 'Serial', 'Kind', 'On it', 'Health'].map((t) => (
                      <Th key={t}>{t}</Th>
                    ))}
                  </Tr>
                </Thead>
                <Tbody>
                  {d.items.map(({ disk: x, ...of }) => (
                    <Tr key={`${x.name} ${x.serial}`}>
                      <Td dataLabel="Disk">{x.name}</Td>
                      <Td dataLabel="Use">
                        {of.isRoot && (
                          <Label isCompact color="blue">
                            root
                          </Label>
                        )}
                        {of.isKept && (
                          <Label isCompact color="green">
                            kept
                          </Label>
                        )}{' '}
                        {of.reason}
                      </Td>
                      <Td dataLabel="Size">{bytesOf(x.sizeBytes)}</Td>
                      <Td dataLabel="Model">{[x.vendor, x.model].filter(Boolean).join(' ') || '–'}</Td>
                      <Td dataLabel="Serial">{x.serial || '–'}</Td>
                      <Td dataLabel="Kind">
                        {[
                          x.transport,
                          x.isRotational ? 'rotating' : 'solid state',
                          x.isRemovable && 'removable',
                          x.isReadOnly && 'read-only',
                        ]
                          .filter(Boolean)
                          .join(', ')}
                      </Td>
                      <Td dataLabel="On it">{x.contents || '–'}</Td>
                      <Td dataLabel="Health">
                        {isWell(x.health) ? x.health || '–' : <Label color="red">{x.health}</Label>}
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            )}
          </>
        )}
      </Loaded>
      <Title headingLevel="h2">Wipe certificates</Title>
      <Loaded query={wipes}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="It was not wiped yet">A wipe leaves a permanent certificate for each disk here.</Nothing>
          ) : (
            <Table aria-label="Wipe certificates" variant="compact">
              <Thead>
                <Tr>
                  {['When', 'Disk', 'Serial', 'Mode', 'How', 'Bytes', 'Read back', 'Result'].map((t) => (
                    <Th key={t}>{t}</Th>
                  ))}
                </Tr>
              </Thead>
              <Tbody>
                {all.flatMap((r) =>
                  (r.body ?? []).map((c) => (
                    <Tr key={`${r.id} ${c.disk.name}`}>
                      <Td dataLabel="When">
                        <When at={r.createdAt} />
                      </Td>
                      <Td dataLabel="Disk">{c.disk.name}</Td>
                      <Td dataLabel="Serial">{c.disk.serial || '–'}</Td>
                      <Td dataLabel="Mode">{c.mode}</Td>
                      <Td dataLabel="How">{c.method}</Td>
                      <Td dataLabel="Bytes">{bytesOf(c.bytes)}</Td>
                      <Td dataLabel="Read back">{c.verifiedN} samples</Td>
                      <Td dataLabel="Result">{c.error ? `not clean: ${c.error}` : c.isKept ? 'kept' : 'clean'}</Td>
                    </Tr>
                  )),
                )}
              </Tbody>
            </Table>
          )
        }
      </Loaded>
      <Command
        cli={`slipway host set ${h.name} --root-serial SERIAL`}
        call={{ method: 'GET', path: `/hosts/${encodeURIComponent(h.name)}/disks` }}
      />
    </>
  )
}
