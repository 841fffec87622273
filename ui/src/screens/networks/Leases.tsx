import { Label, SearchInput, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core'
import { useMemo, useState } from 'react'
import { Link, useSearchParams } from 'react-router'
import { useMayNot } from '../../api/me'
import { nouns } from '../../api/nouns'
import { useRows } from '../../api/rows'
import { useLive } from '../../api/useLive'
import { Nothing } from '../../parts/Failure'
import { NounList } from '../../parts/NounList'
import type { Column, Sort } from '../../parts/VirtualTable'
import { ReservationForm } from './Reservations'
import { addressKey, hostname, type Lease, stateOf } from './words'

// Leases lists the leases of a subnet, or those addresses of it that somebody else uses.
export function Leases({ subnet, onlyConflicts }: { subnet: string; onlyConflicts?: boolean }) {
  const { rows: hosts } = useRows(useLive())
  const [params, setParams] = useSearchParams()
  const search = (params.get('q') ?? '').toLowerCase()
  const [sort, setSort] = useState<Sort>({ key: 'Address' })
  const [reserved, reserve] = useState<Lease>()
  const not = useMayNot('admin') // the host of an address may be in a pool
  const owner = useMemo(() => {
    const m = new Map<string, string>()
    for (const h of hosts) for (const mac of h.macs ?? []) m.set(mac, h.name)
    return m
  }, [hosts])
  const columns: Record<string, Partial<Column<Lease>>> = {
    Address: { sort: (l) => addressKey(l.address) },
    State: { cell: (l) => <StateOfLease state={stateOf(l)} />, sort: stateOf },
    MAC: { sort: (l) => l.mac },
    Host: {
      cell: (l) => {
        const h = owner.get(l.mac)
        return h ? <Link to={`/hosts/${h}`}>{h}</Link> : ''
      },
      sort: (l) => owner.get(l.mac) ?? '',
    },
    'Switch port': { sort: (l) => l.port ?? '' },
    'Host name': { sort: (l) => l.hostname ?? '' },
    For: { cell: (l) => (l.isBoot ? 'boot' : 'system'), sort: (l) => (l.isBoot ? 0 : 1) },
    Until: { sort: (l) => Date.parse(l.expiresAt) },
  }
  const by = columns[sort.key]?.sort ?? ((l: Lease) => addressKey(l.address))
  const shown = (all: Lease[]) =>
    all
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
      <NounList
        d={nouns.leases}
        query={{ subnet }}
        {...(onlyConflicts && { label: 'Conflicts' })}
        isLong
        columns={columns}
        acts={(l) => [{ text: 'Reserve', not, act: () => reserve(l) }]}
        shown={shown}
        about={(rows, all) => (
          <p aria-live="polite">
            {rows.length} of {all.length} leases
          </p>
        )}
        nothing={
          onlyConflicts ? (
            <Nothing title="No address is in conflict">
              Slipway sets an address aside for a while if somebody else uses it, and opens an issue.
            </Nothing>
          ) : (
            <Nothing title={search ? 'No lease matches' : 'There is no lease yet'}>
              {!search && 'A machine that boots on this network gets a lease, if the mode allows that.'}
            </Nothing>
          )
        }
        sort={sort}
        onSort={setSort}
      />
      {reserved && (
        <ReservationForm
          given={{
            subnet,
            address: reserved.address,
            mac: reserved.mac,
            hostname: owner.get(reserved.mac) ?? hostname(reserved.hostname),
          }}
          close={() => reserve(undefined)}
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
