import { isObject, type Schemas } from '../api/client'
import type { Described, Field, Kind } from '../api/described'
import type { Grant } from '../api/me'
import { bytesOf } from './bytes'
import { flags, shell } from './cli'
import {
  grantsOf,
  linesOf,
  linesOfOptions,
  optionsOf,
  rangesOf,
  readPairs,
  wordsOf,
  writeGrants,
  writePairs,
} from './written'

// Filled is what a form holds: texts by the names of the fields. What is empty is not sent.
export type Filled = Record<string, string>

// FormField is a field that knows more than the server describes.
export interface FormField extends Field {
  when?: (filled: Filled) => boolean // it is left out of others
  wrong?: (text: string) => string | undefined // what is wrong with it
  isAside?: boolean // the record does not have it
}

export interface Form extends Described {
  fields: FormField[]
}

interface Writing {
  write: (value: unknown) => string
  read: (text: string) => unknown
  parts?: (text: string) => string[] // of a list
  flags?: (text: string) => Record<string, string> // of the commands
}

const gib = 2 ** 30
const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : [])
const isGrant = (v: unknown): v is Grant => isObject(v) && 'role' in v
const isOption = (v: unknown): v is Schemas['Option'] => isObject(v) && 'value' in v
const text: Writing = { write: (v) => String(v ?? ''), read: (t) => t.trim() }
const number: Writing = { write: (v) => (v ? String(v) : ''), read: Number }
const hour = 3_600_000
const words: Writing = { write: (v) => list(v).join(' '), read: wordsOf, parts: wordsOf }

const kinds: Record<Kind, Writing> = {
  text,
  long: { ...text, read: (t) => t },
  selector: text,
  choice: text,
  secret: text,
  time: text,
  which: text,
  password: text,
  expiry: { ...text, read: (t) => new Date(Date.now() + Number(t) * hour).toISOString() },
  roles: {
    write: (v) => writeGrants(list(v).filter(isGrant)),
    read: grantsOf,
    parts: wordsOf,
    flags: (t) => ({ ...grantsOf(t)[0] }),
  },
  number,
  gib: { write: (v) => number.write(Number(v ?? 0) / gib), read: (t) => Math.round(Number(t) * gib) },
  words,
  numbers: { ...words, read: (t) => wordsOf(t).map(Number) },
  lines: { write: (v) => list(v).join('\n'), read: linesOf, parts: linesOf },
  pairs: { write: (v) => (isObject(v) ? writePairs(v) : ''), read: readPairs, parts: linesOf },
  options: { write: (v) => linesOfOptions(list(v).filter(isOption)), read: optionsOf, parts: linesOf },
  ranges: {
    write: (v) =>
      list(v)
        .map((r) => `${valueAt(r, 'first')}-${valueAt(r, 'last')}`)
        .join('\n'),
    read: rangesOf,
    parts: wordsOf,
  },
  flag: { write: (v) => (v ? 'yes' : ''), read: (t) => t !== '' },
}
const kindOf = (f: Field) => kinds[f.kind ?? 'text']
const isShown = (f: FormField, filled: Filled) => f.label !== undefined && (f.when?.(filled) ?? true)

// valueAt is the value of a field.
export const valueAt = (one: unknown, name: string) =>
  name.split('.').reduce<unknown>((v, key) => (isObject(v) ? v[key] : undefined), one)

// keyOf is what the API names one by.
export const keyOf = (d: Described, one: unknown) => String(valueAt(one, d.key ?? 'name') ?? '')

// plainly is a label in the middle of a sentence.
export const plainly = (label = '') => label.replace(/^[A-Z](?=[a-z])/, (c) => c.toLowerCase())

// filledOf is what a form begins with.
export const filledOf = (d: Form, one: object | undefined): Filled =>
  Object.fromEntries(d.fields.map((f) => [f.name, kindOf(f).write(valueAt(one, f.name)) || (f.first ?? '')]))

// shownOf are the fields that the form shows.
export const shownOf = (d: Form, isNew: boolean, filled: Filled) =>
  d.fields.filter((f) => isShown(f, filled) && (isNew || f.name !== (d.key ?? 'name')))

// bodyOf is what a form sends. It keeps what the form does not show of an old one, or of what a new one begins with.
export function bodyOf(d: Form, old: object | undefined, filled: Filled): Record<string, unknown> {
  const body: Record<string, unknown> = structuredClone({ ...old })
  for (const own of d.own) delete body[own]
  for (const f of d.fields) {
    if (f.label === undefined || f.isAside) continue
    const names = f.name.split('.')
    const last = names.pop() ?? ''
    let at = body
    for (const name of names) {
      const inner = at[name]
      const next = isObject(inner) ? inner : {}
      at[name] = next
      at = next
    }
    const is = filled[f.name] ?? ''
    if (is.trim() && isShown(f, filled)) at[last] = kindOf(f).read(is)
    else delete at[last]
  }
  return body
}

// lacksOf says what has to be filled in before a form is sent.
export function lacksOf(d: Form, filled: Filled): string {
  for (const f of d.fields) {
    const is = filled[f.name]?.trim() ?? ''
    if (!isShown(f, filled)) continue
    if (f.isMust && !is) return `it has no ${plainly(f.label)}`
    const wrong = f.wrong?.(is)
    if (wrong) return `the ${plainly(f.label)}: ${wrong}`
  }
  return ''
}

// cliOf is the same as a command; '' where there is none.
export function cliOf(d: Form, isNew: boolean, filled: Filled): string {
  const command = d.cmds[isNew ? 0 : 1]
  if (!command) return ''
  const key = d.key ?? 'name'
  const given: Record<string, string[] | boolean> = {}
  for (const f of d.fields) {
    const is = filled[f.name]?.trim()
    if (!is || !isShown(f, filled)) continue
    for (const [flag, v] of Object.entries(kindOf(f).flags?.(is) ?? {})) given[flag] = [v]
    if (!f.flag) continue
    const [flag = '', as = '{}'] = f.flag.split(' ')
    const all = kindOf(f).parts?.(is) ?? [is]
    given[flag] = f.kind === 'flag' || [...list(given[flag]).map(String), ...all.map((x) => as.replace('{}', () => x))]
  }
  return `slipway ${d.one} ${command} ${shell(filled[key]?.trim() || key.toUpperCase())}${flags(given)}`
}

// saidOf are the words for a field in a column; none for an empty one.
export function saidOf(d: Described, one: unknown, name: string): string[] {
  const f = d.fields.find((x) => x.name === name)
  const value = valueAt(one, name)
  if (!f || !value) return []
  const written = f.kind === 'gib' ? bytesOf(Number(value)) : kindOf(f).write(value)
  const all =
    f.kind === 'pairs' ? linesOf(written).map((l) => l.replace('=', ' ')) : (kindOf(f).parts?.(written) ?? [written])
  return all.map((x) => (f.says ?? '{}').replace('{}', () => x))
}
