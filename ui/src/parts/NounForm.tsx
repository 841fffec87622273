import { useState } from 'react'
import { saveOf } from '../api/act'
import type { Field } from '../api/described'
import { useList } from '../api/queries'
import { type After, CheckField, ChoiceField, EditForm, LongField, OptionsField, TextField } from './Fields'
import { GrantsField } from './Grants'
import { bodyOf, cliOf, type Filled, type Form, filledOf, keyOf, lacksOf, shownOf, valueAt } from './kinds'
import { SelectorField } from './SelectorField'
import { grantsOf, writeGrants } from './written'

interface Shown<T> {
  d: Form
  one?: object | undefined
  given?: object // what a new one begins with
  after?: (filled: Filled) => After | undefined
  done?: (answer: T) => void
  close: () => void
}

// NounForm makes one of a noun, or changes one as it was seen: a change meanwhile is refused, not overwritten.
export function NounForm<T = unknown>({ d, one, given, after, done, close }: Shown<T>) {
  const [old] = useState(one)
  const [first] = useState(old ?? given)
  const [filled, fill] = useState(() => filledOf(d, first))
  const name = keyOf(d, old)
  return (
    <EditForm<T>
      title={old ? `${d.edit ?? 'Edit'} ${d.called ?? d.one} ${name}` : d.add}
      verb={old ? (d.save ?? 'Save') : d.verb}
      call={saveOf(d.many, old && { name, version: Number(valueAt(old, 'version')) }, bodyOf(d, first, filled))}
      cli={cliOf(d, !old, filled)}
      lacks={lacksOf(d, filled)}
      close={close}
      {...(after && { after: after(filled) })}
      {...(done && { done })}
    >
      {shownOf(d, !old, filled).map((f) => (
        <Input key={f.name} f={f} filled={filled} set={(v) => fill({ ...filled, [f.name]: v })} />
      ))}
      {d.below && <p>{d.below}</p>}
    </EditForm>
  )
}

function Input({ f, filled, set }: { f: Field; filled: Filled; set: (v: string) => void }) {
  const { label = '', help, isMust: isRequired = false } = f
  const p = { label, help, set, field: f.name, value: filled[f.name] ?? '', isRequired }
  const placeholder = f.example ?? ''
  switch (f.kind) {
    case 'long':
    case 'lines':
    case 'pairs':
    case 'ranges':
      return <LongField {...p} rows={f.rows ?? 6} />
    case 'options':
      return <OptionsField {...p} />
    case 'selector':
      return <SelectorField {...p} id={`field-${f.name}`} onChange={set} {...(f.state && { state: f.state })} />
    case 'number':
    case 'gib':
      return <TextField {...p} type="number" min={0} />
    case 'flag':
      return <CheckField {...p} value={p.value !== ''} set={(on) => set(on ? 'yes' : '')} />
    case 'choice':
    case 'expiry':
      return <ChoiceField {...p} choices={f.choices ?? []} />
    case 'roles':
      return <GrantsField value={grantsOf(p.value)} onChange={(g) => set(writeGrants(g))} />
    case 'password':
      return <TextField {...p} type="password" />
    case 'secret':
      return <SecretField {...p} />
    default:
      return <TextField {...p} placeholder={placeholder} />
  }
}

// SecretField chooses one of the secrets that are stored.
function SecretField(p: Parameters<typeof TextField>[0]) {
  const names = (useList('secrets').data ?? []).map((s) => s.name)
  const all = new Set([...(p.value ? [p.value] : []), ...names])
  return <ChoiceField {...p} choices={[['', 'none'], ...[...all].map((n): [string, string] => [n, n])]} />
}
