import { type ReactNode, useState } from 'react'
import { useSearchParams } from 'react-router'
import type { Nouns, Query } from '../api/client'
import { useList } from '../api/queries'
import { Act, type Action } from './Act'
import { Ask, dryOf } from './Ask'
import { Loaded } from './Failure'
import { type Cells, Rows } from './Rows'
import { type Column, type Sort, VirtualTable } from './VirtualTable'

// useChosen is which one of a list is open in its form, as the address of the page says it: '' is a new one, null is none.
export function useChosen(param: string): [string | null, (name?: string) => void] {
  const [params, setParams] = useSearchParams()
  const open = (name?: string) => {
    const next = new URLSearchParams(params)
    if (name === undefined) next.delete(param)
    else next.set(param, name)
    setParams(next)
  }
  return [params.get(param), open]
}

// Removal asks before one goes.
interface Removal {
  title: string
  verb?: string // Delete
  cli?: string
  not?: string | undefined
}

interface Listed<N extends keyof Nouns, T = Nouns[N]> {
  noun: N
  query?: Query
  label: string
  columns: Column<T>[]
  keyOf: (one: T) => string // as the API names it
  of?: (one: T) => string // whose actions they are, for screen readers; its key
  acts: (one: T) => Omit<Action, 'of' | 'variant'>[]
  removal: (one: T) => Removal
  nothing: ReactNode // in place of a table without rows
  shown?: (all: T[]) => T[] // the rows, in their order; all of them
  about?: (rows: T[], all: T[]) => ReactNode // above the table
  isLong?: boolean // there may be thousands
  sort?: Sort
  onSort?: (s: Sort) => void
}

// Plain is the list of a plain noun: a table, what can be done with each row, and the question before one goes.
export function Plain<N extends keyof Nouns>(p: Listed<N>) {
  type T = Nouns[N]
  const { noun, keyOf, of = keyOf } = p
  const list = useList(noun, p.query)
  const [gone, remove] = useState<T>()
  const columns: Column<T>[] = [
    ...p.columns,
    {
      key: 'do',
      name: 'Actions',
      min: 10,
      cell: (one) => {
        const { verb = 'Delete', not } = p.removal(one)
        return (
          <div style={{ display: 'flex', gap: '0.75rem', flexWrap: 'wrap' }}>
            {[...p.acts(one), { text: verb, not, act: () => remove(one) }].map((a) => (
              <Act key={a.text} of={of(one)} {...a} />
            ))}
          </div>
        )
      },
    },
  ]
  return (
    <>
      <Loaded query={list}>
        {(all) => {
          const rows = p.shown ? p.shown(all) : all
          if (rows.length === 0) return p.nothing
          return (
            <>
              {p.about?.(rows, all)}
              {p.isLong ? (
                <VirtualTable {...p} columns={columns} rows={rows} height="28rem" />
              ) : (
                <Rows
                  label={p.label}
                  rows={rows}
                  keyOf={keyOf}
                  // as wide as its words, also where a narrow window stretches what is in a cell
                  columns={columns.map((c): Cells<T> => [c.name, (one) => <div>{c.cell(one)}</div>])}
                />
              )}
            </>
          )
        }}
      </Loaded>
      {gone && (
        <AskRemoval
          {...p.removal(gone)}
          path={`/${noun}/${encodeURIComponent(keyOf(gone))}`}
          one={gone}
          close={() => remove(undefined)}
        />
      )}
    </>
  )
}

function AskRemoval({
  title,
  verb = 'Delete',
  cli,
  path,
  one,
  close,
}: Removal & { path: string; one: object; close: () => void }) {
  const version = 'version' in one ? Number(one.version) : undefined
  const call = { method: 'DELETE', path, version } as const
  return <Ask title={title} verb={verb} foresees={dryOf(call)} call={call} {...(cli && { cli })} close={close} />
}
