import { Button, FormSelect, FormSelectOption, Title } from '@patternfly/react-core'
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useSearchParams } from 'react-router'
import { type Event, isObject, readPage } from '../../api/client'
import { Command } from '../../parts/Command'
import { Failure, Nothing, Stale } from '../../parts/Failure'
import { When } from '../../parts/When'
import { Said } from './Recorded'
import { type Group, isOf, kinds, type Step, seconds } from './timeline'

const perPage = 100

interface Query {
  host: string
  session?: string
  kind?: string
  before?: number
}

// useEvents reads events from the newest backwards, a page at a time.
function useEvents(q: Query) {
  const { before, ...filter } = q
  return useInfiniteQuery({
    queryKey: ['events', 'back', q],
    queryFn: ({ pageParam }) => readPage('events', { limit: perPage, ...filter, before: pageParam }),
    initialPageParam: before ?? Number.MAX_SAFE_INTEGER,
    getNextPageParam: (last) => (last.next ? Number(last.next) : undefined),
    placeholderData: keepPreviousData,
    maxPages: 50,
  })
}

// Events shows what was noted of a host, or of one boot or step of it: packets, requests, reports, with all their fields.
export function Events({
  host,
  group,
  step,
  clear,
}: {
  host: string
  group: Group | undefined
  step: Step | undefined
  clear: () => void
}) {
  const [params, setParams] = useSearchParams()
  const kind = params.get('kind') ?? ''
  const at = Number(params.get('at') ?? 0)
  const [whole, setWhole] = useState(false) // of a link to one event: all that came after it, too
  const isPinned = at > 0 && !group && !whole
  const last = group?.kind === 'operation' && group.endedAt ? Math.max(0, ...group.steps.map((s) => s.eventID ?? 0)) : 0
  const q: Query = {
    host,
    ...(group?.kind === 'boot' && { session: group.id }),
    ...(kind && { kind }),
    ...(isPinned && { before: at + 1 }),
    ...(last > 0 && { before: last + perPage }),
  }
  const events = useEvents(q)
  const of = step ?? (group?.kind === 'operation' ? group : undefined)
  const all = events.data?.pages.flatMap((p) => p.items) ?? []
  const shown = of ? all.filter((e) => isOf(e, of)) : all
  const oldest = all.at(-1)
  const isWanted =
    of?.startedAt &&
    oldest &&
    oldest.at > of.startedAt &&
    all.length < 2000 &&
    events.hasNextPage &&
    !events.isFetchingNextPage
  useEffect(() => {
    if (isWanted) void events.fetchNextPage() // what is asked for lies further back
  })
  const set = (k: string, v: string) =>
    setParams(
      (p) => {
        if (v) p.set(k, v)
        else p.delete(k)
        return p
      },
      { replace: true },
    )
  const title = step ? `Events of ${step.title}` : group ? `Events of ${group.title}` : 'All events'
  return (
    <section aria-label="Events" className="host-events">
      <div className="host-events-head">
        <Title headingLevel="h2">{title}</Title>
        <FormSelect aria-label="Kind of events" value={kind} onChange={(_, v) => set('kind', v)}>
          <FormSelectOption value="" label="every kind" />
          {kinds.map(([k, words]) => (
            <FormSelectOption key={k} value={k} label={words} />
          ))}
        </FormSelect>
        {group && (
          <Button variant="link" isInline onClick={clear}>
            All of the host
          </Button>
        )}
        {isPinned && (
          <Button variant="link" isInline onClick={() => setWhole(true)}>
            Newer ones too
          </Button>
        )}
      </div>
      {step?.detail && <p className="host-reason">{step.detail}</p>}
      {events.error &&
        (events.data ? (
          <Stale error={events.error} again={() => void events.refetch()} />
        ) : (
          <Failure error={events.error} again={() => void events.refetch()} />
        ))}
      {events.isSuccess && shown.length === 0 && !isWanted && (
        <Nothing title={kind || of ? 'No such event' : 'No packet has come from it yet'}>
          {kind || of
            ? 'Choose another kind, or all of the host.'
            : 'Switch the machine on, with the network before the disk in its boot order.'}
        </Nothing>
      )}
      <ol className="timeline host-event-list">
        {shown.map((e, i) => (
          <Row key={e.id} event={e} before={shown[i + 1]} isAt={e.id === at} />
        ))}
      </ol>
      {of?.startedAt && <Said host={host} from={of.startedAt} {...(of.endedAt && { to: of.endedAt })} />}
      {events.hasNextPage && (!of || isWanted) && (
        <Button variant="secondary" isLoading={events.isFetchingNextPage} onClick={() => void events.fetchNextPage()}>
          Older
        </Button>
      )}
      <Command
        cli={`slipway event list --host ${host}${q.session ? ` --session ${q.session}` : ''}${kind ? ` --kind ${kind}` : ''}`}
        call={{
          method: 'GET',
          path: `/events?${new URLSearchParams({ host, ...(q.session && { session: q.session }), ...(kind && { kind }), before: '9007199254740991' })}`,
        }}
      />
    </section>
  )
}

// Row is one event. Within a boot it says how long after the one before it came.
function Row({ event: e, before, isAt }: { event: Event; before: Event | undefined; isAt: boolean }) {
  const [params] = useSearchParams()
  const [isOpen, setOpen] = useState(isAt)
  const data = isObject(e.data) ? Object.entries(e.data) : []
  const more = data.filter(([, v]) => v !== '' && v !== null && v !== undefined)
  const link = new URLSearchParams({ ...(params.get('kind') && { kind: params.get('kind') ?? '' }), at: String(e.id) })
  const after =
    e.sessionID && before?.sessionID === e.sessionID ? (Date.parse(e.at) - Date.parse(before.at)) / 1000 : undefined
  return (
    <li id={`event-${e.id}`} data-here={isAt || undefined}>
      <a href={`?${link}`}>
        <When at={e.at} exact />
      </a>
      <span>
        {e.kind}
        {after !== undefined && after >= 0.05 && <small> +{seconds(after)}</small>}
      </span>
      <span className="mono">
        {e.detail}{' '}
        {more.length > 0 && (
          <Button variant="link" isInline size="sm" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'less' : 'fields'}
          </Button>
        )}
        {isOpen && more.length > 0 && (
          <dl className="host-fields">
            {more.map(([k, v]) => (
              <div key={k}>
                <dt>{k}</dt>
                <dd>{(typeof v === 'string' ? v : JSON.stringify(v)).slice(0, 65_536)}</dd>
              </div>
            ))}
            {e.mac && (
              <div>
                <dt>mac</dt>
                <dd>{e.mac}</dd>
              </div>
            )}
          </dl>
        )}
      </span>
    </li>
  )
}
