import { useState } from 'react'
import { saveOf } from '../api/act'
import type { Nouns } from '../api/client'
import type { ColumnOf, Described, Field, Named } from '../api/described'
import { useMayNot } from '../api/me'
import { useList } from '../api/queries'
import { Add } from './Act'
import { shell } from './cli'
import { Nothing } from './Failure'
import { CheckField, ChoiceField, EditForm, LongField, OptionsField, TextField } from './Fields'
import { bodyOf, cliOf, type Filled, type Form, filledOf, lacksOf, saidOf, shownOf, valueAt } from './kinds'
import { Plain, useChosen } from './Plain'
import { SelectorField } from './SelectorField'
import type { Column } from './VirtualTable'
import { When } from './When'

type Stored = { name: string; version: number }

// NounList is the screen of a plain noun that the server describes: its table, and its form.
export function NounList({ d, variant }: { d: Described; variant?: 'secondary' }) {
  const all = useList(d.many).data
  const [chosen, open] = useChosen(d.one)
  const not = useMayNot(d.needs, '')
  return (
    <>
      <p>{d.about}</p>
      <Add text={d.add} not={not} act={() => open('')} {...(variant && { variant })} />
      <Plain
        noun={d.many}
        label={d.tab ?? d.many.replace(/^./, (c) => c.toUpperCase())}
        columns={(d.columns ?? []).map(
          (c): Column<Nouns[Named]> => ({
            key: c.name,
            name: c.name,
            cell: (one) => <Cell d={d} c={c} one={one} />,
          }),
        )}
        keyOf={(one) => one.name}
        acts={(one) => [{ text: 'Edit', not, act: () => open(one.name) }]}
        removal={({ name }) => ({
          title: `Delete ${d.called ?? d.one} ${name}?`,
          cli: `slipway ${d.one} delete ${shell(name)}`,
          not,
        })}
        nothing={d.empty ? <Nothing title={d.empty}>{d.hint}</Nothing> : null}
      />
      {all && chosen !== null && !not && (
        <NounForm key={chosen} d={d} one={all.find((x) => x.name === chosen)} close={() => open()} />
      )}
    </>
  )
}

function Cell({ d, c, one }: { d: Described; c: ColumnOf; one: unknown }) {
  const values = c.fields.map((f) => valueAt(one, f))
  const text = String(values[0] ?? '')
  switch (c.kind) {
    case 'selector':
      return <code>{text}</code>
    case 'time':
      return <When at={text} />
    case 'flag':
      return values[0] ? 'yes' : 'no'
    case 'number':
      return values.reduce<number>((n, v) => n + (Array.isArray(v) ? v.length : 0), 0)
    case 'words':
      return c.fields.flatMap((f) => saidOf(d, one, f)).join(', ') || 'nothing yet'
    default:
      return text
  }
}

// NounForm makes one of a noun, or changes one as it was seen: a change meanwhile is refused, not overwritten.
export function NounForm({ d, one, close }: { d: Form; one?: Stored | undefined; close: () => void }) {
  const [old] = useState(one)
  const [filled, fill] = useState(() => filledOf(d, old))
  return (
    <EditForm
      title={old ? `Edit ${d.called ?? d.one} ${old.name}` : d.add}
      verb={old ? 'Save' : d.verb}
      call={saveOf(d.many, old, bodyOf(d, old, filled))}
      cli={cliOf(d, !old, filled)}
      lacks={lacksOf(d, filled)}
      close={close}
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
      return <ChoiceField {...p} choices={f.choices ?? []} />
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
