import type { HostRow } from '../../api/rows'

// A search is terms with a space between, which must all hold; "or" between terms leaves a choice. A term is key=value,
// key!=value, key>number, key<number, key~expression, label:key, key:value, or a word that stands anywhere; ! before it turns
// it round. docs/search.md has the whole of it.
export interface Term {
  isNot: boolean
  key: string // "" for a word that stands anywhere
  op: '' | '=' | '>' | '<' | '~'
  value: string
  number?: number // of > and <, in the key's unit
  re?: RegExp
}

export interface Search {
  any: Term[][] // one of these lists must hold as a whole
  faults: string[] // what is not understood
  hasTime: boolean // what it finds changes by itself
}

type Kind = 'text' | 'size' | 'age' | 'number' | 'list'

interface Key {
  about: string
  kind: Kind
  of: (h: HostRow) => string | number | readonly string[]
}

const text = (about: string, of: (h: HostRow) => string | undefined): Key => ({
  about,
  kind: 'text',
  of: (h) => of(h) ?? '',
})

// keys are what can be searched for by name.
export const keys: Record<string, Key> = {
  name: text('its name', (h) => h.name),
  state: text('discovered, available, active, ...', (h) => h.state),
  site: text('site', (h) => h.place.site),
  row: text('row', (h) => h.place.row),
  rack: text('rack', (h) => h.place.rack),
  unit: { about: 'rack unit', kind: 'number', of: (h) => h.place.unit ?? 0 },
  manufacturer: text('manufacturer', (h) => h.manufacturer),
  model: text('product', (h) => h.product),
  serial: text('serial number', (h) => h.serial),
  asset: text('asset tag', (h) => h.assetTag),
  uuid: text('SMBIOS UUID', (h) => h.uuid),
  arch: text('x86_64, arm64, i386', (h) => h.arch),
  firmware: text('bios, uefi, uefi-http', (h) => h.firmware),
  cpu: text('processor', (h) => h.cpu),
  memory: { about: 'memory, such as memory>256G', kind: 'size', of: (h) => (h.memoryMiB ?? 0) * 2 ** 20 },
  pool: text('pool of its machine', (h) => h.pool),
  profile: text('pinned profile', (h) => h.profile),
  machine: text('machine that has it', (h) => h.machine),
  power: text('on, off, unknown', (h) => h.power),
  driver: text('how it is powered', (h) => h.driver),
  vendor: text('the maker of its network card', (h) => h.vendor),
  ip: text('address leased last', (h) => h.address),
  switch: text('switch and port', (h) => h.switch),
  mac: { about: 'any MAC, or the beginning of one', kind: 'list', of: (h) => h.macs ?? [] },
  flag: { about: 'protected, maintenance, cordoned, ...', kind: 'list', of: (h) => h.flags ?? [] },
  issue: { about: 'type of an open issue; issue:any for any', kind: 'list', of: (h) => h.issues ?? [] },
  lastSeen: { about: 'time since its last packet, such as lastSeen>1h', kind: 'age', of: (h) => ageOf(h.lastSeenAt) },
  stateFor: { about: 'time in its state, such as stateFor>1d', kind: 'age', of: (h) => ageOf(h.stateSinceAt) },
  age: { about: 'time since its first packet', kind: 'age', of: (h) => ageOf(h.createdAt) },
}

const same: Record<string, string> = {
  product: 'model',
  address: 'ip',
  flags: 'flag',
  issues: 'issue',
  seen: 'lastSeen',
  assetTag: 'asset',
}

// keyNamed finds a key in any case, or by another word for it.
function keyNamed(name: string): string | undefined {
  const key = Object.hasOwn(same, name) ? (same[name] as string) : name
  if (Object.hasOwn(keys, key)) return key
  return Object.keys(keys).find((k) => k.toLowerCase() === key.toLowerCase())
}

function ageOf(at: string | undefined): number {
  if (!at || at.startsWith('0001')) return Number.POSITIVE_INFINITY
  return (Date.now() - Date.parse(at)) / 1000
}

