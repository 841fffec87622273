import type { Host } from '../../api/client'

// A search is words with a space between: name=value, name!=value, name>number, label:key, !word, or a word that
// stands anywhere. Sizes may end in K, M, G or T.
export interface Term {
  isNot: boolean
  field: string // "" for a word that stands anywhere
  op: '' | '=' | '>' | '<'
  value: string
}

export function parse(search: string): Term[] {
  const terms: Term[] = []
  for (const text of search.match(/(?:"[^"]*"|\S)+/g) ?? []) {
    const word = text.replaceAll('"', '')
    const isNot = word.startsWith('!')
    const m = /^!?([\w.]+)(!=|=|>|<|:)(.*)$/.exec(word)
    if (!m) {
      terms.push({ isNot, field: '', op: '', value: (isNot ? word.slice(1) : word).toLowerCase() })
      continue
    }
    const [, field = '', op = '', value = ''] = m
    if (op === ':')
      terms.push({
        isNot,
        field: field === 'label' ? `label.${value}` : field,
        op: field === 'label' ? '' : '=',
        value,
      })
    else terms.push({ isNot: isNot !== (op === '!='), field, op: op === '!=' ? '=' : (op as Term['op']), value })
  }
  return terms
}

const units: Record<string, number> = { K: 1 << 10, M: 1 << 20, G: 1 << 30, T: 2 ** 40 }

export function numberOf(text: string): number {
  const m = /^(\d+(?:\.\d+)?)([KMGT]?)i?B?$/i.exec(text)
  return m ? Number(m[1]) * (units[(m[2] ?? '').toUpperCase()] ?? 1) : Number.NaN
}

export function fieldOf(h: Host, field: string): string {
  if (field.startsWith('label.')) return h.labels?.[field.slice(6)] ?? ''
  switch (field) {
    case 'name':
      return h.name
    case 'state':
      return h.state
    case 'site':
    case 'row':
    case 'rack':
      return h.place[field] ?? ''
    case 'mac':
      return (h.nics ?? []).map((n) => n.mac).join(' ')
    case 'memory':
      return String((h.memoryMiB ?? 0) * 2 ** 20)
    case 'vendor':
      return h.manufacturer ?? ''
    case 'model':
      return h.product ?? ''
    case 'serial':
      return h.serial ?? ''
    case 'machine':
      return h.machine ?? ''
    case 'profile':
      return h.profile ?? ''
    case 'arch':
      return h.arch ?? ''
    case 'firmware':
      return h.firmware ?? ''
  }
  return h.labels?.[field] ?? ''
}

const everywhere = ['name', 'state', 'site', 'row', 'rack', 'mac', 'vendor', 'model', 'serial', 'machine']

export function matches(h: Host, terms: Term[]): boolean {
  return terms.every((t) => {
    const isIt = () => {
      if (t.field === '') return everywhere.some((f) => fieldOf(h, f).toLowerCase().includes(t.value))
      const have = fieldOf(h, t.field)
      switch (t.op) {
        case '>':
          return numberOf(have) > numberOf(t.value)
        case '<':
          return numberOf(have) < numberOf(t.value)
        case '=':
          return t.field === 'mac' ? have.includes(t.value.toLowerCase()) : have.toLowerCase() === t.value.toLowerCase()
      }
      return have !== '' || Object.hasOwn(h.labels ?? {}, t.field.replace(/^label\./, ''))
    }
    return isIt() !== t.isNot
  })
}
