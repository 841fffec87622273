import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from 'react'
import type { Call } from '../../api/act'
import { flags, shell } from '../../parts/cli'
import type { Hold } from './Elevation'
import { drop, type Host, heightOf, type Rack, rackOf, unitsText } from './layout'

// Move is a host on its way to another place, as a call and as it is asked for.
export interface Move {
  host: Host
  to: string // for people
  call: Call
  cli: string
  shares?: string[] | undefined
}

// moveOf makes the call that puts a host somewhere; without a rack it takes it out of all.
export function moveOf(host: Host, rack: Rack | undefined, unit: number, shares?: string[]): Move {
  const place = { site: rack?.site ?? '', row: rack?.row ?? '', rack: rack?.name ?? '', unit: rack ? unit : 0 }
  return {
    host,
    shares,
    to: rack ? `${unitsText(unit, unit + heightOf(host) - 1)} of rack ${rack.name}` : 'no rack',
    call: {
      method: 'PATCH',
      path: `/hosts/${encodeURIComponent(host.id)}`,
      body: { place },
      version: host.version,
    },
    cli: rack
      ? `slipway host place ${shell(host.name)}${flags(place)}`
      : `slipway host place ${shell(host.name)} --site '' --row '' --rack '' --unit 0`,
  }
}

// A pointer that moves less than this is a click.
const clickMost = 5

interface Given {
  racks: Rack[] // as they stand side by side
  hostsOf: (rack: string) => Host[]
  why: string | undefined // nothing may be moved
  show: (h: Host) => void
  moved: (m: Move) => void
}

// useMove lets hosts be taken and put down, by a pointer or by keys: Enter takes and puts down, arrows move, Escape puts back.
export function useMove({ racks, hostsOf, why, show, moved }: Given) {
  const [hold, setHold] = useState<Hold>()
  const [said, say] = useState('')
  const from = useRef<{ x: number; y: number; host: Host; offset: number } | undefined>(undefined)
  const held = useRef<Hold | undefined>(undefined)
  const at = { racks, hostsOf, show, moved, why }
  const now = useRef(at)
  now.current = at

  const over = (host: Host, rack: string, unit: number, offset: number) => {
    const r = now.current.racks.find((x) => x.id === rack)
    const why = r && unit !== 0 ? drop(r, now.current.hostsOf(rack), host, unit).why : undefined
    const next: Hold = { host, rack, unit, offset, why }
    held.current = next
    setHold(next)
    if (!r) say(rack === '-' ? `${host.name}: nowhere` : `${host.name} over the tray: it would be in no rack`)
    else say(`${host.name} over ${unitsText(unit, unit + heightOf(host) - 1)} of ${r.name}: ${why ?? 'free'}`)
  }
  const end = () => {
    held.current = undefined
    from.current = undefined
    setHold(undefined)
  }
  const put = () => {
    const h = held.current
    end()
    if (!h || h.rack === '-') return say('put back')
    const r = now.current.racks.find((x) => x.id === h.rack)
    if (!r) {
      if (rackOf(h.host) === '') return say('put back')
      return now.current.moved(moveOf(h.host, undefined, 0))
    }
    if (h.why) return say(`${h.host.name} was put back: ${h.why}`)
    if (rackOf(h.host) === r.id && h.host.place.unit === h.unit) return say('put back')
    now.current.moved(moveOf(h.host, r, h.unit, drop(r, now.current.hostsOf(r.id), h.host, h.unit).shares))
  }
  const act = useRef({ over, put, end })
  act.current = { over, put, end }

  useEffect(() => {
    const move = (e: globalThis.PointerEvent) => {
      const f = from.current
      if (!f) return
      if (!held.current && Math.hypot(e.clientX - f.x, e.clientY - f.y) < clickMost) return
      if (now.current.why) return say(now.current.why)
      const [rack, unit] = placeAt(e.clientX, e.clientY, now.current.racks)
      act.current.over(f.host, rack, unit === 0 ? 0 : unit - f.offset, f.offset)
    }
    const up = () => {
      const f = from.current
      if (!f) return
      if (held.current) return act.current.put()
      from.current = undefined
      now.current.show(f.host)
    }
    const cancel = (e: globalThis.KeyboardEvent) => e.key === 'Escape' && from.current && act.current.end()
    const lost = () => act.current.end()
    window.addEventListener('pointermove', move)
    window.addEventListener('pointerup', up)
    window.addEventListener('pointercancel', lost)
    window.addEventListener('keydown', cancel)
    return () => {
      window.removeEventListener('pointermove', move)
      window.removeEventListener('pointerup', up)
      window.removeEventListener('pointercancel', lost)
      window.removeEventListener('keydown', cancel)
    }
  }, [])

  const take = (host: Host, e: PointerEvent) => {
    if (e.button !== 0) return
    const [rack, unit] = placeAt(e.clientX, e.clientY, racks)
    const offset = unit && rack === rackOf(host) ? unit - (host.place.unit ?? unit) : 0
    if (e.pointerType === 'touch') return // scrolls; a tap is a click, and the form moves
    from.current = { x: e.clientX, y: e.clientY, host, offset }
  }

  const key = (host: Host, e: KeyboardEvent) => {
    const h = held.current
    if (e.key === ' ' && !h) {
      e.preventDefault()
      return show(host)
    }
    if (e.key === 'Enter') {
      e.preventDefault()
      if (h) return put()
      if (why) return say(why)
      const r = racks.find((x) => x.id === rackOf(host)) ?? racks[0]
      if (r) over(host, r.id, host.place.unit || 1, 0)
      return
    }
    if (!h) return
    const i = racks.findIndex((x) => x.id === h.rack)
    const r = racks[i]
    if (e.key === 'Escape') {
      say('put back')
      end()
    } else if (e.key === 'Delete') over(host, '', 0, 0)
    else if ((e.key === 'ArrowUp' || e.key === 'ArrowDown') && r) {
      const step = (e.key === 'ArrowUp') === (r.numbering === 'bottom') ? 1 : -1
      over(host, r.id, Math.min(Math.max(h.unit + step, 1), Math.max(r.height - heightOf(host) + 1, 1)), 0)
    } else if (e.key === 'ArrowLeft' || e.key === 'ArrowRight') {
      const next = racks[Math.max(i, 0) + (e.key === 'ArrowLeft' ? -1 : 1)]
      if (next) over(host, next.id, Math.min(Math.max(h.unit, 1), next.height), 0)
    } else if (e.key !== 'Tab') return
    e.preventDefault()
  }
  return { hold, said, take, key, end }
}

// placeAt is the rack and the unit under a point: '' and 0 over the tray, '-' over nothing that takes hosts.
function placeAt(x: number, y: number, racks: Rack[]): [rack: string, unit: number] {
  const el = document.elementFromPoint(x, y)
  const face = el?.closest<HTMLElement>('[data-rack]')
  const rack = racks.find((r) => r.id === face?.dataset.rack)
  if (!face || !rack) return [el?.closest('[data-tray]') ? '' : '-', 0]
  const box = face.getBoundingClientRect()
  const line = Math.min(Math.max(Math.floor(((y - box.top) / box.height) * rack.height) + 1, 1), rack.height)
  return [rack.id, rack.numbering === 'top' ? line : rack.height - line + 1]
}
