import { Fragment, type ReactNode, useState } from 'react'
import { useSearchParams } from 'react-router'
import type { Nouns, Query } from '../api/client'
import type { ColumnOf, Described } from '../api/described'
import { useMayNot } from '../api/me'
import { useList } from '../api/queries'
import { Act, type Action, Add } from './Act'
import { Ask, dryOf } from './Ask'
import { shell } from './cli'
import { Loaded, Nothing } from './Failure'
import { GrantLabels } from './Grants'
import { keyOf, plainly, saidOf, valueAt } from './kinds'
import { NounForm } from './NounForm'
import { type Cells, Rows } from './Rows'
import { type Column, type Sort, VirtualTable } from './VirtualTable'
import { When } from './When'
import { grantsOf } from './written'

interface Listed<N extends keyof Nouns, T = Nouns[N]> {
  d: Described<N>
  query?: Query
  label?: string
  columns?: Record<string, Partial<Column<T>>> // by name, for what the server does not describe
  acts?: (one: T) => Omit<Action, 'of' | 'variant'>[] // beside Edit and Delete
  notGone?: (one: T) => string | undefined // why one cannot be deleted now
  form?: (one: T | undefined, close: () => void) => ReactNode // where NounForm needs more than the server describes
  nothing?: ReactNode // in place of a table without rows
  shown?: (all: T[]) => T[] // the rows, in their order; all of them
  about?: (rows: T[], all: T[]) => ReactNode // above the table
  isLong?: boolean // there may be thousands
  sort?: Sort
  onSort?: (s: Sort) => void
  variant?: 'secondary'
}

// NounList is the screen of a noun that the server describes: its table, what can be done with each row, the question before
// one goes, and its form. The address of the page says which one is open in the form: '' is a new one.
export function NounList<N extends keyof Nouns>(p: Listed<N>) {
  type T = Nouns[N]
  const { d, form = (one: T | undefined, close: () => void) => <NounForm d={d} one={one} close={close} /> } = p
  const list = useList(d.many, p.query)
  const [params, setParams] = useSearchParams()
  const chosen = params.get(d.one)
  const [gone, remove] = useState<T>()
  const not = useMayNot(d.needs, d.inPools ? undefined : '')
  const key = (one: T) => keyOf(d, one)
  const label = p.label ?? d.tab ?? d.many.replace(/^./, (c) => c.toUpperCase())
  const open = (name?: string) => {
    const next = new URLSearchParams(params)
    if (name === undefined) next.delete(d.one)
    else next.set(d.one, name)
    setParams(next)
  }
  const columns: Column<T>[] = [
    ...(d.columns ?? []).map(({ min, grow, ...c }) => ({
      key: c.name,
      name: c.name,
      cell: (one: T) => <Cell d={d} c={c} one={one} />,
      ...(min && { min }),
      ...(grow && { grow }),
      ...p.columns?.[c.name],
    })),
    {
      key: 'do',
      name: 'Actions',
      min: 10,
      cell: (one) => (
        <div style={{ display: 'flex', gap: '0.75rem', flexWrap: 'wrap' }}>
          {[
            ...(d.edit ? [{ text: d.edit, not, act: () => open(key(one)) }] : []),
            ...(p.acts?.(one) ?? []),
            { text: d.drop ?? 'Delete', not: not ?? p.notGone?.(one), act: () => remove(one) },
          ].map((a) => (
            <Act key={a.text} of={key(one)} {...a} />
          ))}
        </div>
      ),
    },
  ]
  return (
    <>
      {d.about && <p>{d.about.split('`').map((text, i) => (i % 2 ? <code key={text}>{text}</code> : text))}</p>}
      {d.add && <Add text={d.add} not={not} act={() => open('')} {...(p.variant && { variant: p.variant })} />}
      <Loaded query={list}>
        {(all) => {
          const rows = p.shown ? p.shown(all) : all
          if (rows.length === 0) return p.nothing ?? (d.empty ? <Nothing title={d.empty}>{d.hint}</Nothing> : null)
          return (
            <>
              {p.about?.(rows, all)}
              {p.isLong ? (
                <VirtualTable {...p} label={label} keyOf={key} columns={columns} rows={rows} height="28rem" />
              ) : (
                <Rows
                  label={label}
                  rows={rows}
                  keyOf={key}
                  // as wide as its words, also where a narrow window stretches what is in a cell
                  columns={columns.map((c): Cells<T> => [c.name, (one) => <div>{c.cell(one)}</div>])}
                />
              )}
            </>
          )
        }}
      </Loaded>
      {list.data && !not && (chosen === '' || (d.edit && chosen !== null)) && (
        <Fragment key={chosen}>
          {form(
            list.data.find((x) => key(x) === chosen),
            () => open(),
          )}
        </Fragment>
      )}
      {gone && <AskRemoval d={d} one={gone} close={() => remove(undefined)} />}
    </>
  )
}

function AskRemoval({ d, one, close }: { d: Described; one: object; close: () => void }) {
  const name = keyOf(d, one)
  const verb = d.drop ?? 'Delete'
  const version = 'version' in one ? Number(one.version) : undefined
  const call = { method: 'DELETE', path: `/${d.many}/${encodeURIComponent(name)}`, version } as const
  return (
    <Ask
      title={`${verb} ${d.called ?? d.one} ${name}?`}
      verb={verb}
      foresees={dryOf(call)}
      call={call}
      cli={`slipway ${d.one} delete ${shell(name)}`}
      close={close}
    />
  )
}

function Cell({ d, c, one }: { d: Described; c: ColumnOf; one: unknown }) {
  const values = c.fields.map((f) => valueAt(one, f))
  const text = String(values.find(Boolean) ?? '')
  switch (c.kind) {
    case 'selector':
      return <code>{text}</code>
    case 'time':
      return <When at={text} />
    case 'roles':
      return <GrantLabels grants={grantsOf(saidOf(d, one, c.fields[0] ?? '').join(' '))} />
    case 'which':
      return plainly(d.fields.find((f) => valueAt(one, f.name) && c.fields.includes(f.name))?.label)
    case 'flag':
      return values[0] ? 'yes' : 'no'
    case 'number':
      return values.reduce<number>((n, v) => n + (Array.isArray(v) ? v.length : 0), 0)
    case 'words':
      return c.fields.flatMap((f) => saidOf(d, one, f)).join(', ') || 'nothing yet'
    default:
      return text || c.none
  }
}
