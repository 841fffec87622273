import type { Entry } from '../../api/audit'

const edits: Record<string, 'created' | 'changed' | 'deleted'> = {
  create: 'created',
  update: 'changed',
  delete: 'deleted',
}

// outcome is what became of a request, in a word.
export function outcome(e: Pick<Entry, 'status' | 'change'>): 'refused' | 'created' | 'changed' | 'deleted' | 'done' {
  if (e.status >= 400) return 'refused'
  return edits[e.change ?? ''] ?? 'done'
}

// what names an operation of the API as people say it: power-host is "power host".
export const what = (operation: string) => operation.replaceAll('-', ' ')

const pages: Record<string, string> = {
  host: '/hosts/',
  bmc: '/hosts/',
  machine: '/machines/',
  pool: '/pools/',
  profile: '/profiles/',
  operation: '/operations/',
}

// placeOf is where the thing is shown that an entry is about; '' when there is no such page.
export function placeOf(e: Pick<Entry, 'noun' | 'name' | 'change' | 'status'>): string {
  const page = pages[e.noun]
  return page && e.name && !(e.change === 'delete' && e.status < 400) ? page + encodeURIComponent(e.name) : ''
}

// plainOf writes a value of a change as text.
export function plainOf(v: unknown): string {
  if (v === null || v === undefined) return ''
  return typeof v === 'string' ? v : JSON.stringify(v, null, 1).replaceAll(/\n\s*/g, ' ')
}

// isText reports whether a value is better read line by line.
export const isText = (v: unknown) => typeof v === 'string' && v.includes('\n')

export const spans = { hour: 3600, day: 86400, week: 7 * 86400, month: 30 * 86400 } as const

// sinceOf turns a span's name into the time it began; a minute more or less does not matter, so that the same list keeps
// its name for that long.
export function sinceOf(span: string, now = Date.now()): string {
  const seconds = spans[span as keyof typeof spans]
  if (!seconds) return ''
  return new Date(Math.floor(now / 60_000) * 60_000 - seconds * 1000).toISOString().replace('.000', '')
}
