import type { Nouns } from '../../api/client'

export type Address = Nouns['addresses']

// fromText says where an address comes from.
export function fromText(a: Address): string {
  switch (a.from) {
    case 'subnet':
      return `lowest free one of ${a.subnet}`
    case 'person':
      return `chosen by a person, of ${a.subnet}`
    case 'left':
      return a.source ?? 'left behind'
    default:
      return a.source ? `configuration: ${a.source}` : 'configuration'
  }
}

// mayChange reports whether another address can be chosen here: one that a configuration names is changed there.
export const mayChange = (a: Address): boolean => a.from === 'subnet' || a.from === 'person'

// setOf is the request that gives a holder another address, and the command that does the same.
export function setOf(a: Address, address: string) {
  const body = a.machine ? { machine: a.machine } : { host: a.host ?? '' }
  const flag = a.machine ? `--machine ${a.machine}` : `--host ${a.host ?? ''}`
  const at = address.trim()
  return {
    call: { method: 'PUT' as const, path: `/addresses/${encodeURIComponent(at)}`, body },
    cli: `slipway address set ${at || 'ADDRESS'} ${flag}`,
  }
}
