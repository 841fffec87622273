import { Card, CardBody, CardTitle, Gallery, Title } from '@patternfly/react-core'
import { Link } from 'react-router'
import { useList } from '../api/queries'
import { Loaded, Nothing } from '../parts/Failure'
import { Screen } from '../parts/Screen'
import { stateLook } from '../parts/State'
import { IssueList } from './Issues'
import { OperationTable } from './Operations'

const states = ['discovered', 'inspecting', 'available', 'installing', 'active', 'releasing', 'cleaning', 'failed']

export function Overview() {
  const hosts = useList('hosts')
  const issues = useList('issues')
  const operations = useList('operations', { open: true })
  return (
    <Screen title="Overview">
      <Loaded query={hosts}>
        {(all) => (
          <Gallery hasGutter minWidths={{ default: '9rem' }}>
            {states.map((s) => (
              <Card key={s} isCompact>
                <CardTitle>
                  <span aria-hidden>{stateLook(s)[1]}</span> {s}
                </CardTitle>
                <CardBody>
                  <Link
                    to={`/hosts?q=state=${s}`}
                    style={{ fontSize: '1.75rem' }}
                    aria-label={`${all.filter((h) => h.state === s).length} hosts ${s}`}
                  >
                    {all.filter((h) => h.state === s).length}
                  </Link>
                </CardBody>
              </Card>
            ))}
          </Gallery>
        )}
      </Loaded>
      <Title headingLevel="h2" style={{ marginBlock: '1.5rem 0.5rem' }}>
        Failing now
      </Title>
      <Loaded query={issues}>
        {(all) => (all.length === 0 ? <p>Nothing is wrong.</p> : <IssueList issues={all.slice(0, 20)} />)}
      </Loaded>
      <Title headingLevel="h2" style={{ marginBlock: '1.5rem 0.5rem' }}>
        Running operations
      </Title>
      <Loaded query={operations}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="Nothing is being done" />
          ) : (
            <OperationTable operations={all.slice(0, 50)} />
          )
        }
      </Loaded>
    </Screen>
  )
}
