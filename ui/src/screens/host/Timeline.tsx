import { Alert, ProgressStep, ProgressStepper, Title } from '@patternfly/react-core'
import { useEffect, useState } from 'react'
import type { Event, Host } from '../../api/client'
import { useList } from '../../api/queries'
import { Loaded, Nothing } from '../../parts/Failure'
import { When } from '../../parts/When'
import { IssueList } from '../Issues'

// Timeline shows what is being done with a host and how long that may take, what is wrong, and everything that happened.
export function Timeline({ host }: { host: Host }) {
  const events = useList('events', { host: host.name, after: -500 })
  const operations = useList('operations', { host: host.name })
  const issues = useList('issues', { host: host.name })
  const running = operations.data?.find((o) => !o.endedAt || o.endedAt.startsWith('0001'))
  return (
    <>
      {issues.data && issues.data.length > 0 && <IssueList issues={issues.data} />}
      {running && (
        <Alert isInline variant="info" title={`${running.kind}: ${running.step}`} component="h2">
          <p>
            {running.reason} {running.hint}
          </p>
          {running.deadlineAt && !running.deadlineAt.startsWith('0001') && (
            <p>
              The step may take <Countdown to={running.deadlineAt} /> more.
            </p>
          )}
        </Alert>
      )}
      <Title headingLevel="h2">What happened</Title>
      <Loaded query={events}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="Nothing was heard of it yet" />
          ) : (
            <>
              <Steps events={all} />
              <ol className="timeline" reversed>
                {[...all].reverse().map((e) => (
                  <li key={e.id} id={`event-${e.id}`}>
                    <a href={`#event-${e.id}`}>
                      <When at={e.at} exact />
                    </a>
                    <span>{e.kind}</span>
                    <span className="mono">{e.detail}</span>
                  </li>
                ))}
              </ol>
            </>
          )
        }
      </Loaded>
    </>
  )
}

const milestones: [string, string][] = [
  ['dhcp.discover', 'asked for an address'],
  ['dhcp.ack', 'has an address'],
  ['tftp.done', 'fetched a loader'],
  ['script', 'was told what to boot'],
  ['artefact', 'fetched its system'],
  ['config.sent', 'fetched its configuration'],
  ['report', 'reported'],
]

// Steps are the milestones of the latest boot, with the time between them.
function Steps({ events }: { events: Event[] }) {
  const session = events.findLast((e) => e.sessionID)?.sessionID
  if (!session) return null
  const of = events.filter((e) => e.sessionID === session)
  let before = Date.parse(of[0]?.at ?? '')
  const steps = milestones.flatMap(([kind, words]) => {
    const e = of.find((x) => x.kind === kind || x.kind.startsWith(`${kind}.`))
    if (!e) return []
    const took = (Date.parse(e.at) - before) / 1000
    before = Date.parse(e.at)
    return [{ words, took }]
  })
  return (
    <ProgressStepper aria-label="Latest boot" isCenterAligned>
      {steps.map((s) => (
        <ProgressStep
          key={s.words}
          variant="success"
          titleId={s.words}
          id={s.words}
          aria-label={s.words}
          description={`${s.took.toFixed(1)} s`}
        >
          {s.words}
        </ProgressStep>
      ))}
    </ProgressStepper>
  )
}

function Countdown({ to }: { to: string }) {
  const [left, setLeft] = useState(() => Date.parse(to) - Date.now())
  useEffect(() => {
    const timer = setInterval(() => setLeft(Date.parse(to) - Date.now()), 1000)
    return () => clearInterval(timer)
  }, [to])
  if (left < 0) return <strong>no time (it is late)</strong>
  const s = Math.round(left / 1000)
  return (
    <time>
      {Math.floor(s / 60)}:{String(s % 60).padStart(2, '0')} min
    </time>
  )
}
