import type { Nouns } from './client'

// Named are the nouns whose records have a name and a version.
export type Named = {
  [N in keyof Nouns]: Nouns[N] extends { name: string; version: number } ? N : never
}[keyof Nouns]

// Described says how people read and write a plain noun. Package inventory/noun has it of each noun, and types.mjs takes it over from
// the description of the API.
export interface Described {
  one: string // as commands call it
  many: Named // as paths call it
  needs: 'viewer' | 'operator' | 'admin' // who may write it
  own: string[] // fields that the server fills in
  called?: string // in sentences, where that is not its name
  tab?: string // among the settings
  about?: string
  add: string
  verb: string
  cmds: string[] // the commands for a new one and for a change; '' for none
  empty?: string
  hint?: string
  below?: string
  fields: Field[]
  columns?: ColumnOf[]
}

export interface Field {
  name: string // a dot is before a field of an object
  label?: string // without one it is not in the form
  kind?: Kind
  help?: string
  example?: string
  rows?: number
  isMust?: boolean
  choices?: [value: string, label: string][]
  state?: string // a selector counts only hosts in it
  says?: string // in a column, with {} for the value
  flag?: string // of the commands; its value may follow, with {} for that of the field
}

export interface ColumnOf {
  name: string
  kind?: Kind
  fields: string[]
}

export type Kind =
  | 'text'
  | 'long'
  | 'words'
  | 'numbers'
  | 'lines'
  | 'pairs'
  | 'options'
  | 'selector'
  | 'number'
  | 'gib'
  | 'flag'
  | 'choice'
  | 'secret'
  | 'time'
  | 'ranges'
