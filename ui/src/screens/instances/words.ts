import type { Nouns, Schemas } from '../../api/client'

export type Instance = Nouns['instances']
export type OneDuty = Schemas['InstanceDuty'] & { instance: string }

// isAlone says whether a server has its inventory in a file, which no other can use.
export const isAlone = (all: Instance[], kind: string | undefined) => kind === 'sqlite' && all.length <= 1

// dutiesOf are the duties of all instances, by their names.
export function dutiesOf(all: Instance[]): OneDuty[] {
  return all
    .flatMap((i) => (i.duties ?? []).map((d) => ({ ...d, instance: i.name })))
    .sort((a, b) => a.name.localeCompare(b.name))
}

// signOf is the age of the last sign of life in words. Without one, nobody knows how old it is.
export function signOf(i: Pick<Instance, 'isThis' | 'quietSeconds'>): string {
  if (i.isThis) return 'now'
  if (i.quietSeconds === undefined) return 'none seen yet'
  const s = Math.floor(i.quietSeconds)
  if (s < 2) return 'now'
  if (s < 120) return `${s} s ago`
  return s < 7200 ? `${Math.floor(s / 60)} min ago` : `${Math.floor(s / 3600)} h ago`
}

// cutOff says whether an instance that lives gets no answer from the one with the engine. Of a silent one nobody knows.
export const cutOff = (i: Instance) => !!i.cutOff && i.life === 'alive'

// inviteNot says why no machine can become an instance of a database.
export const inviteNot = (kind: string | undefined) =>
  kind === 'sqlite' ? 'a file of SQLite has one instance: slipway database move' : undefined

// drainNot says why an instance cannot be drained, as far as the page knows; the server says it otherwise.
export function drainNot(i: Instance, all: Instance[]): string | undefined {
  const others = all.filter((o) => o.name !== i.name && o.life === 'alive' && !o.isDrained)
  return others.length === 0 && i.life !== 'silent' && i.life !== 'stopped'
    ? 'no other instance is alive to take its duties'
    : undefined
}

// deleteNot says why an instance cannot be deleted.
export function deleteNot(i: Instance): string | undefined {
  if (i.isThis || i.life === 'alive') return 'it runs: stop it first'
  return i.life === 'unknown' ? 'nobody knows yet whether it runs' : undefined
}

// placesOf are the addresses by which people reach an instance. Those of one link (fe80::) say nothing to them.
export const placesOf = (i: Instance) => (i.addresses ?? []).filter((a) => !a.startsWith('fe80:')).join(', ')

// becameOf is which instance a machine became with an invitation, and from which address it asked.
export const becameOf = (i: Schemas['Invitation']) =>
  [i.usedAs && `by ${i.usedAs}`, i.usedFrom && `from ${i.usedFrom}`].filter(Boolean).join(' ')
