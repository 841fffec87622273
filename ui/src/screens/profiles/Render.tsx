import { CodeBlock, ExpandableSection, FormGroup, TextInput, Title } from '@patternfly/react-core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link, useSearchParams } from 'react-router'
import { type Call, send } from '../../api/act'
import type { Profile, Schemas } from '../../api/client'
import { usePage } from '../../api/page'
import { useOne } from '../../api/queries'
import { Command } from '../../parts/Command'
import { Unified } from '../../parts/Diff'
import { Facts } from '../../parts/Facts'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { HostNames } from '../../parts/HostNames'
import { useLater } from '../../parts/later'
import { Rows } from '../../parts/Rows'
import { draftOf, sentOf } from './draft'

type Preview = Schemas['Preview']

// Hosts lists the hosts that a profile is for, and shows what one of them would be given.
export function Hosts({ profile }: { profile: Profile }) {
  const names = useOne('profiles', profile.name, '/hosts')
  const any = usePage('hosts', {}, 1)
  const [params, setParams] = useSearchParams()
  const chosen = params.get('host') ?? names.data?.items[0] ?? ''
  const choose = (host: string) => {
    const next = new URLSearchParams(params)
    next.set('host', host)
    setParams(next, { replace: true })
  }
  return (
    <Loaded query={names}>
      {({ items }) => (
        <>
          <section aria-label="Hosts of the profile">
            <Title headingLevel="h2" size="lg">
              {items.length === 0
                ? 'No host gets this profile now'
                : `${items.length} ${items.length === 1 ? 'host gets' : 'hosts get'} this profile`}
            </Title>
            {items.length > 0 && (
              <p>
                {items.slice(0, 200).map((n) => (
                  <span key={n}>
                    <Link to={`/hosts/${n}`}>{n}</Link>{' '}
                  </span>
                ))}
                {items.length > 200 && `and ${items.length - 200} more`}
              </p>
            )}
          </section>
          {any.data?.items.length === 0 ? (
            <Nothing title="There is no host yet">
              Hosts appear when they boot. Then you can see here what they would get.
            </Nothing>
          ) : (
            <>
              <FormGroup className="render-host" label="Show for host" fieldId="render-host">
                <TextInput
                  id="render-host"
                  value={chosen}
                  list="render-hosts"
                  onChange={(_, v) => choose(v)}
                  autoComplete="off"
                />
                <HostNames id="render-hosts" typed={chosen} />
              </FormGroup>
              {chosen && <Rendered host={chosen} profile={profile} />}
            </>
          )}
        </>
      )}
    </Loaded>
  )
}

// Rendered is what a host would be given with this profile.
function Rendered({ host, profile }: { host: string; profile: Profile }) {
  const late = useLater(host)
  const call: Call = {
    method: 'POST',
    path: `/hosts/${encodeURIComponent(late)}/render`,
    body: sentOf(profile.name, draftOf(profile)),
  }
  const render = useQuery({
    queryKey: ['hosts', 'render', call],
    queryFn: () => send<Preview>(call),
    retry: false,
    placeholderData: keepPreviousData,
  })
  const p = render.data
  if (render.error) return <Failure error={render.error} again={() => void render.refetch()} />
  if (!p) return null
  return (
    <section aria-label={`What ${p.host} would get`} className="rendered">
      <Title headingLevel="h2" size="lg">
        What {p.host} would get
      </Title>
      <Facts
        rows={[
          [
            'Format',
            p.format
              ? `${p.format} ${p.tool ?? ''}`
              : 'nothing is rendered: the image reads no configuration, or there is none',
          ],
          ['Kernel arguments', (p.args ?? []).length > 0 && <code key="args">{(p.args ?? []).join(' ')}</code>],
          ['Secrets it needs', (p.references ?? []).join(', ')],
          ['Digest', p.digest && <code key="digest">{p.digest.slice(0, 23)}…</code>],
        ]}
      />
      {p.findings.map((f, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two findings may be the same in all they say
        <p key={i}>
          <strong>{f.severity}</strong>: {f.message}{' '}
          <span className="mono">{[f.source, f.path].filter(Boolean).join(' ')}</span> {f.hint}
        </p>
      ))}
      <Title headingLevel="h3" size="md">
        Compare with the last delivery
      </Title>
      {p.since ? (
        p.diff ? (
          <Unified text={p.diff} label="Difference to the last delivery" />
        ) : (
          <p>The configuration is the same as in the last delivery.</p>
        )
      ) : (
        <p>The host has not received a configuration yet.</p>
      )}
      {p.documents.map((d) => (
        <div key={d.name}>
          <Title headingLevel="h3" size="md">
            {d.name}
          </Title>
          <CodeBlock>
            {/* it scrolls, so the keyboard must get there */}
            <pre
              className="pf-v6-c-code-block__pre document"
              tabIndex={0}
              role="group"
              aria-label={`Text of ${d.name}`}
            >
              <code className="pf-v6-c-code-block__code">{pretty(d)}</code>
            </pre>
          </CodeBlock>
        </div>
      ))}
      <Provenance of={p.provenance ?? {}} />
      <Command cli={`slipway render ${p.host}`} call={call} />
    </section>
  )
}

function pretty(d: Schemas['RenderedDocument']): string {
  if (!d.contentType.includes('json')) return d.text
  try {
    return JSON.stringify(JSON.parse(d.text), null, 2)
  } catch {
    return d.text
  }
}

function Provenance({ of }: { of: Record<string, string> }) {
  const rows = Object.entries(of).toSorted(([a], [b]) => (a < b ? -1 : 1))
  if (rows.length === 0) return null
  return (
    <ExpandableSection toggleText={`Where each of ${rows.length} values comes from`}>
      <Rows
        label="Where values come from"
        rows={rows.slice(0, 1000)}
        keyOf={([path]) => path}
        columns={[
          ['Value', ([path]) => path, { className: 'mono' }],
          ['Layer and line', ([, source]) => source],
        ]}
      />
    </ExpandableSection>
  )
}
