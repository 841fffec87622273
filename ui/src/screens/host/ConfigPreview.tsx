import { Alert, CodeBlock, CodeBlockCode, FormSelect, FormSelectOption, Title } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useSearchParams } from 'react-router'
import { api, type Host, must, type Schemas } from '../../api/client'
import { useOne } from '../../api/queries'
import { Command } from '../../parts/Command'
import { Diff, Unified } from '../../parts/Diff'
import { Facts } from '../../parts/Facts'
import { Loaded, Nothing } from '../../parts/Failure'

type Preview = Schemas['Preview']
type Document = Schemas['RenderedDocument']

// pretty lays JSON out in lines.
export function pretty(d: Pick<Document, 'contentType' | 'text'>): string {
  if (!d.contentType.includes('json')) return d.text
  try {
    return JSON.stringify(JSON.parse(d.text), null, 2)
  } catch {
    return d.text
  }
}

// ConfigPreview shows what a host would be given now, which layer said each line of it, and what differs from before.
export function ConfigPreview({ host }: { host: Host }) {
  const preview = useOne('hosts', host.name, '/render')
  const path = `/hosts/${encodeURIComponent(host.name)}/render`
  return (
    <>
      <Loaded query={preview}>
        {(p) => (
          <>
            <Facts
              rows={[
                ['Profile', p.profile && `${p.profile}${p.revision ? `, revision ${p.revision}` : ''}`],
                ['Image', p.image],
                [
                  'Format',
                  p.format
                    ? `${p.format}${p.tool ? ` (version ${p.tool})` : ''}`
                    : 'nothing is rendered: the image reads no configuration, or there is none',
                ],
                ['Kernel arguments', (p.args ?? []).length > 0 && <code key="args">{(p.args ?? []).join(' ')}</code>],
                [
                  'Secrets',
                  (p.references ?? []).length > 0 &&
                    `${(p.references ?? []).join(', ')}. Slipway gives their values only to the machine.`,
                ],
              ]}
            />
            {p.findings.map((f, i) => (
              <Alert
                // biome-ignore lint/suspicious/noArrayIndexKey: two findings may be the same in all they say
                key={i}
                isInline
                variant={f.severity === 'error' ? 'danger' : 'warning'}
                title={f.message}
                component="h2"
              >
                <span className="mono">{[f.source, f.path].filter(Boolean).join(' ')}</span> {f.hint}
              </Alert>
            ))}
            {(p.config ?? []).length > 0 && <Lines of={p.config ?? []} />}
            {p.documents.map((d) => (
              <section key={d.name} aria-label={`Document ${d.name}`}>
                <Title headingLevel="h2">{d.name}</Title>
                <CodeBlock>
                  <CodeBlockCode>{pretty(d).slice(0, 500_000)}</CodeBlockCode>
                </CodeBlock>
              </section>
            ))}
            {p.documents.length === 0 && p.findings.length === 0 && (
              <Nothing title="The host gets no configuration">
                Neither its profile nor a layer has a configuration.
              </Nothing>
            )}
            <Against host={host.name} now={p} />
          </>
        )}
      </Loaded>
      <Command cli={`slipway render ${host.name}`} call={{ method: 'GET', path }} />
    </>
  )
}

// Lines is the configuration with the layer of each line beside it.
function Lines({ of }: { of: { text: string; from?: string }[] }) {
  const shown = of.slice(0, 3000)
  return (
    <section aria-label="Source of each value">
      <Title headingLevel="h2">Source of each value</Title>
      <section className="host-provenance" aria-label="Lines" tabIndex={0}>
        <div role="table" aria-label="Configuration with its layers">
          <div role="row" className="host-provenance-head">
            <span role="columnheader">Configuration</span>
            <span role="columnheader">Layer and line</span>
          </div>
          {shown.map((l, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name
            <div role="row" key={i}>
              <span role="cell" className="mono">
                {l.text}
              </span>
              <span role="cell">
                {l.from && l.from !== shown[i - 1]?.from ? (
                  l.from
                ) : (
                  <span className="pf-v6-u-screen-reader">{l.from ?? ''}</span>
                )}
              </span>
            </div>
          ))}
        </div>
      </section>
      {of.length > shown.length && <p>and {of.length - shown.length} more lines</p>}
    </section>
  )
}

// Against compares with what the host was given last, or at another time.
function Against({ host, now }: { host: string; now: Preview }) {
  const [params, setParams] = useSearchParams()
  const chosen = params.get('since') ?? ''
  const past = useQuery({
    queryKey: ['hosts', host, 'renderings'],
    queryFn: () => must(api.GET('/api/v1/hosts/{host}/renderings', { params: { path: { host } } })),
  })
  const other = useQuery({
    queryKey: ['renderings', chosen],
    queryFn: () => must(api.GET('/api/v1/renderings/{digest}', { params: { path: { digest: chosen } } })),
    enabled: chosen !== '',
  })
  const text = (docs: Document[]) => docs.map((d) => `# ${d.name}\n${pretty(d)}\n`).join('\n')
  return (
    <section aria-label="What differs">
      <div className="host-events-head">
        <Title headingLevel="h2">What differs</Title>
        <FormSelect
          aria-label="Compare with"
          value={chosen}
          onChange={(_, v) =>
            setParams((p) => {
              if (v) p.set('since', v)
              else p.delete('since')
              return p
            })
          }
        >
          <FormSelectOption value="" label="from the last delivery" />
          {(past.data?.items ?? []).map((r) => (
            <FormSelectOption
              key={r.digest}
              value={r.digest}
              label={`${new Date(r.createdAt).toLocaleString()}: ${r.profile}, revision ${r.revision}`}
            />
          ))}
        </FormSelect>
      </div>
      {chosen ? (
        <Loaded query={other}>
          {(r) => (
            <Diff
              before={text(r.documents)}
              after={text(now.documents)}
              label="Difference to the delivery of that time"
            />
          )}
        </Loaded>
      ) : !now.since ? (
        <p>The host has not received a configuration yet.</p>
      ) : now.diff ? (
        <Unified text={now.diff} label="Difference to the last delivery" />
      ) : (
        <p>The configuration is the same as in the last delivery.</p>
      )}
    </section>
  )
}
