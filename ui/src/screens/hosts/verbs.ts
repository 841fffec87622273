import type { Schemas } from '../../api/client'
import { shell } from '../../parts/cli'
import { wordsOf } from '../../parts/written'

export type BulkRequest = Schemas['BulkRequest']
export type BulkItem = Schemas['BulkItem']
export type BulkResult = Schemas['BulkResult']

// Given is what a verb needs to be told, as the form has it.
export type Given = Record<string, string>

interface Field {
  name: string
  label: string
  help?: string
  choices?: string[]
  from?: 'profiles'
}

// Verb is something that can be done to many hosts.
export interface Verb {
  key: string
  title: string
  group: string
  fields?: Field[]
  warns?: string // what is lost by it: the count is typed then
  body: (g: Given) => Partial<BulkRequest> & { verb: BulkRequest['verb'] }
  flags: (g: Given) => string // of slipway host bulk
}

const flag = (verb: 'maintain' | 'protect' | 'cordon' | 'locate', on: boolean, title: string, group: string): Verb => ({
  key: `${verb}-${on ? 'on' : 'off'}`,
  title,
  group,
  body: () => ({ verb, on }),
  flags: () => (on ? '' : '--off'),
})

const power = (action: 'on' | 'off' | 'shutdown' | 'cycle' | 'reset', title: string, warns?: string): Verb => ({
  key: `power-${action}`,
  title,
  group: 'Power',
  ...(warns && { warns }),
  body: () => ({ verb: 'power', action }),
  flags: () => `--action ${action}`,
})

const modes = ['quick', 'full', 'secure', 'none'] as const

// labelsOf reads KEY=VALUE and KEY-, as the command line has them.
export function labelsOf(text: string): { labels: Record<string, string | null>; fault?: string } {
  const labels: Record<string, string | null> = {}
  for (const w of wordsOf(text)) {
    const [, key, value = ''] = /^([^=]+)=(.*)$/.exec(w) ?? []
    if (key) labels[key] = value
    else if (w.endsWith('-') && w.length > 1) labels[w.slice(0, -1)] = null
    else return { labels, fault: `"${w}" is not a label: write KEY=VALUE to set one, or KEY- to remove one` }
  }
  return { labels }
}

