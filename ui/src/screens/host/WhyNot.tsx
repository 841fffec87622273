import { Alert, ExpandableSection, List, ListItem, Stack, StackItem, Title } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { api, type Host, must } from '../../api/client'
import { When } from '../../parts/When'

// A cause of less weight than this only makes a boot slow, or is one of many possible.
const worthSaying = 60

// WhyNot says why a host's boot does not come off: the likeliest causes, what to do, and what was seen.
export function WhyNot({ host }: { host: Host }) {
  const q = useQuery({
    queryKey: ['hosts', host.name, '/diagnosis'],
    queryFn: () => must(api.GET('/api/v1/hosts/{host}/diagnosis', { params: { path: { host: host.name } } })),
    refetchInterval: 10_000,
  })
  const causes = q.data?.causes.filter((c) => c.weight >= worthSaying) ?? []
  if (causes.length === 0) return null
  return (
    <section aria-label="Why it does not boot" className="host-issues">
      <Title headingLevel="h2">Why it does not boot</Title>
      <Stack hasGutter>
        {causes.map((c) => (
          <StackItem key={c.code}>
            <Alert isInline variant={c.rank === 1 ? 'warning' : 'info'} title={c.sentence} component="h3">
              <p>{c.hint}</p>
              <ExpandableSection toggleText={`What was seen (${c.evidence.length})`}>
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
        ))}
      </Stack>
    </section>
  )
}
