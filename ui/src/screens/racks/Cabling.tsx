import { Alert, FormSelect, FormSelectOption } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { Link as To, useSearchParams } from 'react-router'
import { api, must, type Schemas } from '../../api/client'
import { Command } from '../../parts/Command'
import { shell } from '../../parts/cli'
import { Loaded, Nothing } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
import { When } from '../../parts/When'
import type { Rack } from './layout'

type Link = Schemas['Link']

// Cabling shows the cables of one rack that LLDP has proved, and what is wrong with them.
export function Cabling({ racks }: { racks: Rack[] }) {
  const [params, setParams] = useSearchParams()
  const rack = racks.find((r) => r.id === params.get('rack')) ?? racks[0]
  const cables = useQuery({
    queryKey: ['hosts', 'cabling', rack?.id],
    enabled: !!rack,
    queryFn: () => must(api.GET('/api/v1/cabling', { params: { query: { ...(rack && { rack: rack.id }) } } })),
  })
  if (!rack)
    return <Nothing title="No rack yet">Give a host its place: slipway host place NAME --rack R1 --unit 7</Nothing>
  return (
    <>
      <FormSelect
        aria-label="Rack"
        className="rack-off-paper"
        style={{ maxInlineSize: '20rem' }}
        value={rack.id}
        onChange={(_, v) =>
          setParams(
            (old) => {
              old.set('rack', v)
              return old
            },
            { replace: true },
          )
        }
      >
        {racks.map((r) => (
          <FormSelectOption key={r.id} value={r.id} label={r.name} />
        ))}
      </FormSelect>
      <Loaded query={cables}>
        {(c) => (
          <>
            {c.faults.map((f) => (
              <Alert key={f.detail} variant="warning" isInline title={f.detail}>
                {f.hint}
              </Alert>
            ))}
            {c.links.length === 0 ? (
              <Nothing title={`No inspection has found cables of rack ${rack.name}`}>
                An inspection finds the cables by LLDP: slipway host inspect NAME --restart. LLDP has to be on in the
                switches.
              </Nothing>
            ) : (
              <>
                <Drawing cables={c} />
                <List links={c.links} />
              </>
            )}
          </>
        )}
      </Loaded>
      <Command cli={`slipway rack cabling ${shell(rack.id)}`} />
    </>
  )
}

const line = 20
const width = 640

// straighter has each end once in their natural order or its reverse: what is patched in order does not cross.
function straighter(of: string[]): string[] {
  const up = [...new Set(of)].sort(new Intl.Collator('en', { numeric: true }).compare)
  const off = (ends: string[]) => of.reduce((n, e, i) => n + Math.abs(ends.indexOf(e) - i), 0)
  const down = up.toReversed()
  return off(down) < off(up) ? down : up
}

// Drawing shows hosts at the left and switches at the right; the table below says the same in words.
function Drawing({ cables: { links, faults } }: { cables: Schemas['Cabling'] }) {
  const bad = new Set(faults.flatMap((f) => f.hosts))
  const ends = straighter(links.map((l) => `${l.switch}\u0000${l.to}`))
  const height = Math.max(links.length, ends.length) * line + 10
  const cut = (s: string, n: number) => (s.length > n ? `${s.slice(0, n - 1)}…` : s)
  return (
    <svg
      className="rack-cables"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={`${links.length} cables, as in the table`}
    >
      {links.map((l, i) => {
        const y = i * line + 14
        const end = ends.indexOf(`${l.switch}\u0000${l.to}`) * line + 14
        const isBad = bad.has(l.host)
        return (
          <g key={`${l.mac}${l.to}`}>
            <text x={230} y={y} textAnchor="end">
              {isBad && '⚠ '}
              {l.unit ? `U${l.unit} ` : ''}
              {cut(l.host, 20)} {cut(l.port, 10)}
            </text>
            <path className={isBad ? 'bad' : ''} d={`M236 ${y - 4} C 310 ${y - 4}, 330 ${end - 4}, 404 ${end - 4}`} />
          </g>
        )
      })}
      {ends.map((e, i) => (
        <text key={e} x={410} y={i * line + 14}>
          {cut(e.replace('\u0000', ' '), 34)}
        </text>
      ))}
    </svg>
  )
}

function List({ links }: { links: Link[] }) {
  return (
    <Rows
      label="Cables"
      rows={links}
      keyOf={(l) => `${l.mac}${l.to}`}
      columns={[
        ['Host', (l) => <To to={`/hosts/${l.host}`}>{l.host}</To>],
        ['Unit', (l) => l.unit],
        ['Port', (l) => l.port],
        ['MAC', (l) => l.mac],
        ['Speed', (l) => (l.speedMbps ? `${l.speedMbps / 1000} Gb/s` : '')],
        ['Switch', (l) => l.switch],
        ['Switch port', (l) => l.to],
        ['VLAN', (l) => l.vlan],
        ['Seen', (l) => <When at={l.at} />],
      ]}
    />
  )
}
