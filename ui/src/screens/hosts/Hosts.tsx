import { SearchInput, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useMemo, useRef } from 'react'
import { Link, useSearchParams } from 'react-router'
import type { Host } from '../../api/client'
import { useList } from '../../api/queries'
import { Loaded, Nothing } from '../../parts/Failure'
import { Screen } from '../../parts/Screen'
import { State } from '../../parts/State'
import { When } from '../../parts/When'
import { matches, parse } from './filter'

const columns = '2fr 1fr 1fr 2fr 2fr 1fr'

export function Hosts() {
  const hosts = useList('hosts')
  const [params, setParams] = useSearchParams()
  const search = params.get('q') ?? ''
  return (
    <Screen title="Hosts" about="Every machine that was heard of, from its first packet on.">
      <Toolbar>
        <ToolbarContent>
          <ToolbarItem style={{ flexGrow: 1 }}>
            <SearchInput
              aria-label="Search hosts"
              placeholder="rack=R3 memory>256G !label:gpu"
              value={search}
              onChange={(_, v) => setParams(v ? { q: v } : {}, { replace: true })}
              onClear={() => setParams({}, { replace: true })}
            />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <Loaded query={hosts}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="No host was heard of yet">
              Switch a machine on that boots from the network, or try it with: slipway simulate
            </Nothing>
          ) : (
            <Table hosts={all} search={search} />
          )
        }
      </Loaded>
    </Screen>
  )
}

function Table({ hosts, search }: { hosts: Host[]; search: string }) {
  const shown = useMemo(() => {
    const terms = parse(search)
    return hosts.filter((h) => matches(h, terms))
  }, [hosts, search])
  const scroller = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 40,
    overscan: 12,
  })
  return (
    <>
      <p aria-live="polite">
        {shown.length} of {hosts.length} hosts
      </p>
      <div
        ref={scroller}
        className="scroller"
        role="table"
        aria-label="Hosts"
        aria-rowcount={shown.length + 1}
        tabIndex={0}
      >
        <div
          role="row"
          className="host-row host-head"
          style={{ gridTemplateColumns: columns, height: 40, position: 'sticky' }}
        >
          {['Name', 'State', 'Rack', 'Model', 'Machine', 'Last seen'].map((c) => (
            <span role="columnheader" key={c}>
              {c}
            </span>
          ))}
        </div>
        <div role="rowgroup" style={{ height: rows.getTotalSize(), position: 'relative' }}>
          {rows.getVirtualItems().map((v) => {
            const h = shown[v.index] as Host
            return (
              <div
                role="row"
                key={h.id}
                className="host-row"
                aria-rowindex={v.index + 2}
                style={{ gridTemplateColumns: columns, height: v.size, transform: `translateY(${v.start}px)` }}
              >
                <span role="cell">
                  <Link to={`/hosts/${h.name}`}>{h.name}</Link>
                </span>
                <span role="cell">
                  <State state={h.state} />
                </span>
                <span role="cell">{[h.place.rack, h.place.unit && `U${h.place.unit}`].filter(Boolean).join(' ')}</span>
                <span role="cell">{[h.manufacturer, h.product].filter(Boolean).join(' ') || h.nics?.[0]?.vendor}</span>
                <span role="cell">{h.machine}</span>
                <span role="cell">
                  <When at={h.lastSeenAt} />
                </span>
              </div>
            )
          })}
        </div>
      </div>
    </>
  )
}
