// What the API tells of networks, as these screens use it.
export interface Subnet {
  name: string
  cidr: string
  interface?: string
  mode: string
  gateway?: string
  dns?: string[] | null
  ntp?: string[] | null
  domain?: string
  mtu?: number
  routes?: { to: string; via: string }[] | null
  leaseFor: string
  bootLeaseFor: string
  unknown: string
  ranges?: { first: string; last: string }[] | null
  version: number
}

export interface Lease {
  address: string
  subnet: string
  mac: string
  clientID?: string
  hostname?: string
  state: string
  isBoot: boolean
  startsAt: string
  expiresAt: string
}

export interface Reservation {
  address: string
  subnet: string
  mac?: string
  clientID?: string
  uuid?: string
  hostname?: string
  version: number
}

export interface Interface {
  name: string
  mac?: string
  isUp: boolean
  isServed: boolean
  addresses: string[] | null
  subnet?: string
  bootURL?: string
}

export interface RangeUse {
  first?: string
  last?: string
  total: number
  free: number
  leased: number
  kept: number
  reserved: number
  conflict: number
}

export interface Use {
  ranges: RangeUse[] | null
  outside: RangeUse
}

export interface Snippet {
  server: string
  name: string
  file?: string
  check?: string
  text: string
  note?: string
}

// stateOf is the state of a lease for people: a bound one that has run out is expired.
export function stateOf(l: Pick<Lease, 'state' | 'expiresAt'>, now = Date.now()): string {
  const isOver = Date.parse(l.expiresAt) < now
  if (l.state === 'bound') return isOver ? 'expired' : 'leased'
  if (l.state === 'declined') return isOver ? 'set free' : 'conflict'
  return l.state
}

// addressKey orders addresses as numbers.
export const addressKey = (a: string) => a.split('.').reduce((n, part) => n * 256 + Number(part), 0)

// wordsOf reads a list that is written with spaces, commas or line ends.
export const wordsOf = (text: string) => text.split(/[\s,]+/).filter(Boolean)

// rangesOf reads ranges FIRST-LAST. What is none is sent as it is, so that the server says what is wrong with it.
export const rangesOf = (text: string) =>
  wordsOf(text).map((w) => {
    const [first = '', last = first] = w.split('-')
    return { first, last }
  })

// hostname makes a name that a reservation may have out of what a machine calls itself; '' when nothing is left.
export const hostname = (said: string | undefined) =>
  (said ?? '')
    .toLowerCase()
    .split('.')[0]
    ?.replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 63) ?? ''
