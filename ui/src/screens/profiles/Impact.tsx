import { Alert, ExpandableSection, Title } from '@patternfly/react-core'
import { Link } from 'react-router'
import type { Impact } from '../../api/client'
import { Unified } from '../../parts/Diff'
import type { Mark } from '../../parts/Editor'

const hosts = (n: number) => `${n} ${n === 1 ? 'host' : 'hosts'}`

// saying is what saving would do, in one sentence.
export function saying(i: Impact): string {
  if (i.hostN === 0) return 'No host uses it. Slipway tried it on an example host.'
  const parts = [
    i.changedN === 0
      ? `None of its ${hosts(i.hostN)} would get another configuration`
      : `${i.changedN} of its ${hosts(i.hostN)} would get another configuration`,
  ]
  if (i.failedN > 0) parts.push(`${hosts(i.failedN)} could not be rendered`)
  return `${parts.join('; ')}.`
}

// ImpactView says which hosts would get something else, and what.
export function ImpactView({ impact: i }: { impact: Impact }) {
  return (
    <div className="impact">
      <Alert
        variant={i.failedN > 0 ? 'danger' : i.changedN > 0 ? 'warning' : 'info'}
        isInline
        isPlain
        title={saying(i)}
      />
      {i.hosts.map((h) => (
        <ExpandableSection
          key={h.host}
          toggleText={`${h.host}${(h.findings ?? []).length > 0 ? ': with findings' : ''}`}
          isIndented
        >
          <p>
            <Link to={`/hosts/${h.host}`}>{h.host}</Link>
          </p>
          {(h.findings ?? []).map((f, n) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two findings may be the same in all they say
            <p key={n}>
              <strong>{f.severity}</strong>: {f.message} <span className="mono">{f.path}</span> {f.hint}
            </p>
          ))}
          {h.diff ? (
            <Unified text={h.diff} label={`What would change for ${h.host}`} />
          ) : (
            <p>This page shows only the documents of the first hosts.</p>
          )}
        </ExpandableSection>
      ))}
      {i.changedN + i.failedN > i.hosts.length && <p>and {i.changedN + i.failedN - i.hosts.length} more</p>}
    </div>
  )
}

// Elsewhere lists what is said of other texts than the one that is edited.
export function Elsewhere({ marks }: { marks: Mark[] }) {
  if (marks.length === 0) return null
  return (
    <section className="editor" aria-label="Findings elsewhere">
      <Title headingLevel="h3" size="md">
        Elsewhere
      </Title>
      <ul className="editor-marks">
        {marks.map((m, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two findings may be the same in all they say
          <li key={i} className={m.severity}>
            <span aria-hidden>{m.severity === 'error' ? '✕' : '!'}</span>
            <span>
              <strong>{m.severity}</strong>: {m.message} <span className="mono">{m.about}</span> <small>{m.hint}</small>
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
