import { FormSelect, FormSelectOption } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useSearchParams } from 'react-router'
import { type Call, send } from '../../api/act'
import { ask, type Impact } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { Act } from '../../parts/Act'
import { Failure, Loaded } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
import { When } from '../../parts/When'
import { Save } from './Save'

interface Revision<T> {
  n: number
  createdAt: string
  changed: string[]
  body?: T
}

interface Shown<T> {
  noun: 'profiles' | 'layers'
  name: string
  version: number
  cli: string // such as slipway profile
  compare: (before: T | undefined, after: T) => ReactNode
}

// Revisions lists what a profile or layer was, shows what differs, and goes back.
export function Revisions<T>({ noun, name, version, cli, compare }: Shown<T>) {
  const list = useQuery({
    queryKey: [noun, name, '/revisions'],
    queryFn: () => ask<{ items: Revision<T>[] }>('GET', `/${noun}/${encodeURIComponent(name)}/revisions`),
  })
  const [params, setParams] = useSearchParams()
  const [back, setBack] = useState<number>()
  const not = mayNot(useMe(), 'operator', '')
  const choose = (key: string, n: string) => {
    const next = new URLSearchParams(params)
    next.set(key, n)
    setParams(next, { replace: true })
  }
  return (
    <Loaded query={list}>
      {({ items }) => {
        const newest = items[0]?.n ?? 0
        const to = Number(params.get('to') ?? newest)
        const from = Number(params.get('from') ?? items.find((r) => r.n < to)?.n ?? 0)
        const why = (n: number) => not ?? (n === newest ? 'it is the present revision' : undefined)
        return (
          <>
            <Rows
              label="Revisions"
              rows={items}
              keyOf={(r) => r.n}
              columns={[
                ['Revision', (r) => `${r.n}${r.n === newest ? ' (in force)' : ''}`],
                ['Made', (r) => <When at={r.createdAt} />],
                ['Changed', (r) => r.changed.join(', ') || (r.n === 1 ? 'it was created' : '')],
                [
                  'Actions',
                  (r) => <Act text="Go back" of={`to revision ${r.n}`} not={why(r.n)} act={() => setBack(r.n)} />,
                ],
              ]}
            />
            <div className="profile-bar">
              <label htmlFor="revision-from">From</label>
              <Pick
                id="revision-from"
                value={from}
                all={[0, ...items.map((r) => r.n).toReversed()]}
                change={(n) => choose('from', n)}
              />
              <label htmlFor="revision-to">to</label>
              <Pick id="revision-to" value={to} all={items.map((r) => r.n)} change={(n) => choose('to', n)} />
            </div>
            <Compared noun={noun} name={name} from={from} to={to} compare={compare} />
            {back !== undefined && (
              <GoBack noun={noun} name={name} version={version} cli={cli} n={back} close={() => setBack(undefined)} />
            )}
          </>
        )
      }}
    </Loaded>
  )
}

function Pick({ id, value, all, change }: { id: string; value: number; all: number[]; change: (n: string) => void }) {
  return (
    <FormSelect id={id} value={String(value)} onChange={(_, v) => change(v)} className="revision-pick">
      {all.map((n) => (
        <FormSelectOption key={n} value={String(n)} label={n === 0 ? 'nothing' : `revision ${n}`} />
      ))}
    </FormSelect>
  )
}

function useRevision<T>(noun: string, name: string, n: number) {
  return useQuery({
    queryKey: [noun, name, 'revision', n],
    queryFn: () => ask<Revision<T>>('GET', `/${noun}/${encodeURIComponent(name)}/revisions/${n}`),
    enabled: n > 0,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

interface Pair<T> {
  noun: string
  name: string
  from: number
  to: number
  compare: Shown<T>['compare']
}

function Compared<T>({ noun, name, from, to, compare }: Pair<T>) {
  const a = useRevision<T>(noun, name, from)
  const b = useRevision<T>(noun, name, to)
  const error = a.error ?? b.error
  if (error) return <Failure error={error} />
  if (!b.data?.body || (from > 0 && !a.data?.body)) return null
  return <section aria-label="What differs">{compare(from > 0 ? a.data?.body : undefined, b.data.body)}</section>
}

interface Back {
  noun: string
  name: string
  version: number
  cli: string
  n: number
  close: () => void
}

// GoBack asks what going back would do, and does it.
function GoBack({ noun, name, version, cli, n, close }: Back) {
  const call: Call = {
    method: 'POST',
    path: `/${noun}/${encodeURIComponent(name)}/rollback`,
    body: { revision: n },
    version,
  }
  const preview = useQuery({
    queryKey: ['check', call],
    queryFn: () => send<{ impact?: Impact }>({ ...call, path: `${call.path}?dryRun=true` }),
    retry: false,
    gcTime: 0,
  })
  return (
    <Save
      title={`Go back to revision ${n}?`}
      call={call}
      cli={`${cli} rollback ${name} ${n}`}
      impact={preview.data?.impact}
      close={close}
      done={() => undefined}
    >
      <p>Its text becomes a new revision. All revisions stay.</p>
      {preview.error && <Failure error={preview.error} />}
    </Save>
  )
}
