import type { Event, Schemas } from '../../api/client'

export type Step = Schemas['TimelineStep']
export type Group = Schemas['TimelineGroup']
export type Expected = Schemas['Expected']

const ms = (at: string | undefined) => (at ? Date.parse(at) : Number.NaN)

// tookOf is how long something took in seconds, or has taken until now; undefined before it began.
export function tookOf(s: { startedAt?: string; endedAt?: string }, now: number): number | undefined {
  const begin = ms(s.startedAt)
  if (Number.isNaN(begin)) return undefined
  const end = s.endedAt ? ms(s.endedAt) : now
  return Math.max(0, (end - begin) / 1000)
}

// bootTimeOf is how long a boot or an operation took, less the time that its machine was told to wait.
export function bootTimeOf(g: Pick<Group, 'startedAt' | 'endedAt' | 'waitedSeconds'>, now: number): number | undefined {
  const took = tookOf(g, now)
  return took === undefined ? undefined : Math.max(0, took - (g.waitedSeconds ?? 0))
}

// seconds writes a duration as people read it.
export function seconds(s: number): string {
  if (s > 0 && s < 0.95) return `${Math.max(1, Math.round(s * 1000))} ms`
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`
  const m = Math.floor(s / 60)
  if (m < 60) return `${m} min ${Math.round(s % 60)} s`
  return `${Math.floor(m / 60)} h ${m % 60} min`
}

// leftOf writes what is left until a time as minutes and seconds; '' when it has passed.
export function leftOf(by: string, now: number): string {
  const s = Math.round((ms(by) - now) / 1000)
  if (s < 0) return ''
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`
}

// isSlow reports whether a step takes clearly longer than it usually does.
export function isSlow(s: Step, now: number): boolean {
  const took = tookOf(s, now)
  return took !== undefined && (s.sampleN ?? 0) >= 3 && took > 2 * (s.usualSeconds ?? 0) + 5
}

export interface Bar {
  left: number // all in percent of the group
  width: number
  usual?: number
}

// spanOf is how long the steps of a group took together: a boot that then waits for hours does not make them thin.
function spanOf(g: Group, now: number): number | undefined {
  const ends = g.steps.map((s) => (s.state === 'running' ? now : ms(s.endedAt))).filter((t) => !Number.isNaN(t))
  if (ends.length === 0) return tookOf(g, now)
  return Math.max(0, (Math.max(...ends) - ms(g.startedAt)) / 1000)
}

// barOf places a step within its group.
export function barOf(s: Step, g: Group, now: number): Bar | undefined {
  const whole = spanOf(g, now)
  const took = tookOf(s, now)
  if (!whole || took === undefined) return undefined
  const left = Math.min(100, Math.max(0, ((ms(s.startedAt) - ms(g.startedAt)) / 1000 / whole) * 100))
  const width = Math.min(100 - left, (took / whole) * 100)
  return {
    left,
    width,
    ...(s.sampleN && { usual: Math.min(100, left + ((s.usualSeconds ?? 0) / whole) * 100) }),
  }
}

// isOf reports whether an event belongs to a step of a boot or operation, by its time; doors note side by side, so a
// little is allowed on both ends.
export function isOf(e: Pick<Event, 'at'>, of: { startedAt?: string; endedAt?: string }): boolean {
  const at = ms(e.at)
  const begin = ms(of.startedAt)
  if (Number.isNaN(begin) || at < begin - 50) return false
  return !of.endedAt || at <= ms(of.endedAt) + 50
}

const chapters: Record<string, string> = {
  dhcp: 'DHCP',
  loader: 'loader',
  script: 'script',
  boot: 'decision and reports',
  artefact: 'kernel, RAM disk, images',
  config: 'configuration',
  agent: 'our agent',
  operation: 'operations',
  host: 'the host itself',
  power: 'power',
  bmc: 'controller',
  issue: 'issues',
  state: 'state',
  session: 'boots',
}

// kinds are the filters for events: the part of a kind before its dot.
export const kinds = Object.entries(chapters)
