import { around, type DiffLine, diffLines, unified } from './lines'
import './diff.css'

const most = 2000 // lines that are shown

const words = { '+': 'added', '-': 'taken away', ' ': '', '@': '' }

// Diff shows what differs between two texts.
export function Diff({ before, after, label }: { before: string; after: string; label: string }) {
  return <Lines lines={around(diffLines(before, after))} label={label} />
}

// Unified shows a unified diff, as the server writes them.
export function Unified({ text, label }: { text: string; label: string }) {
  return <Lines lines={unified(text)} label={label} />
}

function Lines({ lines, label }: { lines: DiffLine[]; label: string }) {
  if (!lines.some((l) => l.sort === '+' || l.sort === '-')) return <p>There is no difference.</p>
  return (
    <section className="diff" aria-label={label} tabIndex={0}>
      {lines.slice(0, most).map((l, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name
        <div key={i} data-sort={l.sort}>
          <span aria-hidden>{l.sort === '@' ? ' ' : l.sort}</span>
          <span>
            {words[l.sort] && <span className="pf-v6-u-screen-reader">{words[l.sort]}: </span>}
            {l.text || ' '}
          </span>
        </div>
      ))}
      {lines.length > most && <div data-sort="@">and {lines.length - most} more lines</div>}
    </section>
  )
}
