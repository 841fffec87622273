import type { Schemas } from '../api/client'
import { type Grant, ranks } from '../api/me'

type Option = Schemas['Option']

// wordsOf reads a list that is written with spaces, commas or line ends.
export const wordsOf = (text: string) => text.split(/[\s,]+/).filter(Boolean)

// linesOf reads a list that is written one in a line.
export const linesOf = (text: string) =>
  text
    .split('\n')
    .map((l) => l.trim())
    .filter(Boolean)

// rangesOf reads ranges FIRST-LAST. What is none is sent as it is, so that the server says what is wrong with it.
export const rangesOf = (text: string) =>
  wordsOf(text).map((w) => {
    const [first = '', last = first] = w.split('-')
    return { first, last }
  })

// readPairs reads lines of key=value.
export function readPairs(text: string): Record<string, string> {
  const out: Record<string, string> = {}
  for (const l of linesOf(text)) {
    const [k, ...v] = l.split('=')
    if (k?.trim()) out[k.trim()] = v.join('=').trim()
  }
  return out
}

export const writePairs = (all: Record<string, unknown>) =>
  Object.entries(all)
    .map(([k, v]) => `${k}=${v}`)
    .join('\n')

// grantsOf reads roles ROLE, everywhere, or ROLE@POOL.
export const grantsOf = (text: string): Grant[] =>
  wordsOf(text).map((w) => {
    const [is, pool] = w.split('@')
    return { role: ranks.find((r) => r === is) ?? 'viewer', ...(pool && { pool }) }
  })

export const writeGrants = (all: Grant[]) => all.map((g) => (g.pool ? `${g.role}@${g.pool}` : g.role)).join(' ')

// linesOfOptions writes options one in a line: [always:][vendor:|vendor-N:]NAME|NUMBER[/TYPE]=VALUE.
export const linesOfOptions = (all: Option[] | null | undefined) =>
  (all ?? [])
    .map(
      (o) =>
        `${o.isAlways ? 'always:' : ''}${o.space ? `${o.space}:` : ''}${o.name || o.code}${o.type ? `/${o.type}` : ''}=${o.value}`,
    )
    .join('\n')

// optionsOf reads such lines. What is none is sent as a name, so that the server says what is wrong with it.
export const optionsOf = (text: string): Option[] =>
  linesOf(text).map((line) => {
    const [, always, space, key = line, type, value = ''] =
      /^(always:)?(?:([^:=/]+):)?([^:=/]+)(?:\/([^=]*))?(?:=(.*))?$/.exec(line) ?? []
    return {
      ...(/^\d+$/.test(key) ? { code: Number(key) } : { name: key }),
      ...(space && { space }),
      ...(type && { type }),
      value,
      ...(always && { isAlways: true }),
    }
  })