export const verbs: Verb[] = [
  { key: 'accept', title: 'Accept', group: '', body: () => ({ verb: 'accept' }), flags: () => '' },
  {
    key: 'inspect',
    title: 'Inspect',
    group: 'Life',
    fields: [
      {
        name: 'restart',
        label: 'Machines that run',
        choices: ['are inspected at their next boot', 'are restarted now'],
      },
    ],
    body: (g) => ({ verb: 'inspect', inspect: { mayRestart: g.restart === 'are restarted now' } }),
    flags: (g) => (g.restart === 'are restarted now' ? '--restart' : ''),
  },
  {
    key: 'install',
    title: 'Install a profile',
    group: 'Life',
    fields: [
      {
        name: 'profile',
        label: 'Profile',
        from: 'profiles',
        help: 'Without one, each host keeps the profile that it has now.',
      },
    ],
    warns:
      'An installer overwrites the disks at the next boot of each host. With a disk image, Slipway restarts these hosts at once and overwrites a disk.',
    body: (g) => ({ verb: 'install', ...(g.profile && { profile: g.profile }) }),
    flags: (g) => (g.profile ? `--profile ${shell(g.profile)}` : ''),
  },
  {
    key: 'release',
    title: 'Release',
    group: 'Life',
    warns: 'Running operations on these hosts end, even in the middle of a write. Slipway wipes nothing.',
    body: () => ({ verb: 'release' }),
    flags: () => '',
  },
  {
    key: 'confirm',
    title: 'Confirm boots',
    group: 'Life',
    warns: 'The machines that boot as these hosts now, or next within an hour, get the secrets of these hosts.',
    body: () => ({ verb: 'confirm' }),
    flags: () => '',
  },
  {
    key: 'clean',
    title: 'Wipe',
    group: 'Life',
    fields: [{ name: 'mode', label: 'Mode', choices: [...modes] }],
    warns: 'Slipway switches these hosts off. All data on their disks is lost, except on the disks to keep.',
    body: (g) => ({ verb: 'clean', mode: modes.find((m) => m === g.mode) ?? 'quick' }),
    flags: (g) => `--mode ${g.mode ?? 'quick'}`,
  },
  power('on', 'Switch on'),
  power('shutdown', 'Shut down', 'The operating systems of these hosts get an order to stop.'),
  power('off', 'Switch off', 'All programs on these hosts stop at once.'),
  power('cycle', 'Power cycle', 'All programs on these hosts stop at once.'),
  power('reset', 'Reset', 'The systems of these hosts restart at once.'),
  flag('locate', true, 'Light the identify LED', 'Power'),
  flag('locate', false, 'Switch the identify LED off', 'Power'),
  flag('maintain', true, 'Begin maintenance', 'Flags'),
  flag('maintain', false, 'End maintenance', 'Flags'),
  flag('protect', true, 'Protect', 'Flags'),
  {
    ...flag('protect', false, 'End protection', 'Flags'),
    warns: 'These hosts may be wiped and installed from then on.',
  },
  flag('cordon', true, 'Cordon', 'Flags'),
  flag('cordon', false, 'End cordon', 'Flags'),
  {
    key: 'labels',
    title: 'Set labels',
    group: 'Change',
    fields: [{ name: 'labels', label: 'Labels', help: 'KEY=VALUE sets one, KEY- removes it: pool=web tier-' }],
    body: (g) => ({ verb: 'set', set: { labels: labelsOf(g.labels ?? '').labels as Record<string, string> } }),
    flags: (g) =>
      wordsOf(g.labels ?? '')
        .map((l) => `--label ${shell(l)}`)
        .join(' '),
  },
  {
    key: 'place',
    title: 'Set place',
    group: 'Change',
    fields: [
      { name: 'site', label: 'Site', help: 'Empty fields stay as they are.' },
      { name: 'row', label: 'Row' },
      { name: 'rack', label: 'Rack' },
    ],
    body: (g) => ({
      verb: 'set',
      set: {
        place: { ...(g.site && { site: g.site }), ...(g.row && { row: g.row }), ...(g.rack && { rack: g.rack }) },
      },
    }),
    flags: (g) =>
      ['site', 'row', 'rack']
        .filter((k) => g[k])
        .map((k) => `--${k} ${shell(g[k] ?? '')}`)
        .join(' '),
  },
  {
    key: 'profile',
    title: 'Pin a profile',
    group: 'Change',
    fields: [
      { name: 'profile', label: 'Profile', from: 'profiles', help: 'Without one, selectors choose the profile.' },
    ],
    body: (g) => ({ verb: 'set', set: { profile: g.profile ?? '' } }),
    flags: (g) => `--profile ${shell(g.profile ?? '')}`,
  },
  {
    key: 'delete',
    title: 'Forget',
    group: 'Change',
    warns: 'Slipway deletes all its data about these hosts. If a machine boots again, it is a new, unaccepted host.',
    body: () => ({ verb: 'delete' }),
    flags: () => '',
  },
]

// commandOf is the command that does the same. Of many hosts, the names stand in the clipboard, not all on the screen.
export function commandOf(v: Verb, g: Given, names: readonly string[], selector?: string): string {
  const which = selector ? `--selector ${shell(selector)}` : names.map(shell).join(' ')
  return ['slipway host bulk', v.body(g).verb, which, v.flags(g)].filter(Boolean).join(' ')
}

// inChunks sends a bulk request for a part of the hosts after the other, so that the page can say how far it is and stop.
export async function inChunks(
  ids: readonly string[],
  size: number,
  send: (part: string[]) => Promise<BulkResult>,
  tell: (n: number, items: BulkItem[]) => void,
  stopped: () => boolean,
): Promise<BulkItem[]> {
  const items: BulkItem[] = []
  for (let i = 0; i < ids.length && !stopped(); i += size) {
    const out = await send(ids.slice(i, i + size))
    items.push(...(out.items ?? []))
    tell(Math.min(ids.length, i + size), [...items])
  }
  return items
}

// foreseen says what a trial foresees, each thing once with how many hosts, or the name of the one, it happens to. The sentences
// are the server's: every dialog and the command line have the same.
export function foreseen(items: readonly BulkItem[], name?: string): string[] {
  const n = new Map<string, number>()
  for (const i of items) if (i.acts && i.does) n.set(i.does, (n.get(i.does) ?? 0) + 1)
  return [...n].map(([does, k]) => {
    const text = does.replace('{hosts}', name ?? `${k} ${k === 1 ? 'host' : 'hosts'}`)
    return text.charAt(0).toUpperCase() + text.slice(1)
  })
}

// byReason gathers skipped hosts under the reasons. A host's own name in a reason would make each one another.
export function byReason(items: readonly BulkItem[]): [string, BulkItem[]][] {
  const groups = new Map<string, BulkItem[]>()
  for (const i of items) {
    if (i.acts) continue
    const reason = (i.reason ?? '').replace(`host ${i.host} `, '').replaceAll(`"${i.host}"`, '"…"')
    groups.set(reason, [...(groups.get(reason) ?? []), i])
  }
  return [...groups].sort((a, b) => b[1].length - a[1].length)
}
