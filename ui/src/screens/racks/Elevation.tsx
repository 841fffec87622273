import { type CSSProperties, type KeyboardEvent, memo, type PointerEvent } from 'react'
import { stateLook } from '../../parts/State'
import { elevate, type Face, faultsOf, type Host, heightOf, lineOf, type Rack, unitAt, unitsText } from './layout'

// Hold is a host that is being moved, and where it would go.
export interface Hold {
  host: Host
  rack: string // id; '' for out of all racks
  unit: number
  offset: number // units between the host's lowest and the one it was taken by
  why?: string | undefined // it cannot stand there
}

export interface Hands {
  hold: Hold | undefined
  shown: string // host in the drawer
  pending: string // host that the server is placing
  matches: ((h: Host) => boolean) | undefined // what is searched for
  show: (h: Host) => void
  take: (h: Host, e: PointerEvent) => void
  key: (h: Host, e: KeyboardEvent) => void
}

// Box is a host as a thing that can be shown and moved.
export function Box({
  host,
  hands,
  fault,
  style,
  more,
}: {
  host: Host
  hands: Hands
  fault?: string | undefined
  style?: CSSProperties
  more?: string
}) {
  const [colour, glyph] = stateLook(host.state)
  const isMatch = hands.matches?.(host)
  const names = ['rack-host', `rack-${colour}`]
  if (hands.hold?.host.id === host.id) names.push('rack-held')
  if (isMatch === true) names.push('rack-match')
  if (isMatch === false) names.push('rack-dim')
  if (fault) names.push('rack-fault')
  const words = [
    host.name,
    host.state,
    more,
    fault && 'conflict',
    isMatch && 'found',
    hands.pending === host.id && 'being placed',
  ]
  return (
    <button
      type="button"
      className={names.join(' ')}
      style={style}
      title={fault ?? `${host.name}: ${host.state}`}
      aria-label={words.filter(Boolean).join(', ')}
      aria-pressed={hands.shown === host.name}
      aria-keyshortcuts="Enter Space"
      aria-describedby="rack-keys"
      onPointerDown={(e) => hands.take(host, e)}
      onKeyDown={(e) => hands.key(host, e)}
      onClick={(e) => e.detail === 0 && hands.show(host)} // of assistive technology; a pointer's is seen where it is let go
    >
      <span aria-hidden>
        {fault && '⚠ '}
        {isMatch && '★ '}
        {glyph} {host.name}
      </span>
    </button>
  )
}

interface Props {
  rack: Rack
  hosts: Host[] // of the rack
  face: Face
  hands: Hands
}

// Elevation is one face of a rack. The slots under the hosts are where they are dropped: the one under a pointer follows
// from its height.
export const Elevation = memo(function Elevation({ rack, hosts, face, hands }: Props) {
  const faults = new Map(faultsOf(rack, hosts).flatMap((f) => f.hosts.map((h) => [h, f.detail] as const)))
  const lines = Array.from({ length: rack.height }, (_, i) => i + 1)
  const hold = hands.hold?.rack === rack.id && hands.hold.unit > 0 ? hands.hold : undefined
  const high = hold ? hold.unit + heightOf(hold.host) - 1 : 0
  return (
    <div
      className="rack-face"
      role="group"
      aria-label={`${rack.name}, ${face}`}
      data-rack={rack.id}
      data-height={rack.height}
      style={{ gridTemplateRows: `repeat(${rack.height}, 1.6rem)` }}
    >
      {lines.map((line) => (
        <span key={line} className="rack-unit" style={{ gridRow: line }} aria-hidden>
          {unitAt(rack, line)}
        </span>
      ))}
      {lines.map((line) => (
        <span key={`s${line}`} className="rack-slot" style={{ gridRow: line }} aria-hidden />
      ))}
      {elevate(hosts, face).map((m) => (
        <Box
          key={m.host.id}
          host={m.host}
          hands={hands}
          fault={faults.get(m.host.name)}
          more={`${unitsText(m.low, m.high)} of ${rack.name}${m.lanes > 1 ? ', shared' : ''}`}
          style={{
            gridRow: `${Math.max(lineOf(rack, m.low, Math.min(m.high, rack.height)), 1)} / span ${Math.max(Math.min(m.high, rack.height) - m.low + 1, 1)}`,
            inlineSize: `${100 / m.lanes}%`,
            insetInlineStart: `${(100 * m.lane) / m.lanes}%`,
          }}
        />
      ))}
      {hold && high <= rack.height && (
        <span
          className={hold.why ? 'rack-target rack-refused' : 'rack-target'}
          style={{ gridRow: `${lineOf(rack, hold.unit, high)} / span ${high - hold.unit + 1}` }}
          aria-hidden
        >
          {hold.why ? '✕' : '↓'} {unitsText(hold.unit, high)}
        </span>
      )}
    </div>
  )
})
