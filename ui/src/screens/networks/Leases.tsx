import { Button, Label, SearchInput, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core'
import { useMemo, useState } from 'react'
import { Link, useSearchParams } from 'react-router'
import { useMayNot } from '../../api/me'
import { useList } from '../../api/queries'
import { useRows } from '../../api/rows'
import { useLive } from '../../api/useLive'
import { Ask, dryOf } from '../../parts/Ask'
import { shell } from '../../parts/cli'
import { Loaded, Nothing } from '../../parts/Failure'
import { type Column, type Sort, VirtualTable } from '../../parts/VirtualTable'
import { When } from '../../parts/When'
import { ReservationForm } from './Reservations'
import { addressKey, hostname, type Lease, stateOf } from './words'

// Leases lists the leases of a subnet, or those addresses of it that somebody else uses.
export function Leases({ subnet, onlyConflicts }: { subnet: string; onlyConflicts?: boolean }) {
  const leases = useList('leases', { subnet })
  const { rows: hosts } = useRows(useLive())
  const [params, setParams] = useSearchParams()
  const search = (params.get('q') ?? '').toLowerCase()
  const [sort, setSort] = useState<Sort>({ key: 'address' })
  const [reserved, reserve] = useState<Lease>()
  const [forgotten, forget] = useState<Lease>()
  const not = useMayNot('admin') // the host of an address may be in a pool
  const owner = useMemo(() => {
    const m = new Map<string, string>()
    for (const h of hosts) for (const mac of h.macs ?? []) m.set(mac, h.name)
    return m
  }, [hosts])
  const columns: Column<Lease>[] = [
    { key: 'address', name: 'Address', cell: (l) => l.address, sort: (l) => addressKey(l.address), min: 7 },
    { key: 'state', name: 'State', cell: (l) => <StateOfLease state={stateOf(l)} />, sort: (l) => stateOf(l), min: 6 },
    { key: 'mac', name: 'MAC', cell: (l) => l.mac, sort: (l) => l.mac, min: 9 },
    {
      key: 'host',
      name: 'Host',
      cell: (l) => {
        const h = owner.get(l.mac)
        return h ? <Link to={`/hosts/${h}`}>{h}</Link> : ''
      },
      sort: (l) => owner.get(l.mac) ?? '',
      min: 9,
    },
    {
      key: 'port',
      name: 'Switch port',
      cell: (l) => l.port ?? '',
      sort: (l) => l.port ?? '',
    },
    {
      key: 'hostname',
      name: 'Calls itself',
      cell: (l) => l.hostname ?? '',
      sort: (l) => l.hostname ?? '',
      min: 7,
    },
    { key: 'for', name: 'For', cell: (l) => (l.isBoot ? 'boot' : 'system'), sort: (l) => (l.isBoot ? 0 : 1), min: 4 },
    {
      key: 'until',
      name: 'Until',
      cell: (l) => <When at={l.expiresAt} />,
      sort: (l) => Date.parse(l.expiresAt),
      min: 6,
    },
    {
      key: 'do',
      name: 'Actions',
      min: 8,
      cell: (l) => (
        <>
          <Button
            variant="link"
            isInline
            isAriaDisabled={!!not}
            title={not}
            aria-label={`Reserve ${l.address}`}
            onClick={() => not || reserve(l)}
          >
            Reserve
          </Button>{' '}
          <Button
            variant="link"
            isInline
            isAriaDisabled={!!not}
            title={not}
            aria-label={`Forget ${l.address}`}
            onClick={() => not || forget(l)}
          >
            Forget
          </Button>
        </>
      ),
    },
  ]
  return (
    <>
      <Toolbar inset={{ default: 'insetNone' }} style={{ marginBlockStart: '0.5rem' }}>
        <ToolbarContent>
          <ToolbarItem style={{ flexGrow: 1 }}>
            <SearchInput
              aria-label="Search leases"
              placeholder="Part of an address, MAC, host or name"
              value={params.get('q') ?? ''}
              onChange={(_, v) =>
                setParams(
                  (old) => {
                    if (v) old.set('q', v)
                    else old.delete('q')
                    return old
                  },
                  { replace: true },
                )
              }
            />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <Loaded query={leases}>
        {(all) => {
          const by = columns.find((c) => c.key === sort.key)?.sort ?? ((l: Lease) => addressKey(l.address))
          const rows = all
            .filter((l) => !onlyConflicts || stateOf(l) === 'conflict')
            .filter((l) =>
              [l.address, l.mac, l.hostname ?? '', owner.get(l.mac) ?? '', stateOf(l)].some((t) =>
                t.toLowerCase().includes(search),
              ),
            )
            .sort((a, b) => {
              const [x, y] = [by(a), by(b)]
              return (x < y ? -1 : x > y ? 1 : 0) * (sort.down ? -1 : 1)
            })
          if (rows.length === 0)
            return onlyConflicts ? (
              <Nothing title="No address is in conflict">
                Slipway sets an address aside for a while if somebody else uses it, and opens an issue.
              </Nothing>
            ) : (
              <Nothing title={search ? 'No lease matches' : 'No address was given to anybody yet'}>
                {!search && 'A machine that boots on this network gets one, if the mode allows it.'}
              </Nothing>
            )
          return (
            <>
              <p aria-live="polite">
                {rows.length} of {all.length} leases
              </p>
              <VirtualTable
                label={onlyConflicts ? 'Conflicts' : 'Leases'}
                columns={columns}
                rows={rows}
                keyOf={(l) => l.address}
                sort={sort}
                onSort={setSort}
                height="28rem"
              />
            </>
          )
        }}
      </Loaded>
      {reserved && (
        <ReservationForm
          subnet={subnet}
          given={{
            address: reserved.address,
            mac: reserved.mac,
            hostname: owner.get(reserved.mac) ?? hostname(reserved.hostname),
          }}
          close={() => reserve(undefined)}
        />
      )}
      {forgotten && (
        <Ask
          title={`Forget the lease of ${forgotten.address}?`}
          verb="Forget"
          foresees={dryOf({ method: 'DELETE', path: `/leases/${forgotten.address}` })}
          call={{ method: 'DELETE', path: `/leases/${forgotten.address}` }}
          cli={`slipway lease delete ${shell(forgotten.address)}`}
          close={() => forget(undefined)}
        />
      )}
    </>
  )
}

function StateOfLease({ state }: { state: string }) {
  const color = state === 'leased' ? 'green' : state === 'conflict' ? 'red' : 'grey'
  const glyph = state === 'leased' ? '●' : state === 'conflict' ? '✕' : '○'
  return (
    <Label color={color} isCompact>
      <span aria-hidden>{glyph}</span> {state}
    </Label>
  )
}
