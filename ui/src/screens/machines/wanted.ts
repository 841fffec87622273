import { flags, shell } from '../../parts/cli'
import { linesOf } from '../../parts/written'

// Wanted is what the form of a machine holds, as text.
export interface Wanted {
  name: string
  count: string
  profile: string
  revision: string
  pool: string
  host: string
  selector: string
  domain: string
  hostname: string
  parameters: string // NAME=VALUE, one in a line
  clean: string
  hooks: string // STEP:OWNER, one a line
  config: string
}

export const nothingWanted: Wanted = {
  name: '',
  count: '1',
  profile: '',
  revision: '',
  pool: '',
  host: '',
  selector: '',
  domain: '',
  hostname: '',
  parameters: '',
  clean: '',
  hooks: '',
  config: '',
}

// cleaning is how disks are wiped when a machine goes.
export const cleaning: [string, string][] = [
  ['', 'as the pool says'],
  ['none', 'leave them'],
  ['quick', 'quick wipe'],
  ['full', 'full wipe'],
  ['secure', 'secure erase'],
]

export const countMax = 100

// namesOf are the names that a form asks for: web for one, web-1 to web-3 for three; a # stands for the number.
export function namesOf(w: Pick<Wanted, 'name' | 'count'>): string[] {
  const n = Math.min(countMax, Math.max(1, Math.floor(Number(w.count)) || 1))
  if (n === 1) return [w.name.replace('#', '1')]
  const name = w.name.includes('#') ? w.name : `${w.name}-#`
  return Array.from({ length: n }, (_, i) => name.replace('#', String(i + 1)))
}

function halves(text: string, by: string): [string, string][] {
  return linesOf(text).map((l) => {
    const at = l.indexOf(by)
    return at < 0 ? [l, ''] : [l.slice(0, at).trim(), l.slice(at + 1).trim()]
  })
}

// bodyOf is a machine as the API takes it.
export function bodyOf(w: Wanted, name: string) {
  const placement = {
    ...(w.host && { host: w.host }),
    ...(w.selector && { selector: w.selector }),
    ...(w.domain && {
      failureDomain: w.domain.replace(/^prefer:/, ''),
      ...(w.domain.startsWith('prefer:') && { isDomainPreferred: true }),
    }),
  }
  return {
    name,
    profile: w.profile,
    ...(Number(w.revision) > 0 && { profileRevision: Number(w.revision) }),
    ...(w.pool && { pool: w.pool }),
    ...(Object.keys(placement).length > 0 && { placement }),
    ...(w.hostname && { hostname: w.hostname }),
    ...(w.parameters.trim() && { parameters: Object.fromEntries(halves(w.parameters, '=')) }),
    ...(w.clean && { clean: w.clean }),
    ...(w.hooks.trim() && { hooks: halves(w.hooks, ':').map(([step, owner]) => ({ step, owner })) }),
    ...(w.config.trim() && { config: w.config }),
  }
}

// cliOf is the same as a command line. Configuration of its own has no flag: then it is none.
export function cliOf(w: Wanted, name: string): string {
  if (w.config.trim()) return ''
  const more = flags({
    profile: w.profile,
    revision: w.revision,
    pool: w.pool,
    host: w.host,
    selector: w.selector,
    'failure-domain': w.domain,
    hostname: w.hostname,
    set: linesOf(w.parameters),
    clean: w.clean,
    hook: linesOf(w.hooks),
  })
  return `slipway machine create ${shell(name)}${more}`
}
