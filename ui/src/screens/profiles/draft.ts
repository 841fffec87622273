import type { Finding, Profile, Schemas } from '../../api/client'
import type { Mark } from '../../parts/Editor'
import { linesOf } from '../../parts/written'

// Draft is a profile as it is edited: lists are texts with a line for each.
export interface Draft {
  image: string
  selector: string
  priority: string
  args: string
  parameters: string
  extends: string
  format: string
  accepts: string
  isolated: string // yes or no
  documentFormat: string
  document: string
  config: string
}

export type Field = keyof Draft

// words are what the fields are called, in the order in which they are shown.
export const words: Record<Field, string> = {
  image: 'image',
  selector: 'selector',
  priority: 'priority',
  args: 'kernel arguments',
  parameters: 'parameters',
  extends: 'extends',
  format: 'format',
  accepts: 'accepts',
  isolated: 'isolated',
  documentFormat: 'format of the document',
  document: 'document',
  config: 'configuration',
}
export const fields = Object.keys(words) as Field[]

// template is what a new profile begins with, to be changed.
export const template = `# What the hosts of this profile become. Slipway writes it in the format that the image reads.
users:
  - name: admin
    groups: [sudo]
    sshKeys: []        # put the whole line of your .pub file between the brackets
files:
  - path: /etc/motd
    text: |
      This is {{ .Host.Name }}.
# network, storage, packages, units, commands and more: docs/machine-config.md
# A secret by its name: passwordHash: secret://admin-hash
`

export const blank: Draft = {
  image: '',
  selector: '',
  priority: '0',
  args: '',
  parameters: '',
  extends: '',
  format: '',
  accepts: '',
  isolated: 'no',
  documentFormat: '',
  document: '',
  config: template,
}

type Sent = Omit<Schemas['Profile'], 'createdAt' | 'updatedAt' | 'version' | 'revision'>

export function draftOf(p: Sent): Draft {
  return {
    image: p.image,
    selector: p.selector ?? '',
    priority: String(p.priority ?? 0),
    args: (p.kernelArgs ?? []).join('\n'),
    parameters: Object.entries(p.parameters ?? {})
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, v]) => `${k}=${v}`)
      .join('\n'),
    extends: p.extends ?? '',
    format: p.format ?? '',
    accepts: (p.accepts ?? []).join('\n'),
    isolated: p.isolated ? 'yes' : 'no',
    documentFormat: p.document?.format ?? '',
    document: p.document?.text ?? '',
    config: p.config ?? '',
  }
}

// sentOf is what is sent of a draft; what is empty is left out.
export function sentOf(name: string, d: Draft): Sent {
  const parameters = Object.fromEntries(
    linesOf(d.parameters).map((l) => {
      const at = l.indexOf('=')
      return at < 0 ? [l, ''] : [l.slice(0, at).trim(), l.slice(at + 1).trim()]
    }),
  )
  return {
    name,
    image: d.image,
    priority: Number.parseInt(d.priority, 10) || 0,
    ...(d.selector.trim() && { selector: d.selector.trim() }),
    ...(d.args.trim() && { kernelArgs: linesOf(d.args) }),
    ...(d.parameters.trim() && { parameters }),
    ...(d.extends && { extends: d.extends }),
    ...(d.format && { format: d.format }),
    ...(d.accepts.trim() && { accepts: linesOf(d.accepts) }),
    ...(d.isolated === 'yes' && { isolated: true }),
    ...(d.document.trim() && {
      document: { format: d.documentFormat, text: d.document },
    }),
    ...(d.config.trim() && { config: d.config }),
  }
}

export const changed = (a: Draft, b: Draft): Field[] => fields.filter((f) => a[f] !== b[f])

// merged puts what I changed upon what they stored; clashes are fields that both of us changed, each in another way.
export function merged(base: Draft, mine: Draft, theirs: Draft): { draft: Draft; clashes: Field[] } {
  const draft = { ...theirs }
  const clashes: Field[] = []
  for (const f of changed(base, mine)) {
    if (theirs[f] !== base[f] && theirs[f] !== mine[f]) clashes.push(f)
    draft[f] = mine[f]
  }
  return { draft, clashes }
}

// marksOf gives findings to the text that they are about: what is not in a text of this name has no line.
export function marksOf(findings: Finding[], text: string): { here: Mark[]; elsewhere: Mark[] } {
  const here: Mark[] = []
  const elsewhere: Mark[] = []
  for (const f of findings) {
    const [, source = f.source ?? '', line = '0'] = /^(.*?):(\d+)(?::\d+)?$/.exec(f.source ?? '') ?? []
    const mark: Mark = { line: 0, severity: f.severity, message: f.message, hint: f.hint }
    if (source === text) here.push({ ...mark, line: Number(line), about: f.path })
    else elsewhere.push({ ...mark, about: [f.source, f.path].filter(Boolean).join(' ') })
  }
  here.sort((a, b) => a.line - b.line)
  return { here, elsewhere }
}

const quoted = (s: string) => (/^[A-Za-z0-9._:/@=%+-]+$/.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`)

// commandOf is the command that would do the same; texts come from files.
export function commandOf(name: string, before: Draft | undefined, d: Draft): string {
  const parts = before ? ['slipway profile set', quoted(name)] : ['slipway profile create', quoted(name)]
  const all = before ? changed(before, d) : changed({ ...blank, config: '' }, d)
  const flag = (f: Field, text: string) => all.includes(f) && parts.push(text)
  flag('image', `--image ${quoted(d.image)}`)
  flag('selector', `--selector ${quoted(d.selector)}`)
  flag('priority', `--priority ${quoted(d.priority)}`)
  for (const a of linesOf(d.args)) flag('args', `--arg=${quoted(a)}`)
  if (d.args.trim() === '') flag('args', "--arg ''")
  for (const p of linesOf(d.parameters)) flag('parameters', `--set ${quoted(p)}`)
  flag('extends', `--extends ${quoted(d.extends)}`)
  flag('format', `--format ${quoted(d.format)}`)
  for (const a of linesOf(d.accepts)) flag('accepts', `--accept ${quoted(a)}`)
  flag('isolated', d.isolated === 'yes' ? '--isolated' : '--no-isolated')
  if (all.includes('document') || all.includes('documentFormat')) {
    parts.push(
      d.document.trim() ? `--document ${name}.txt --document-format ${quoted(d.documentFormat)}` : "--document ''",
    )
  }
  flag('config', d.config.trim() ? `--config ${quoted(`${name}.yaml`)}` : "--config ''")
  return parts.join(' ')
}

export const isSame = (p: Profile | undefined, d: Draft) => p !== undefined && changed(draftOf(p), d).length === 0
