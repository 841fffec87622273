import { Alert, ExpandableSection, List, ListItem, Stack, StackItem, Title } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { api, type Host, must, type Schemas } from '../../api/client'
import { When } from '../../parts/When'

type Cause = Schemas['Cause']

// A guess of less weight than this is one of very many.
const worthSaying = 60

// WhyNot says why a host's boot does not come off, when something is late or has failed: the one root cause apart from guesses,
// what to do, and what was seen.
export function WhyNot({ host }: { host: Host }) {
  const q = useQuery({
    queryKey: ['hosts', host.name, '/diagnosis'],
    queryFn: () => must(api.GET('/api/v1/hosts/{host}/diagnosis', { params: { path: { host: host.name } } })),
    refetchInterval: 10_000,
  })
  const all = q.data?.causes ?? []
  const root = all.find((c) => c.certainty === 'cause')
  const guesses = all.filter((c) => c.certainty === 'guess' && c.weight >= worthSaying)
  if (!root && guesses.length === 0) return null
  return (
    <section aria-label="Why it does not boot" className="host-issues">
      <Title headingLevel="h2">{root ? 'Why it does not boot' : 'Why it may not boot'}</Title>
      <p>{q.data?.trouble && `Slipway looks for causes because ${q.data.trouble}.`}</p>
      <Stack hasGutter>
        {root && <Seen of={root} variant="warning" title={root.sentence} />}
        {guesses.map((c) => (
          <Seen key={c.code} of={c} variant="info" title={`A guess: ${c.sentence}`} />
        ))}
      </Stack>
    </section>
  )
}

function Seen({ of: c, variant, title }: { of: Cause; variant: 'warning' | 'info'; title: string }) {
  return (
    <StackItem>
      <Alert isInline variant={variant} title={title} component="h3">
        <p>{c.hint}</p>
        <ExpandableSection toggleText={`Evidence (${c.evidence.length})`}>
          <List isPlain>
            {c.evidence.map((e, i) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the same packet may be seen twice
              <ListItem key={i}>
                {e.at && (
                  <>
                    <When at={e.at} exact />{' '}
                  </>
                )}
                {e.text}
              </ListItem>
            ))}
          </List>
        </ExpandableSection>
      </Alert>
    </StackItem>
  )
}
