import { Button, SearchInput, Title } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useSearchParams } from 'react-router'
import { api, must, type Schemas } from '../../api/client'
import { Command } from '../../parts/Command'
import { flags } from '../../parts/cli'
import { Loaded, Nothing } from '../../parts/Failure'
import { useLater } from '../../parts/later'
import { When } from '../../parts/When'
import { Terminal } from './ansi'

type Line = Schemas['ConsoleLine']

// secondsBefore is an earlier time: when something was said is known to the second.
const secondsBefore = (at: string, s: number) => new Date(Date.parse(at) - s * 1000).toISOString()

interface Asked {
  lines?: boolean
  search?: string
  since?: string
  until?: string
}

function useConsoleLog(name: string, q: Asked) {
  return useQuery({
    queryKey: ['hosts', name, 'console', q],
    queryFn: () => must(api.GET('/api/v1/hosts/{host}/console/log', { params: { path: { host: name }, query: q } })),
    refetchInterval: (r) => (r.state.data?.isOpen ? 3000 : false),
  })
}

// Said is what the console said during a step, beside its events. It shows nothing where nothing was recorded.
export function Said({ host, from, to }: { host: string; from: string; to?: string }) {
  const log = useConsoleLog(host, { lines: true, since: secondsBefore(from, 1), ...(to && { until: to }) })
  const lines = log.data?.lines ?? []
  if (lines.length === 0) return null
  const link = new URLSearchParams({ tab: 'console', from, ...(to && { to }) })
  return (
    <section aria-label="Console during this step">
      <div className="host-events-head">
        <Title headingLevel="h3">Console during this step</Title>
        <Link to={`?${link}`}>{lines.length > 40 ? `All ${lines.length} lines` : 'On the Console tab'}</Link>
      </div>
      <Lines all={lines.slice(-40)} />
    </section>
  )
}

// Lines are what a console said, with when; each time is a link to that moment.
function Lines({ all }: { all: Line[] }) {
  return (
    <ol className="host-log host-lines mono" tabIndex={0}>
      {all.map((l, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a console repeats itself
        <li key={i}>
          {l.at === all[i - 1]?.at ? (
            <span />
          ) : (
            <Link to={`?${new URLSearchParams({ tab: 'console', from: l.at })}`}>
              <When at={l.at} exact />
            </Link>
          )}
          <span>{l.text}</span>
        </li>
      ))}
    </ol>
  )
}

// Recorded shows what was recorded of a console: all as it stood on the screen, or the lines of a search or a moment.
export function Recorded({ name }: { name: string }) {
  const [params, setParams] = useSearchParams()
  const [word, setWord] = useState('')
  const late = useLater(word)
  const from = params.get('from') ?? ''
  const to = params.get('to') ?? ''
  const isPart = late !== '' || from !== ''
  const q: Asked = isPart
    ? {
        lines: true,
        ...(late && { search: late }),
        ...(!Number.isNaN(Date.parse(from)) && { since: secondsBefore(from, to ? 1 : 0) }),
        ...(!Number.isNaN(Date.parse(to)) && { until: to }),
      }
    : {}
  const log = useConsoleLog(name, q)
  return (
    <section aria-label="Recorded">
      <div className="host-events-head">
        <Title headingLevel="h2">Recorded</Title>
        <SearchInput
          aria-label="Search the recording"
          placeholder="lines with …"
          value={word}
          onChange={(_, v) => setWord(v)}
          onClear={() => setWord('')}
        />
        <Button variant="link" isInline onClick={() => void log.refetch()}>
          Read again
        </Button>
        {from && (
          <Button
            variant="link"
            isInline
            onClick={() =>
              setParams((p) => {
                p.delete('from')
                p.delete('to')
                return p
              })
            }
          >
            All of it
          </Button>
        )}
      </div>
      <Loaded query={log}>
        {(l) =>
          l.end === 0 ? (
            <Nothing title="Nothing was recorded">
              Slipway records the console while somebody has it open. With recordConsoles in the configuration file, it
              also records during operations.
            </Nothing>
          ) : (
            <>
              <p>
                {l.isOpen ? 'It is open, and recorded.' : 'It is not open.'} Last output: <When at={l.at} />.
                {l.begin > 0 && ' Older text was dropped.'}
                {from && !Number.isNaN(Date.parse(from)) && (
                  <>
                    {' '}
                    Shown is what it said from <When at={from} exact />
                    {to && (
                      <>
                        {' '}
                        to <When at={to} exact />
                      </>
                    )}
                    .
                  </>
                )}
              </p>
              {isPart && (l.lines ?? []).length === 0 && (
                <p>{late ? 'No line has that text.' : 'It said nothing then.'}</p>
              )}
              {isPart && (l.lines ?? []).length > 0 && <Lines all={l.lines ?? []} />}
              {!isPart && (
                <pre className="host-log mono" tabIndex={0}>
                  {screened(l.text)}
                </pre>
              )}
            </>
          )
        }
      </Loaded>
      <Command
        cli={`slipway host console ${name} --log${flags({ search: late })}`}
        call={{
          method: 'GET',
          path: `/hosts/${encodeURIComponent(name)}/console/log${isPart ? `?${new URLSearchParams(Object.entries(q).map(([k, v]) => [k, String(v)]))}` : ''}`,
        }}
      />
    </section>
  )
}

function screened(text: string): string {
  const t = new Terminal(20_000)
  t.write(text)
  return t.text()
}
