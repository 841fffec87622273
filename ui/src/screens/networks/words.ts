import type { Nouns } from '../../api/client'

export type Subnet = Nouns['subnets']
export type Lease = Nouns['leases']
export type Reservation = Nouns['reservations']

// modes say who answers machines on a network.
export const modes: Record<string, string> = {
  full: 'Slipway is the DHCP server',
  reservations: 'Slipway answers only reserved machines; another server answers the others',
  proxy: 'another server gives addresses, Slipway names the boot file',
  off: 'another server does everything and sends machines to Slipway',
}

// unknowns say what becomes of machines that nobody has accepted.
export const unknowns: Record<string, string> = {
  wait: 'wait until they are accepted',
  disk: 'boot their own disk',
  ignore: 'get an address only',
}

// choicesOf are the entries of a list to choose from: the word, and what it means.
export const choicesOf = (all: Record<string, string>) =>
  Object.entries(all).map(([word, about]): [string, string] => [word, `${word}: ${about}`])

// stateOf is the state of a lease for people: a bound one that has run out is expired.
export function stateOf(l: Pick<Lease, 'state' | 'expiresAt'>, now = Date.now()): string {
  const isOver = Date.parse(l.expiresAt) < now
  if (l.state === 'bound') return isOver ? 'expired' : 'leased'
  if (l.state === 'declined') return isOver ? 'set free' : 'conflict'
  return l.state
}

// is6 says whether an address or a network is one of IPv6.
export const is6 = (a: string) => a.includes(':')

// addressKey orders addresses of one family as numbers: it is the number in hex, of one length.
export function addressKey(a: string): string {
  const hex = (part: string, base: number, length: number) =>
    (Number.parseInt(part, base) || 0).toString(16).padStart(length, '0')
  if (!is6(a))
    return a
      .split('.')
      .map((part) => hex(part, 10, 2))
      .join('')
  const [head = [], tail = []] = a.split('::').map((half) => (half ? half.split(':') : []))
  const zeros: string[] = Array(Math.max(0, 8 - head.length - tail.length)).fill('0')
  return [...head, ...zeros, ...tail].map((part) => hex(part, 16, 4)).join('')
}

// hostname makes a name that a reservation may have out of what a machine calls itself; '' when nothing is left.
export const hostname = (said: string | undefined) =>
  (said ?? '')
    .toLowerCase()
    .split('.')[0]
    ?.replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 63) ?? ''
