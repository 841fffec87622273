import type { Nouns } from './client'
import type { Role } from './me'

// Described says how people read and write a noun. Package inventory/noun has it of each noun, and types.mjs takes it over from
// the description of the API.
export interface Described<N extends keyof Nouns = keyof Nouns> {
  one: string // as commands call it
  many: N // as paths call it
  needs: Role // who may write it
  own: string[] // fields that the server fills in
  called?: string // in sentences, where that is not its name
  tab?: string // among the settings
  about?: string // above the table, with code between backquotes
  key?: string // the field that names one, where that is not name
  inPools?: boolean // a role in one pool may be enough to write it
  add: string // '' for no button
  verb: string
  edit?: string // the button that opens one; without it the table opens none
  save?: string // the button that saves a change, where that is not Save
  drop?: string // the button that deletes one, where that is not Delete
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
  first?: string // in the form of a new one
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
  none?: string // in place of empty fields
  min?: number
  grow?: number
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
  | 'expiry'
  | 'roles'
  | 'which'
  | 'password'
  | 'ranges'
