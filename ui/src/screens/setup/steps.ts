export const steps = [
  ['server', 'This server'],
  ['network', 'Network'],
  ['account', 'Account'],
  ['image', 'Something to boot'],
  ['accept', 'Which machines'],
  ['machines', 'First machines'],
] as const

export type Step = (typeof steps)[number][0]

const toNumber = (a: string) => a.split('.').reduce((n, part) => n * 256 + Number(part), 0)
const toText = (n: number) => [24, 16, 8, 0].map((s) => Math.floor(n / 2 ** s) % 256).join('.')

// Suggested is the subnet of an address with its network length, and the upper half of it to lease.
export interface Suggested {
  cidr: string
  first: string
  last: string
}

// suggest does as a first start does: the upper half of the network without the broadcast address, and the larger part
// of that beside the server's own address.
export function suggest(prefix: string): Suggested | undefined {
  const m = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/.exec(prefix)
  if (!m) return undefined
  const own = toNumber(m[1] ?? '')
  const bits = Number(m[2])
  if (bits > 29 || bits < 8) return undefined
  const size = 2 ** (32 - bits)
  const base = Math.floor(own / size) * size
  let first = base + size / 2
  let last = base + size - 2
  if (own >= first && own <= last) {
    if (own - first >= last - own) last = own - 1
    else first = own + 1
  }
  return { cidr: `${toText(base)}/${bits}`, first: toText(first), last: toText(last) }
}

// nameOf makes the name of a subnet out of that of an interface.
export const nameOf = (iface: string) =>
  iface
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '-')
    .replaceAll(/^-+|-+$/g, '') || 'boot'
