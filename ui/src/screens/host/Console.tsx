import { Alert, Button } from '@patternfly/react-core'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { send } from '../../api/act'
import { type Host, headers, Problem, problemOf } from '../../api/client'
import { useMayNotOn } from '../../api/me'
import { Command } from '../../parts/Command'
import { Failure } from '../../parts/Failure'
import { keyOf, Terminal } from './ansi'
import { Recorded } from './Recorded'

// Console shows the serial console of a host live, and what was recorded of it.
export function Console({ host }: { host: Host }) {
  const [isOpen, setOpen] = useState(false)
  const refused = useMayNotOn(host.name)('operator')
  return (
    <>
      {isOpen ? (
        <Live name={host.name} leave={() => setOpen(false)} />
      ) : (
        <>
          <p>
            The console goes through the host's controller. All users share it, and see each other's input. If another
            program uses the console of an IPMI controller, Slipway ends that session.
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
        {line === 'opening' ? 'Opening …' : 'Your input goes to the machine. Shift+Tab leaves the console.'}
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
