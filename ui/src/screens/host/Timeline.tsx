import { Alert, Button, Label, Progress, Title } from '@patternfly/react-core'
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useEffect, useState } from 'react'
import { Link, useSearchParams } from 'react-router'
import { api, type Host, must } from '../../api/client'
import { useList } from '../../api/queries'
import { Command } from '../../parts/Command'
import { Loaded, Nothing } from '../../parts/Failure'
import { When } from '../../parts/When'
import { IssueList } from '../issues/Issues'
import { Events } from './Events'
import { Packets } from './Packets'
import { barOf, bootTimeOf, type Expected, type Group, isSlow, leftOf, type Step, seconds, tookOf } from './timeline'
import { WhyNot } from './WhyNot'

// useNow ticks once a second while something on the page counts.
function useNow(isOn: boolean): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    setNow(Date.now())
    if (!isOn) return
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [isOn])
  return now
}

function useTimeline(name: string) {
  return useInfiniteQuery({
    queryKey: ['hosts', name, 'timeline'],
    queryFn: ({ pageParam }) =>
      must(
        api.GET('/api/v1/hosts/{host}/timeline', {
          params: { path: { host: name }, query: { limit: 10, ...(pageParam && { after: pageParam }) } },
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (last) => last.next,
    placeholderData: keepPreviousData,
  })
}

// Timeline shows what should happen next, what is wrong, what was done step by step, and every event behind it.
export function Timeline({ host }: { host: Host }) {
  const timeline = useTimeline(host.name)
  const issues = useList('issues', { host: host.name })
  const [params, setParams] = useSearchParams()
  const groups = timeline.data?.pages.flatMap((p) => p.groups) ?? []
  const expects = timeline.data?.pages[0]?.expects
  const now = useNow(expects !== undefined || groups.some((g) => !g.endedAt))
  const chosen = groups.find((g) => g.id === (params.get('boot') ?? params.get('op')))
  const step = chosen?.steps.find((s) => s.step === params.get('step'))
  const choose = (g?: Group, s?: Step) =>
    setParams((p) => {
      for (const k of ['boot', 'op', 'step', 'at']) p.delete(k)
      if (g) p.set(g.kind === 'boot' ? 'boot' : 'op', g.id)
      if (s) p.set('step', s.step)
      return p
    })
  return (
    <>
      {issues.data && issues.data.length > 0 && (
        <section aria-label="What is wrong" className="host-issues">
          <IssueList issues={issues.data} />
        </section>
      )}
      {expects && <Expects of={expects} now={now} isSaid={issues.data?.some((i) => i.hint === expects.hint)} />}
      <WhyNot host={host} />
      <div className="host-timeline">
        <section aria-label="Boots and operations">
          <Title headingLevel="h2">Boots and operations</Title>
          <Loaded query={timeline}>
            {() =>
              groups.length === 0 ? (
                <Nothing title="No boot and no operation yet">
                  Boots and operations appear here when the machine asks for an address, or when you inspect it or
                  switch its power.
                </Nothing>
              ) : (
                // biome-ignore lint/a11y/noStaticElementInteractions: the arrows only move between its buttons
                <div onKeyDown={walk}>
                  {groups.map((g, i) => (
                    <GroupCard
                      key={g.id}
                      group={g}
                      now={now}
                      isFirst={i === 0}
                      isChosen={g === chosen}
                      step={step?.step}
                      choose={choose}
                    />
                  ))}
                  {timeline.hasNextPage && (
                    <Button
                      variant="secondary"
                      isLoading={timeline.isFetchingNextPage}
                      onClick={() => void timeline.fetchNextPage()}
                    >
                      Older
                    </Button>
                  )}
                </div>
              )
            }
          </Loaded>
          <Command
            cli={`slipway host timeline ${host.name}`}
            call={{ method: 'GET', path: `/hosts/${encodeURIComponent(host.name)}/timeline` }}
          />
          <Packets host={host} />
        </section>
        <Events host={host.name} group={chosen} step={step} clear={() => choose()} />
      </div>
    </>
  )
}

// walk moves with the arrows from one group or step to the next.
function walk(e: KeyboardEvent<HTMLElement>) {
  if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return
  const all = [...e.currentTarget.querySelectorAll<HTMLElement>('button[data-walk]')]
  const i = all.indexOf(document.activeElement as HTMLElement)
  const next = all[i + (e.key === 'ArrowDown' ? 1 : -1)]
  if (i < 0 || !next) return
  e.preventDefault()
  next.focus()
}

// Expects is what should happen next. Its hint is left out where an issue above says the same.
function Expects({ of: x, now, isSaid = false }: { of: Expected; now: number; isSaid: boolean | undefined }) {
  const late = x.isLate || (x.by !== undefined && Date.parse(x.by) < now)
  const whole = x.by ? Date.parse(x.by) - Date.parse(x.since) : 0
  const left = x.by ? leftOf(x.by, now) : ''
  const done = whole > 0 ? Math.min(100, Math.max(0, ((now - Date.parse(x.since)) / whole) * 100)) : 0
  return (
    <Alert
      isInline
      variant={late ? 'warning' : 'info'}
      component="h2"
      title={late ? `Late: ${x.what}` : `Next: ${x.what}`}
      className="host-issues"
    >
      {x.reason && <p>{x.reason}</p>}
      {x.by && (
        <Progress
          aria-label="Time until it is late"
          value={late ? 100 : done}
          {...(late && { variant: 'warning' as const })}
          measureLocation="outside"
          label={late ? `late by ${seconds((now - Date.parse(x.by)) / 1000)}` : `${left} left`}
          size="sm"
        />
      )}
      {!x.by && (
        <p>
          It began to wait <When at={x.since} />, and waits for a person or an event.
        </p>
      )}
      {x.hint && !isSaid && (late || !x.by || x.reason) && <p>{x.hint}</p>}
    </Alert>
  )
}

// ends are the states of what ended well, in one word: what it ended with is in the title of the label.
const ends: Record<string, string> = { done: 'finished', arrived: 'finished', disk: 'finished' }

type Colour = 'green' | 'red' | 'blue' | 'orange' | 'grey'
const outcomes: Record<string, Colour> = {
  done: 'green',
  arrived: 'green',
  disk: 'green',
  failed: 'red',
  abandoned: 'orange',
  cancelled: 'orange',
  refused: 'grey',
  running: 'blue',
  waiting: 'orange',
}

interface Choosing {
  choose: (g?: Group, s?: Step) => void
  now: number
}

function GroupCard({
  group: g,
  isFirst,
  isChosen,
  step,
  ...more
}: Choosing & { group: Group; isFirst: boolean; isChosen: boolean; step: string | undefined }) {
  const [open, setOpen] = useState<boolean>()
  const isOpen = open ?? (isFirst || isChosen || !g.endedAt)
  const took = g.kind === 'boot' && g.state === 'waiting' ? undefined : bootTimeOf(g, more.now)
  const id = `group-${g.id}`
  return (
    <section className="host-group" data-chosen={isChosen || undefined} aria-labelledby={id}>
      <div className="host-group-head">
        <Button
          variant="plain"
          aria-label={`Steps of ${g.title}`}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
          size="sm"
        >
          {isOpen ? '▾' : '▸'}
        </Button>
        <Button variant="link" isInline id={id} data-walk aria-current={isChosen} onClick={() => more.choose(g)}>
          {g.title}
        </Button>
        <Label isCompact color={outcomes[g.state] ?? 'grey'} title={g.state}>
          {ends[g.state] ?? g.state}
        </Label>
        <span>
          <When at={g.startedAt} />
          {took !== undefined && `, ${g.endedAt ? 'took' : 'for'} ${seconds(took)}`}
        </span>
        {g.machine && <Link to={`/machines/${encodeURIComponent(g.machine)}`}>machine {g.machine}</Link>}
        {g.image && <span>image {g.image}</span>}
        {g.by && <span>by {g.by}</span>}
        {g.mac && <span className="mono">{g.mac}</span>}
      </div>
      {g.reason && <p className="host-reason">{g.reason}</p>}
      {isOpen && (
        <ol className="host-steps">
          {g.steps.map((s, i) => (
            // A step that was begun again stands there once for each time.
            // biome-ignore lint/suspicious/noArrayIndexKey: steps only ever grow at the end
            <li key={`${s.step}-${i}`}>
              <StepRow step={s} group={g} isChosen={isChosen && step === s.step} {...more} />
            </li>
          ))}
          {g.steps.length === 0 && <li className="host-reason">Slipway has no steps of it.</li>}
        </ol>
      )}
    </section>
  )
}

const glyphs: Record<Step['state'], string> = { done: '●', running: '◑', failed: '✕', ahead: '○' }

function StepRow({
  step: s,
  group: g,
  isChosen,
  choose,
  now,
}: Choosing & { step: Step; group: Group; isChosen: boolean }) {
  const took = tookOf(s, now)
  const bar = barOf(s, g, now)
  const slow = isSlow(s, now)
  const again = s.tryN ? ` (time ${s.tryN})` : ''
  return (
    <button
      type="button"
      data-walk
      className="host-step"
      data-state={s.state}
      aria-current={isChosen}
      onClick={() => choose(g, s)}
      title={s.detail}
    >
      <span className="host-step-name">
        <span aria-hidden>{glyphs[s.state]}</span> {s.title}
        {again}
        <span className="pf-v6-u-screen-reader">, {s.state}</span>
      </span>
      <span className="host-bar" aria-hidden>
        {bar && <span style={{ insetInlineStart: `${bar.left}%`, inlineSize: `max(3px, ${bar.width}%)` }} />}
        {bar?.usual !== undefined && <i style={{ insetInlineStart: `${bar.usual}%` }} />}
      </span>
      <span className="host-took">
        {took !== undefined && seconds(took)}
        {(s.sampleN ?? 0) > 0 && (
          <small title={`median of ${s.sampleN} on the same model and image`}>
            {' '}
            {took === undefined ? 'takes' : slow ? '! usually' : 'usually'} {seconds(s.usualSeconds ?? 0)}
          </small>
        )}
      </span>
    </button>
  )
}
