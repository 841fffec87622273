import { Button, TextInput } from '@patternfly/react-core'
import { type KeyboardEvent, useId, useRef, useState } from 'react'
import { afterTab, lineStart, nextHit } from './text'
import './editor.css'

// Mark is something to say about a line, counted from 1; line 0 is about no line in particular.
export interface Mark {
  line: number
  severity: 'error' | 'warning'
  message: string
  hint?: string | undefined
  about?: string | undefined // where, in other words: a path, another layer
}

interface Edited {
  label: string
  value: string
  onChange?: (text: string) => void
  marks?: Mark[]
  state?: string // what is being done with the text, such as "checking"
  isReadOnly?: boolean
  rows?: number
  mostBytes?: number
  isText?: boolean // of a tool's own format; Tab puts a tab there instead of two blanks
}

const glyphs = { error: '✕', warning: '!' }

// Editor edits text: with line numbers, findings beside their lines, a search, and files. Tab indents; Esc lets the next
// Tab leave, so that nobody is caught in it.
export function Editor({
  label,
  value,
  onChange,
  marks = [],
  state,
  isReadOnly,
  rows = 18,
  mostBytes = 1 << 20,
  isText,
}: Edited) {
  const id = useId()
  const area = useRef<HTMLTextAreaElement>(null)
  const gutter = useRef<HTMLDivElement>(null)
  const [leaves, setLeaves] = useState(false)
  const [refused, setRefused] = useState('')
  const lines = value.split('\n').length

  const goTo = (from: number, to: number) => {
    const a = area.current
    if (!a) return
    a.focus()
    a.setSelectionRange(from, to)
    const line = value.slice(0, from).split('\n').length - 1
    const height = a.scrollHeight / lines
    a.scrollTop = Math.max(0, line * height - a.clientHeight / 2)
  }
  const keys = (e: KeyboardEvent<HTMLTextAreaElement>) => {
    if (e.key === 'Escape') return setLeaves(true)
    if (e.key === 'Tab' && !leaves && !isReadOnly && !e.ctrlKey && !e.altKey && !e.metaKey) {
      e.preventDefault()
      const a = e.currentTarget
      const edit = afterTab(a.value, a.selectionStart, a.selectionEnd, e.shiftKey, isText ? '\t' : '  ')
      if (!edit) return
      a.setSelectionRange(edit.from, edit.to)
      // Only this way the browser's own undo knows of it.
      if (!document.execCommand(edit.text ? 'insertText' : 'delete', false, edit.text)) {
        onChange?.(a.value.slice(0, edit.from) + edit.text + a.value.slice(edit.to))
      }
      a.setSelectionRange(...edit.select)
      return
    }
    if (e.key !== 'Tab' && e.key !== 'Shift') setLeaves(false)
  }
  const load = async (file: File | undefined) => {
    if (!file) return
    if (file.size > mostBytes)
      return setRefused(`${file.name} has ${file.size} bytes; at most ${mostBytes} are allowed`)
    const text = await file.text()
    if (text.includes('\u0000') || text.includes('\uFFFD')) return setRefused(`${file.name} is not text`)
    setRefused('')
    onChange?.(text)
  }

  const errors = marks.filter((m) => m.severity === 'error').length
  return (
    <div className="editor">
      <div className="editor-bar">
        <label htmlFor={`${id}-text`}>{label}</label>
        <Find text={value} label={label} show={goTo} at={() => area.current?.selectionEnd ?? 0} />
        {!isReadOnly && (
          <label className="editor-file">
            <span>Load a file</span>
            <input
              type="file"
              aria-label={`Load ${label} from a file`}
              onChange={(e) => {
                void load(e.target.files?.[0])
                e.target.value = ''
              }}
            />
          </label>
        )}
        <span className="editor-state" role="status">
          {state ?? saying(marks.length, errors)}
        </span>
      </div>
      {refused && <p role="alert">{refused}</p>}
      <div className="editor-body">
        <div className="editor-gutter" ref={gutter} aria-hidden>
          <Numbers lines={lines} marks={marks} />
        </div>
        <textarea
          id={`${id}-text`}
          ref={area}
          value={value}
          rows={rows}
          readOnly={isReadOnly}
          spellCheck={false}
          autoCapitalize="off"
          autoComplete="off"
          wrap="off"
          aria-invalid={errors > 0}
          aria-describedby={`${id}-help ${id}-marks`}
          onChange={(e) => onChange?.(e.target.value)}
          onKeyDown={keys}
          onBlur={() => setLeaves(false)}
          onScroll={(e) => gutter.current?.scrollTo(0, e.currentTarget.scrollTop)}
        />
      </div>
      {!isReadOnly && (
        <small id={`${id}-help`} className="editor-help">
          {leaves ? 'The next Tab leaves the text.' : 'Tab indents, Shift+Tab takes back. To leave: Esc, then Tab.'}
        </small>
      )}
      <ul id={`${id}-marks`} className="editor-marks" aria-label={`Findings about ${label}`}>
        {marks.map((m, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two findings may be the same in all they say
          <li key={i} className={m.severity}>
            <span aria-hidden>{glyphs[m.severity]}</span>
            <span>
              {m.line > 0 && m.line <= lines && (
                <Button
                  variant="link"
                  isInline
                  onClick={() =>
                    goTo(lineStart(value, m.line), Math.max(lineStart(value, m.line), lineStart(value, m.line + 1) - 1))
                  }
                >
                  line {m.line}
                </Button>
              )}{' '}
              <strong>{m.severity}</strong>: {m.message}
              {m.about && <span className="mono"> {m.about}</span>}
              {m.hint && <small> {m.hint}</small>}
            </span>
          </li>
        ))}
      </ul>
    </div>
  )
}

function saying(n: number, errors: number): string {
  if (n === 0) return ''
  const warnings = n - errors
  return [
    errors && `${errors} ${errors === 1 ? 'error' : 'errors'}`,
    warnings && `${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`,
  ]
    .filter(Boolean)
    .join(', ')
}

function Numbers({ lines, marks }: { lines: number; marks: Mark[] }) {
  const worst = new Map<number, Mark['severity']>()
  for (const m of marks) if (worst.get(m.line) !== 'error') worst.set(m.line, m.severity)
  const all: string[] = []
  for (let n = 1; n <= lines; n++) all.push(String(n))
  return (
    <>
      <pre>{all.join('\n')}</pre>
      {[...worst].map(
        ([line, severity]) =>
          line > 0 &&
          line <= lines && (
            <span key={line} className={severity} style={{ insetBlockStart: `calc(${line - 1} * var(--editor-line))` }}>
              {glyphs[severity]}
            </span>
          ),
      )}
    </>
  )
}

interface Found {
  text: string
  label: string
  show: (from: number, to: number) => void
  at: () => number
}

function Find({ text, label, show, at }: Found) {
  const [sought, setSought] = useState('')
  const count = sought ? text.toLowerCase().split(sought.toLowerCase()).length - 1 : 0
  return (
    <search className="editor-find">
      <TextInput
        type="search"
        aria-label={`Find in ${label}`}
        placeholder="Find"
        value={sought}
        onChange={(_, v) => setSought(v)}
        onKeyDown={(e) => {
          if (e.key !== 'Enter') return
          e.preventDefault()
          const hit = nextHit(text, sought, at())
          if (hit >= 0) show(hit, hit + sought.length)
        }}
      />
      {sought && <small>{count === 0 ? 'not there' : `${count} × (Enter: next)`}</small>}
    </search>
  )
}
