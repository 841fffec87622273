import type { Nouns } from '../../api/client'
import type { HostRow } from '../../api/rows'

export type Face = 'front' | 'rear'

export type Host = HostRow
export type Place = Host['place']

// Rack is a rack as the API tells it; hosts name racks that nobody has described, too.
export type Rack = Omit<Nouns['racks'], 'faults' | 'hostN' | 'createdAt' | 'updatedAt'>

// Placed is what of a host its place depends on.
export type Placed = Pick<Host, 'id' | 'name' | 'state'> & {
  place: Place
}

export interface Mounted<H extends Placed = Host> {
  host: H
  low: number
  high: number
  lane: number
  lanes: number
}

const escaped = (s: string) => s.replaceAll('%', '%25').replaceAll('/', '%2F')

// idOf names a rack as the API does: its name, or site/row/name.
export function idOf(p: { site?: string | undefined; row?: string | undefined }, name: string | undefined): string {
  if (!name) return ''
  return p.site || p.row ? [p.site ?? '', p.row ?? '', name].map(escaped).join('/') : escaped(name)
}

export const rackOf = (h: Placed) => idOf(h.place, h.place.rack)

export const heightOf = (h: Placed) => Math.max(h.place.height ?? 1, 1)

// unitsText says units as people do.
export const unitsText = (low: number, high: number) => (low === high ? `U${low}` : `U${low}-U${high}`)

// rowOf names the row of a rack, which is what is shown side by side.
export const rowOf = (p: { site?: string | undefined; row?: string | undefined }) =>
  [p.site, p.row].filter(Boolean).join(' / ') || 'without a row'

// allRacks adds to the racks that are described those that only hosts name.
export function allRacks(described: readonly Rack[], hosts: readonly Placed[]): Rack[] {
  const racks = new Map(described.map((r) => [r.id, r]))
  for (const h of hosts) {
    const id = rackOf(h)
    if (id && !racks.has(id))
      racks.set(id, {
        id,
        site: h.place.site ?? '',
        row: h.place.row ?? '',
        name: h.place.rack ?? '',
        height: 42,
        numbering: 'bottom',
        version: 0,
      })
  }
  const order = new Intl.Collator('en', { numeric: true })
  return [...racks.values()].sort((a, b) => order.compare(a.id, b.id))
}

const sees = (h: Placed, face: Face) => !h.place.face || h.place.face === face

const share = (a: Placed, b: Placed) =>
  a.place.unit === b.place.unit && heightOf(a) === heightOf(b) && (a.place.face ?? '') === (b.place.face ?? '')

// meet reports whether two hosts would stand in the same place.
function meet(a: Placed, b: Placed): boolean {
  const [x, y] = [a.place.unit ?? 0, b.place.unit ?? 0]
  if (!x || !y) return false
  if (a.place.face && b.place.face && a.place.face !== b.place.face) return false
  return x < y + heightOf(b) && y < x + heightOf(a)
}

// elevate sets the hosts of a rack into lanes as the server does: hosts with exactly the same units share them.
export function elevate<H extends Placed>(hosts: readonly H[], face: Face): Mounted<H>[] {
  const all = hosts
    .filter((h) => (h.place.unit ?? 0) > 0 && sees(h, face))
    .map((host) => ({
      host,
      low: host.place.unit ?? 0,
      high: (host.place.unit ?? 0) + heightOf(host) - 1,
      lane: 0,
      lanes: 1,
    }))
    .sort((a, b) => a.low - b.low || a.high - b.high || a.host.name.localeCompare(b.host.name))
  for (let from = 0; from < all.length; ) {
    let to = from + 1
    let top = all[from]?.high ?? 0
    while (to < all.length && (all[to]?.low ?? 0) <= top) top = Math.max(top, all[to++]?.high ?? 0)
    const tops: number[] = []
    for (const m of all.slice(from, to)) {
      const free = tops.findIndex((t) => t < m.low)
      m.lane = free < 0 ? tops.length : free
      tops[m.lane] = m.high
    }
    for (const m of all.slice(from, to)) m.lanes = tops.length
    from = to
  }
  return all
}

export interface Fault {
  hosts: string[]
  detail: string
}

// faultsOf names the places in a rack that cannot be so.
export function faultsOf(rack: Rack, hosts: readonly Placed[]): Fault[] {
  const faults: Fault[] = []
  const placed = hosts.filter((h) => (h.place.unit ?? 0) > 0).sort((a, b) => (a.place.unit ?? 0) - (b.place.unit ?? 0))
  const text = (h: Placed) => unitsText(h.place.unit ?? 0, (h.place.unit ?? 0) + heightOf(h) - 1)
  placed.forEach((a, i) => {
    if ((a.place.unit ?? 0) + heightOf(a) - 1 > rack.height)
      faults.push({ hosts: [a.name], detail: `${a.name} is in ${text(a)}, and the rack ends at U${rack.height}` })
    for (const b of placed.slice(i + 1))
      if (faults.length < 100 && meet(a, b) && !share(a, b))
        faults.push({ hosts: [a.name, b.name], detail: `${a.name} in ${text(a)} and ${b.name} in ${text(b)} overlap` })
  })
  return faults
}

// Drop is what would become of a host that is put into a rack at a unit.
export interface Drop {
  why?: string // it does not go there
  shares?: string[] // hosts that have exactly these units: the nodes of one chassis
}

export function drop(rack: Rack, hosts: readonly Placed[], host: Placed, unit: number): Drop {
  const high = unit + heightOf(host) - 1
  if (unit < 1 || high > rack.height)
    return { why: `${unitsText(unit, high)} is outside of the rack (U1-U${rack.height})` }
  const there = { ...host, place: { ...host.place, unit } }
  const met = hosts.filter((h) => h.id !== host.id && meet(h, there))
  const blocks = met.filter((h) => !share(h, there))
  if (blocks.length > 0)
    return { why: `${unitsText(unit, high)} is taken: ${blocks.map((h) => h.name).join(', ')} is there` }
  return met.length > 0 ? { shares: met.map((h) => h.name) } : {}
}

// lineOf is the line of the drawing, from 1 at its top, in which the highest of these units is.
export const lineOf = (r: Rack, low: number, high: number) => (r.numbering === 'top' ? low : r.height - high + 1)

// unitAt is the unit in a line of the drawing.
export const unitAt = (r: Rack, line: number) => (r.numbering === 'top' ? line : r.height - line + 1)
