import { Alert, Stack, StackItem } from '@patternfly/react-core'
import { Link } from 'react-router'
import type { Issue } from '../api/client'
import { useList } from '../api/queries'
import { Loaded, Nothing } from '../parts/Failure'
import { Screen } from '../parts/Screen'
import { When } from '../parts/When'

export function Issues() {
  const issues = useList('issues')
  return (
    <Screen
      title="Issues"
      about="What is wrong now, with its cause and what to do. An issue closes by itself when its cause is gone."
    >
      <Loaded query={issues}>
        {(all) => (all.length === 0 ? <Nothing title="Nothing is wrong" /> : <IssueList issues={all} />)}
      </Loaded>
    </Screen>
  )
}

export function IssueList({ issues }: { issues: Issue[] }) {
  const hosts = useList('hosts')
  const named = new Map(hosts.data?.map((h) => [h.id, h.name]))
  return (
    <Stack hasGutter>
      {issues.map((i) => (
        <StackItem key={i.id}>
          <Alert
            isInline
            variant={i.severity === 'error' ? 'danger' : 'warning'}
            title={`${i.type}: ${i.cause}`}
            component="h2"
          >
            {i.hint && <p>{i.hint}</p>}
            <p>
              {(i.hostIDs ?? []).map((id) => (
                <span key={id}>
                  <Link to={`/hosts/${named.get(id) ?? id}`}>{named.get(id) ?? id}</Link>{' '}
                </span>
              ))}
              <small>
                since <When at={i.openedAt} />
              </small>
            </p>
          </Alert>
        </StackItem>
      ))}
    </Stack>
  )
}
