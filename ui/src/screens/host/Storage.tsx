import { Alert, Label, Title } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { ask, type Host, type Schemas } from '../../api/client'
import { useOne } from '../../api/queries'
import { bytesOf } from '../../parts/bytes'
import { Command } from '../../parts/Command'
import { Facts } from '../../parts/Facts'
import { Loaded, Nothing } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
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
          ['Written to', h.isDirty ? 'yes: it is wiped before another machine gets it' : 'not since the last wipe'],
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
              <Rows
                label="Disks"
                rows={d.items}
                keyOf={({ disk: x }) => `${x.name} ${x.serial}`}
                columns={[
                  ['Disk', ({ disk: x }) => x.name],
                  [
                    'Use',
                    ({ disk: x, ...of }) => (
                      <>
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
                      </>
                    ),
                  ],
                  ['Size', ({ disk: x }) => bytesOf(x.sizeBytes)],
                  ['Model', ({ disk: x }) => [x.vendor, x.model].filter(Boolean).join(' ') || '–'],
                  ['Serial', ({ disk: x }) => x.serial || '–'],
                  [
                    'Kind',
                    ({ disk: x }) =>
                      [
                        x.transport,
                        x.isRotational ? 'rotating' : 'solid state',
                        x.isRemovable && 'removable',
                        x.isReadOnly && 'read-only',
                      ]
                        .filter(Boolean)
                        .join(', '),
                  ],
                  ['On it', ({ disk: x }) => x.contents || '–'],
                  [
                    'Health',
                    ({ disk: x }) => (isWell(x.health) ? x.health || '–' : <Label color="red">{x.health}</Label>),
                  ],
                ]}
              />
            )}
          </>
        )}
      </Loaded>
      <Title headingLevel="h2">Wipe certificates</Title>
      <Loaded query={wipes}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="No wipe yet">After a wipe, the permanent certificate of each disk is here.</Nothing>
          ) : (
            <Rows
              label="Wipe certificates"
              rows={all.flatMap((r) => (r.body ?? []).map((c) => ({ ...c, of: r })))}
              keyOf={(c) => `${c.of.id} ${c.disk.name}`}
              columns={[
                ['When', (c) => <When at={c.of.createdAt} />],
                ['Disk', (c) => c.disk.name],
                ['Serial', (c) => c.disk.serial || '–'],
                ['Mode', (c) => c.mode],
                ['How', (c) => c.method],
                ['Bytes', (c) => bytesOf(c.bytes)],
                ['Read back', (c) => `${c.verifiedN} samples`],
                ['Result', (c) => (c.error ? `not clean: ${c.error}` : c.isKept ? 'kept' : 'clean')],
              ]}
            />
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