const sizes: Record<string, number> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 }
const times: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400, w: 7 * 86400 }

// numberOf reads a size as people write it: 64G, 1.5TiB.
export function numberOf(t: string): number {
  const m = /^(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?$/i.exec(t)
  return m ? Number(m[1]) * (sizes[(m[2] ?? '').toUpperCase()] ?? 1) : Number.NaN
}

// secondsOf reads a time as people write it: 90s, 15m, 1h, 2d.
export function secondsOf(t: string): number {
  const m = /^(\d+(?:\.\d+)?)([smhdw])$/.exec(t)
  return m ? Number(m[1]) * (times[m[2] as string] as number) : Number.NaN
}

// parse reads a search; what is not understood is said, and found nowhere.
export function parse(search: string): Search {
  const out: Search = { any: [[]], faults: [], hasTime: false }
  if ((search.match(/"/g) ?? []).length % 2) out.faults.push('a " is open: close it')
  for (const part of search.slice(0, 1000).match(/(?:"[^"]*"?|[^\s"])+/g) ?? []) {
    if (part === 'or' || part === 'OR') {
      if (out.any.at(-1)?.length === 0) out.faults.push('"or" stands between two terms')
      else out.any.push([])
      continue
    }
    const t = termOf(part)
    if (typeof t === 'string') out.faults.push(t)
    else out.any.at(-1)?.push(t)
    if (typeof t !== 'string' && keys[t.key]?.kind === 'age') out.hasTime = true
  }
  if (out.any.length > 1 && out.any.at(-1)?.length === 0) out.faults.push('"or" stands between two terms')
  return out
}

// termOf reads one term, or says what is wrong with it.
function termOf(part: string): Term | string {
  const isQuoted = /^!?"/.test(part)
  let isNot = part.startsWith('!')
  const word = (isNot ? part.slice(1) : part).replaceAll('"', '')
  const m = isQuoted ? null : /^([\w./-]+?)(!=|=|>|<|~|:)(.*)$/.exec(word)
  if (!m) return { isNot, key: '', op: '', value: word.toLowerCase() }
  let [, name = '', op = '', value = ''] = m
  if (name === 'label') {
    const l = /^([^=!~]*)(?:(!=|=|~)(.*))?$/.exec(value)
    name = `label.${l?.[1] ?? ''}`
    op = l?.[2] ?? ''
    value = l?.[3] ?? ''
    if (name === 'label.') return 'label: needs a key, as in label:gpu or label:tier=web'
  }
  if (op === '!=') isNot = !isNot
  const key = name.startsWith('label.') ? name : keyNamed(name)
  if (key === undefined) {
    // 52:54:00 and the like are words, not keys.
    if (op === ':' && !/^[a-z]{3,}$/i.test(name)) return { isNot, key: '', op: '', value: word.toLowerCase() }
    return `"${name}" is not a key: use one of ${Object.keys(keys).join(', ')}, or label:${name}${op === ':' ? '' : `${op}${value}`}`
  }
  const t: Term = { isNot, key, op: op === ':' || op === '!=' ? '=' : (op as Term['op']), value: value.toLowerCase() }
  return checked(t, value)
}

// checked fills in what a term compares with, or says why it cannot.
function checked(t: Term, value: string): Term | string {
  const kind = keys[t.key]?.kind ?? 'text'
  if (t.op === '~') {
    try {
      t.re = new RegExp(value, 'i')
    } catch {
      return `${t.key}~${value}: not a regular expression`
    }
    if (value.length > 200) return `${t.key}~: the expression is too long`
  }
  if (t.op === '>' || t.op === '<') {
    t.number = kind === 'age' ? secondsOf(value) : kind === 'size' ? numberOf(value) : Number(value || 'x')
    if (kind === 'text' || kind === 'list') return `${t.key} cannot be compared by size: use ${t.key}= or ${t.key}~`
    if (Number.isNaN(t.number))
      return kind === 'age'
        ? `"${value}" is not a time: write 90s, 15m, 1h or 2d`
        : kind === 'size'
          ? `"${value}" is not a size: write 64G or 1.5T`
          : `"${value}" is not a number`
  }
  if (kind === 'size' && t.op === '=' && value !== '') t.number = numberOf(value)
  if (kind === 'size' && t.op === '=' && Number.isNaN(t.number)) return `"${value}" is not a size: write 64G or 1.5T`
  if (kind === 'age' && t.op === '=') return `${t.key} is compared with > or <, as in ${t.key}>1h`
  return t
}

const haystacks = new WeakMap<HostRow, string>()

// haystack is all that a bare word is looked for in.
function haystack(h: HostRow): string {
  let hay = haystacks.get(h)
  if (hay === undefined) {
    const { place: p, macs } = h
    const own = `${h.name}\n${h.state}\n${h.manufacturer ?? ''}\n${h.product ?? ''}\n${h.serial ?? ''}\n${h.assetTag ?? ''}\n${h.profile ?? ''}`
    const around = `${p.site ?? ''}\n${p.row ?? ''}\n${p.rack ?? ''}\n${h.machine ?? ''}\n${h.pool ?? ''}\n${h.address ?? ''}\n${h.vendor ?? ''}`
    hay = `${own}\n${around}\n${macs ? macs.join('\n') : ''}`.toLowerCase()
    haystacks.set(h, hay)
  }
  return hay
}

function holds(h: HostRow, t: Term): boolean {
  if (t.key === '') return haystack(h).includes(t.value)
  if (t.key.startsWith('label.')) {
    const have = h.labels?.[t.key.slice(6)]
    if (have === undefined) return false
    return t.op === '' || (t.re ? t.re.test(have) : have.toLowerCase() === t.value)
  }
  const key = keys[t.key] as Key
  const have = key.of(h)
  if (t.number !== undefined) {
    if (t.op === '=') return have === t.number
    if (key.kind === 'size' && have === 0) return false // not known
    return t.op === '>' ? (have as number) > t.number : (have as number) < t.number
  }
  if (key.kind === 'list') {
    const all = have as readonly string[]
    if (t.op === '=' && t.value === 'any') return all.length > 0
    if (t.value === '' && !t.re) return all.length === 0
    return all.some((v) =>
      t.re ? t.re.test(v) : t.key === 'mac' ? v.startsWith(t.value.replaceAll('-', ':')) : v.toLowerCase() === t.value,
    )
  }
  const one = key.kind === 'number' && have === 0 ? '' : String(have)
  return t.re ? t.re.test(one) : one.toLowerCase() === t.value
}

// matches says whether a host is found. A search with faults finds what the rest of it does.
export function matches(h: HostRow, s: Search): boolean {
  return s.any.some((all) => all.every((t) => holds(h, t) !== t.isNot))
}

// valueOf is what a host has under a key, for grouping and counting; several values are several.
export function valuesOf(h: HostRow, key: string): readonly string[] {
  if (key.startsWith('label:')) return [h.labels?.[key.slice(6)] ?? '']
  const have = keys[key]?.of(h) ?? ''
  if (typeof have === 'object') return have.length ? have : ['']
  return [String(have)]
}

// quoted writes a value so that a search reads it as one.
export const quoted = (value: string) =>
  /[\s"]/.test(value) || value === '' ? `"${value.replaceAll('"', '')}"` : value

// isLike says whether two searches' terms are about the same value.
const termText = (key: string, value: string) => `${key.startsWith('label:') ? key : key}=${quoted(value)}`

// has says whether a search asks for a value of a key.
export function has(search: string, key: string, value: string): boolean {
  return wordsOf(search).includes(termText(key, value))
}

const wordsOf = (search: string): string[] => search.match(/(?:"[^"]*"?|[^\s"])+/g) ?? []

// turned puts a value of a key into a search, or takes it out. Two values of one key would find nothing: the new one takes
// the place of the old.
export function turned(search: string, key: string, value: string): string {
  const term = termText(key, value)
  const words = wordsOf(search)
  if (words.includes(term)) return words.filter((w) => w !== term).join(' ')
  return [...words.filter((w) => !w.startsWith(`${key}=`)), term].join(' ')
}

const searchKey = (t: Term) => t.key.replace(/^label\./, 'label:')

// completions are what the last word of a search may become.
export function completions(search: string, rows: readonly HostRow[]): string[] {
  const word = /\S*$/.exec(search)?.[0] ?? ''
  const before = search.slice(0, search.length - word.length)
  const bare = word.replace(/^!/, '')
  const not = word.startsWith('!') ? '!' : ''
  const m = /^([\w.:/-]+?)(=|:)([^=]*)$/.exec(bare)
  if (m && m[1] !== 'label') {
    const key = m[1]?.startsWith('label:') ? (m[1] as string) : keyNamed(m[1] as string)
    if (!key || keys[key]?.kind === 'size' || keys[key]?.kind === 'age') return []
    const values = new Map<string, number>()
    for (const h of rows)
      for (const v of valuesOf(h, key))
        if (v?.toLowerCase().startsWith((m[3] ?? '').toLowerCase().replaceAll('"', '')))
          values.set(v, (values.get(v) ?? 0) + 1)
    return [...values]
      .sort((a, b) => b[1] - a[1])
      .slice(0, 8)
      .map(([v]) => `${before}${not}${m[1]}${m[2]}${quoted(v)} `)
  }
  if (bare === '') return []
  const labels = new Set<string>()
  if (bare.startsWith('label') || bare.length > 1)
    for (const h of rows) for (const k of Object.keys(h.labels ?? {})) labels.add(`label:${k}`)
  return [
    ...Object.keys(keys).map((k) => `${k}${['size', 'age'].includes(keys[k]?.kind ?? '') ? '>' : '='}`),
    ...labels,
  ]
    .filter((k) => k.toLowerCase().startsWith(bare.toLowerCase()) && k !== bare)
    .slice(0, 8)
    .map((k) => `${before}${not}${k}`)
}

// selectorOf is the selector for the command line that finds the same of these hosts; undefined where there is none.
export function selectorOf(search: string, rows: readonly HostRow[]): string | undefined {
  const s = parse(search)
  const own: Record<string, string> = { model: 'product', asset: 'assetTag' }
  const known = [
    'name',
    'state',
    'site',
    'row',
    'rack',
    'manufacturer',
    'product',
    'serial',
    'assetTag',
    'arch',
    'firmware',
    'uuid',
  ]
  const terms = s.any.length === 1 && s.faults.length === 0 ? s.any[0] : undefined
  const words = wordsOf(search)
  if (!terms?.length || words.length !== terms.length) return undefined
  const out: string[] = []
  for (const [i, t] of terms.entries()) {
    // The case of a value counts for a selector: it is taken as it was written.
    const exact = /[=:~]([^=]*)$/.exec(words[i] as string)?.[1]?.replaceAll('"', '') ?? ''
    if (t.key.startsWith('label.') && t.op === '') out.push(`${t.isNot ? '!' : ''}label:${t.key.slice(6)}`)
    else if (t.key !== '' && t.op === '=' && t.number === undefined && exact !== '') {
      const key = t.key.startsWith('label.') ? `label:${t.key.slice(6)}` : (own[t.key] ?? t.key)
      if (!t.key.startsWith('label.') && !known.includes(key)) return undefined
      if (
        exact.includes(',') ||
        rows.some((h) => valuesOf(h, searchKey(t)).some((v) => v !== exact && v.toLowerCase() === t.value))
      )
        return undefined
      out.push(`${key}${t.isNot ? '!=' : '='}${exact}`)
    } else return undefined
  }
  return out.join(',')
}
