import {
  Alert,
  Button,
  Drawer,
  DrawerContent,
  DrawerContentBody,
  FormSelect,
  FormSelectOption,
  SearchInput,
  Spinner,
  ToggleGroup,
  ToggleGroupItem,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core'
import { useMemo, useState } from 'react'
import { useSearchParams } from 'react-router'
import { useAct } from '../../api/act'
import { useMayNot } from '../../api/me'
import { useList } from '../../api/queries'
import { useRows } from '../../api/rows'
import { useLive } from '../../api/useLive'
import { Act } from '../../parts/Act'
import { Ask } from '../../parts/Ask'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { Screen } from '../../parts/Screen'
import { matches, parse } from '../hosts/filter'
import { Cabling } from './Cabling'
import { Box, Elevation, type Hands } from './Elevation'
import { HostDrawer } from './HostDrawer'
import { allRacks, type Face, faultsOf, type Host, type Rack, rackOf, rowOf } from './layout'
import { EditRack, RackHead } from './RackForms'
import { type Move, useMove } from './useMove'
import './racks.css'

const faces = ['front', 'rear', 'both'] as const

export function Racks() {
  const { rows: hosts, isWhole, error } = useRows(useLive())
  const racks = useList('racks')
  const [isNew, setNew] = useState(false)
  const not = useMayNot('operator', '') // hosts of several pools may stand in a rack
  return (
    <Screen
      title="Racks"
      about="The places of hosts, and their cables."
      actions={
        <span className="rack-off-paper">
          <Act text="Describe a rack" variant="secondary" not={not} act={() => setNew(true)} />
        </span>
      }
    >
      {isNew && <EditRack close={() => setNew(false)} />}
      {error !== undefined && <Failure error={error} />}
      <Loaded query={racks}>
        {(described) =>
          isWhole ? (
            <Room hosts={hosts} racks={allRacks(described, hosts)} />
          ) : (
            error === undefined && <Spinner aria-label="Loading" />
          )
        }
      </Loaded>
    </Screen>
  )
}

function Room({ hosts, racks }: { hosts: readonly Host[]; racks: Rack[] }) {
  const [params, setParams] = useSearchParams()
  const rows = useMemo(() => [...new Set(racks.map(rowOf))], [racks])
  const row = rows.find((r) => r === params.get('row')) ?? rows[0] ?? ''
  const face = faces.find((f) => f === params.get('face')) ?? 'front'
  const tab = params.get('tab') === 'cables' ? 'cables' : 'places'
  const search = params.get('q') ?? ''
  const set = (key: string, value: string) =>
    setParams(
      (old) => {
        const next = new URLSearchParams(old)
        if (value) next.set(key, value)
        else next.delete(key)
        return next
      },
      { replace: true },
    )
  const shown = useMemo(() => racks.filter((r) => rowOf(r) === row), [racks, row])
  const opened = hosts.find((h) => h.name === params.get('host'))
  return (
    <Drawer isExpanded={!!opened} isInline className="rack-room">
      <DrawerContent
        panelContent={
          opened && (
            <HostDrawer key={opened.id} host={opened} racks={racks} hosts={hosts} close={() => set('host', '')} />
          )
        }
      >
        <DrawerContentBody>
          <Toolbar className="rack-off-paper">
            <ToolbarContent>
              {rows.length > 1 && (
                <ToolbarItem>
                  <FormSelect aria-label="Row" value={row} onChange={(_, v) => set('row', v)}>
                    {rows.map((r) => (
                      <FormSelectOption key={r} value={r} label={r} />
                    ))}
                  </FormSelect>
                </ToolbarItem>
              )}
              <ToolbarItem>
                <ToggleGroup aria-label="What is shown">
                  <ToggleGroupItem
                    text="Places"
                    buttonId="rack-places"
                    isSelected={tab === 'places'}
                    onChange={() => set('tab', '')}
                  />
                  <ToggleGroupItem
                    text="Cables"
                    buttonId="rack-cables"
                    isSelected={tab === 'cables'}
                    onChange={() => set('tab', 'cables')}
                  />
                </ToggleGroup>
              </ToolbarItem>
              {tab === 'places' && (
                <ToolbarItem>
                  <ToggleGroup aria-label="Face">
                    {faces.map((f) => (
                      <ToggleGroupItem
                        key={f}
                        text={f[0]?.toUpperCase() + f.slice(1)}
                        buttonId={`rack-${f}`}
                        isSelected={face === f}
                        onChange={() => set('face', f === 'front' ? '' : f)}
                      />
                    ))}
                  </ToggleGroup>
                </ToolbarItem>
              )}
              {tab === 'places' && (
                <ToolbarItem style={{ flexGrow: 1, minInlineSize: '14rem' }}>
                  <SearchInput
                    aria-label="Highlight hosts"
                    placeholder="Highlight: state=failed memory>256G"
                    value={search}
                    onChange={(_, v) => set('q', v)}
                    onClear={() => set('q', '')}
                  />
                </ToolbarItem>
              )}
              <ToolbarItem>
                <Button variant="link" onClick={() => window.print()}>
                  Print
                </Button>
              </ToolbarItem>
            </ToolbarContent>
          </Toolbar>
          {tab === 'cables' ? (
            <Cabling racks={shown} />
          ) : (
            <Places
              hosts={hosts}
              racks={shown}
              faces={face === 'both' ? ['front', 'rear'] : [face]}
              search={search}
              opened={opened?.name ?? ''}
              show={(h) => set('host', h.name)}
            />
          )}
        </DrawerContentBody>
      </DrawerContent>
    </Drawer>
  )
}

interface PlacesProps {
  hosts: readonly Host[]
  racks: Rack[]
  faces: Face[]
  search: string
  opened: string
  show: (h: Host) => void
}

function Places({ hosts, racks, faces, search, opened, show }: PlacesProps) {
  const byRack = useMemo(() => {
    const m = new Map<string, Host[]>()
    for (const h of hosts) {
      const there = m.get(rackOf(h))
      if (there) there.push(h)
      else m.set(rackOf(h), [h])
    }
    return m
  }, [hosts])
  const [asked, ask] = useState<Move>()
  const [asking, setAsking] = useState<Move>() // under way
  const act = useAct(() => setAsking(undefined))
  const terms = useMemo(() => (search.trim() ? parse(search) : undefined), [search])
  const move = useMove({
    racks,
    hostsOf: (id) => byRack.get(id) ?? [],
    why: useMayNot('operator'),
    show,
    moved: (m) => {
      if (m.shares) return ask(m)
      setAsking(m)
      act.mutate(m.call)
    },
  })
  const hands: Hands = {
    hold: move.hold,
    shown: opened,
    pending: act.isPending ? (asking?.host.id ?? '') : '',
    matches: terms && ((h) => matches(h, terms)),
    show,
    take: move.take,
    key: move.key,
  }
  const loose = [
    ...(byRack.get('') ?? []),
    ...racks.flatMap((r) => (byRack.get(r.id) ?? []).filter((h) => !h.place.unit)),
  ]
  return (
    <div className={move.hold ? 'rack-drag' : undefined}>
      <p id="rack-keys" className="rack-off-paper">
        Drag a host to its place, or use the keyboard. Enter takes it, arrows move it, and Enter puts it down. Delete
        removes it from its rack, and Escape puts it back. A click or Space shows it.
      </p>
      <div aria-live="polite" role="status" className="rack-said rack-off-paper">
        {move.said && <small>{move.said}</small>}
      </div>
      {act.error && asking && (
        <>
          <p>
            Slipway did not move {asking.host.name} to {asking.to}:
          </p>
          <Failure
            error={act.error}
            again={() => act.mutate({ ...asking.call, version: hosts.find((h) => h.id === asking.host.id)?.version })}
          />
        </>
      )}
      {asked && (
        <Ask
          title={`Share ${asked.to}?`}
          verb="Share the units"
          call={asked.call}
          cli={asked.cli}
          close={() => ask(undefined)}
        >
          <p>
            {asked.shares?.join(', ')} has exactly these units. {asked.host.name} would share the units with it, like
            the nodes of one chassis.
          </p>
        </Ask>
      )}
      {racks.length === 0 ? (
        <Nothing title="No rack yet">
          Describe one above, or say where a host stands: slipway host place NAME --rack R1 --unit 7
        </Nothing>
      ) : (
        <div className="rack-row">
          {racks.map((r) => (
            <section key={r.id} className="rack-one" aria-label={`Rack ${r.name}`}>
              <RackHead rack={r} hostN={(byRack.get(r.id) ?? []).length} />
              {faultsOf(r, byRack.get(r.id) ?? []).map((f) => (
                <Alert key={f.detail} variant="warning" isInline isPlain title={f.detail} />
              ))}
              <div className="rack-faces">
                {faces.map((f) => (
                  <div key={f}>
                    {faces.length > 1 && <small>{f}</small>}
                    <Elevation rack={r} hosts={byRack.get(r.id) ?? []} face={f} hands={hands} />
                  </div>
                ))}
              </div>
            </section>
          ))}
        </div>
      )}
      <h2>Without a place ({loose.length})</h2>
      <div className="rack-tray" data-tray role="group" aria-label="Hosts without a place">
        {loose.length === 0 && <small>Every host has a place. Drop a host here to remove it from its rack.</small>}
        {loose.slice(0, trayMost).map((h) => (
          <Box
            key={h.id}
            host={h}
            hands={hands}
            more={h.place.rack ? `in rack ${h.place.rack}, no unit` : 'in no rack'}
          />
        ))}
        {loose.length > trayMost && <small>and {loose.length - trayMost} more: narrow them in Hosts</small>}
      </div>
    </div>
  )
}

// trayMost is how many hosts without a place are shown: who has a thousand of them places them by import.
const trayMost = 200
