import { Alert, Button, SearchInput, Title } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { send } from '../../api/act'
import { api, type Host, headers, must, Problem, problemOf } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { Command } from '../../parts/Command'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { useLater } from '../../parts/later'
import { When } from '../../parts/When'
import { keyOf, Terminal } from './ansi'

interface ConsoleLog {
  text: string
  begin: number
  end: number
  at?: string
  isOpen: boolean
}

// Console shows the serial console of a host live, and what was recorded of it.
export function Console({ host }: { host: Host }) {
  const [isOpen, setOpen] = useState(false)
  const me = useMe()
  const refused = me && mayNot(me, 'operator')
  return (
    <>
      {isOpen ? (
        <Live name={host.name} leave={() => setOpen(false)} />
      ) : (
        <>
          <p>
            The console goes through the host's controller. It is shared: whoever else looks at it sees the same, and
            what is typed by each.
          </p>
          <Button
            onClick={() => setOpen(true)}
            isAriaDisabled={refused !== undefined}
            {...(refused && { title: refused })}
          >
            Open console
          </Button>{' '}
          {refused}
        </>
      )}
      <Recorded name={host.name} />
      <Command cli={`slipway host console ${host.name}`} />
    </>
  )
}

type Line = 'opening' | 'open' | 'ended'

function Live({ name, leave }: { name: string; leave: () => void }) {
  const [text, setText] = useState('')
  const [line, setLine] = useState<Line>('opening')
  const [error, setError] = useState<unknown>()
  const [turn, setTurn] = useState(0)
  const box = useRef<HTMLTextAreaElement>(null)
  const typing = useRef(Promise.resolve())
  const path = `/hosts/${encodeURIComponent(name)}/console`

  // biome-ignore lint/correctness/useExhaustiveDependencies: another turn opens it again
  useEffect(() => {
    const stop = new AbortController()
    const screen = new Terminal()
    setLine('opening')
    setError(undefined)
    setText('')
    void follow(`/api/v1${path}/stream`, stop.signal, {
      opened: () => setLine('open'),
      said: (s) => {
        screen.write(s)
        setText(screen.text())
      },
    })
      .catch((e) => !stop.signal.aborted && setError(e))
      .finally(() => !stop.signal.aborted && setLine('ended'))
    return () => stop.abort()
  }, [path, turn])

  useEffect(() => {
    const b = box.current
    if (b && text !== undefined) b.scrollTop = b.scrollHeight
  }, [text])

  const type = (typed: string) => {
    // One after the other, so that what was typed first arrives first.
    typing.current = typing.current
      .then(() => send({ method: 'POST', path: `${path}/type`, body: { text: typed } }))
      .then(() => setError(undefined))
      .catch(setError)
  }
  const keys = (e: KeyboardEvent) => {
    if (line !== 'open') return
    if (e.key === 'Tab' && e.shiftKey) return // the way out for those without a mouse
    const typed = keyOf(e)
    if (typed === undefined || (e.ctrlKey && e.key === 'c' && getSelection()?.toString())) return
    e.preventDefault()
    type(typed)
  }
  return (
    <>
      {error !== undefined && <Failure error={error} again={() => setTurn(turn + 1)} />}
      {line === 'ended' && error === undefined && (
        <Alert
          isInline
          variant="info"
          component="h2"
          title="The console has ended"
          actionLinks={
            <Button variant="link" isInline onClick={() => setTurn(turn + 1)}>
              Open it again
            </Button>
          }
        />
      )}
      <p id="console-help">
        {line === 'opening' ? 'Opening …' : 'What you type goes to the machine. Shift+Tab leaves the console.'}
      </p>
      <textarea
        ref={box}
        className="host-console mono"
        aria-label={`Serial console of ${name}`}
        aria-describedby="console-help"
        readOnly
        rows={25}
        value={text}
        onKeyDown={keys}
        onPaste={(e) => {
          e.preventDefault()
          const pasted = e.clipboardData.getData('text').slice(0, 4096)
          if (pasted && line === 'open') type(pasted.replaceAll('\r\n', '\r').replaceAll('\n', '\r'))
        }}
        spellCheck={false}
      />
      <Button variant="secondary" onClick={leave}>
        Close console
      </Button>
    </>
  )
}

// follow reads the stream of a console: each event is a piece of it in base64.
async function follow(path: string, signal: AbortSignal, on: { opened: () => void; said: (s: string) => void }) {
  const r = await fetch(path, { headers: headers({ Accept: 'text/event-stream' }), signal }).catch((e) => {
    throw signal.aborted ? e : new Problem(0, 'No answer', 'The server does not answer.', 'Is it running?')
  })
  if (!r.ok || !r.body) throw await problemOf(r)
  on.opened()
  const text = new TextDecoder()
  const reader = r.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let rest = ''; ; ) {
    const { value, done } = await reader.read()
    if (done) return
    const blocks = (rest + value).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const b of blocks) {
      const data = b.split('\n').find((l) => l.startsWith('data: '))
      if (data)
        on.said(
          text.decode(
            Uint8Array.from(atob(data.slice(6)), (c) => c.charCodeAt(0)),
            { stream: true },
          ),
        )
    }
  }
}

function Recorded({ name }: { name: string }) {
  const [word, setWord] = useState('')
  const late = useLater(word)
  const log = useQuery({
    queryKey: ['hosts', name, 'console', late],
    queryFn: async () =>
      (await must(
        (api.GET as (p: string, o: object) => Promise<{ data?: unknown }>)(
          `/api/v1/hosts/${encodeURIComponent(name)}/console/log`,
          { params: { query: late ? { search: late } : {} } },
        ),
      )) as ConsoleLog,
    refetchInterval: (q) => (q.state.data?.isOpen ? 3000 : false),
  })
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
      </div>
      <Loaded query={log}>
        {(l) =>
          l.end === 0 ? (
            <Nothing title="Nothing was recorded">
              It is recorded while somebody looks at it, and while something is done with the host.
            </Nothing>
          ) : (
            <>
              <p>
                {l.isOpen ? 'It is open, and recorded.' : 'It is not open.'} It last said something <When at={l.at} />.
                {l.begin > 0 && ' Older text was dropped.'}
              </p>
              {late && l.text === '' ? (
                <p>No line has that text.</p>
              ) : (
                <pre className="host-log mono" tabIndex={0}>
                  {late ? l.text : screened(l.text)}
                </pre>
              )}
            </>
          )
        }
      </Loaded>
      <Command
        cli={`slipway host console ${name} --log${late ? ` --search '${late.replaceAll("'", `'\\''`)}'` : ''}`}
        call={{
          method: 'GET',
          path: `/hosts/${encodeURIComponent(name)}/console/log${late ? `?search=${encodeURIComponent(late)}` : ''}`,
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
