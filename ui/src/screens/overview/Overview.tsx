import {
  Alert,
  Button,
  Card,
  CardBody,
  CardTitle,
  Content,
  Gallery,
  Grid,
  GridItem,
  Spinner,
  Title,
} from '@patternfly/react-core'
import { Link } from 'react-router'
import { useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { useRows } from '../../api/rows'
import { useLive } from '../../api/useLive'
import { Checks, useChecks } from '../../parts/Checks'
import { Command } from '../../parts/Command'
import { Failure, Loaded, Stale } from '../../parts/Failure'
import { Screen } from '../../parts/Screen'
import { State, stateLook } from '../../parts/State'
import { IssueList } from '../issues/Issues'
import { OperationTable } from '../operations/OperationTable'
import { Database } from './Database'
import { Throughput } from './Throughput'

const states = ['discovered', 'inspecting', 'available', 'installing', 'active', 'releasing', 'cleaning', 'failed']
const shown = 10

export function Overview() {
  const me = useMe()
  const { rows, isWhole, error, refresh } = useRows(useLive())
  return (
    <Screen title="Overview">
      {(me?.needsSetup || (isWhole && rows.length === 0)) && (
        <Alert
          isInline
          variant="info"
          title={me?.needsSetup ? 'Nobody has an account yet' : 'No host has sent a packet yet'}
          component="h2"
          style={{ marginBlockEnd: '1rem' }}
          actionLinks={<Link to="/setup">Set up Slipway</Link>}
        >
          The setup leads from the network to the first machine that boots. You can also try it with simulated machines.
        </Alert>
      )}
      {error !== undefined &&
        (isWhole ? <Stale error={error} again={refresh} /> : <Failure error={error} again={refresh} />)}
      {isWhole ? <States all={rows} /> : error === undefined && <Spinner aria-label="Loading" />}
      <Undecided />
      <Part title="Open issues">
        <OpenIssues />
      </Part>
      <Part title="Running operations">
        <Running />
      </Part>
      <Part title="The last hour">
        <Throughput />
      </Part>
      <Part title="Health of this server">
        <Health />
      </Part>
      <Command cli="slipway selfcheck" />
    </Screen>
  )
}

function Part({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <section aria-label={title} style={{ marginBlockStart: '1.5rem' }}>
      <Title headingLevel="h2" style={{ marginBlockEnd: '0.5rem' }}>
        {title}
      </Title>
      {children}
    </section>
  )
}

function States({ all }: { all: readonly { state: string }[] }) {
  const counts = new Map<string, number>()
  for (const h of all) counts.set(h.state, (counts.get(h.state) ?? 0) + 1)
  return (
    <Gallery hasGutter minWidths={{ default: '8rem', lg: '14rem' }}>
      {states.map((s) => (
        <Card key={s} isCompact>
          <CardTitle>
            <span aria-hidden>{stateLook(s)[1]}</span> {s}
          </CardTitle>
          <CardBody>
            <Link
              to={`/hosts?q=state=${s}`}
              style={{ fontSize: '1.75rem' }}
              aria-label={`${counts.get(s) ?? 0} ${counts.get(s) === 1 ? 'host' : 'hosts'} ${s}`}
            >
              {counts.get(s) ?? 0}
            </Link>
          </CardBody>
        </Card>
      ))}
    </Gallery>
  )
}

// Undecided are the machines that stopped, whatever the reason: an admin retries, reinstalls or deletes each.
function Undecided() {
  const machines = useList('machines', { phase: 'failed' }).data ?? []
  if (machines.length === 0) return null
  return (
    <Part title="Machines that need a decision">
      {machines.slice(0, shown).map((m) => (
        <Alert
          key={m.uid}
          isInline
          variant="warning"
          component="h3"
          title={`Machine ${m.name}: ${m.reason ?? 'has failed'}`}
          style={{ marginBlockEnd: '1rem' }}
          actionLinks={<Link to={`/machines/${encodeURIComponent(m.name)}`}>Open the machine</Link>}
        >
          {m.hint}
        </Alert>
      ))}
      {machines.length > shown && <Link to="/machines?phase=failed">All {machines.length} machines</Link>}
    </Part>
  )
}

function OpenIssues() {
  const issues = useList('issues')
  return (
    <Loaded query={issues}>
      {(all) => (
        <>
          {all.length === 0 && <Content component="p">No issue is open.</Content>}
          <IssueList issues={[...all].sort((a, b) => a.severity.localeCompare(b.severity)).slice(0, shown)} />
          {all.length > shown && <Link to="/issues">All {all.length} issues</Link>}
        </>
      )}
    </Loaded>
  )
}

function Running() {
  const operations = useList('operations', { open: true })
  return (
    <Loaded query={operations}>
      {(all) =>
        all.length === 0 ? (
          <Content component="p">
            No operation is running. <Link to="/operations">Past operations</Link>
          </Content>
        ) : (
          <>
            <OperationTable operations={all.slice(0, shown)} label="Running operations" />
            {all.length > shown && <Link to="/operations?open=yes">All {all.length} running operations</Link>}
          </>
        )
      }
    </Loaded>
  )
}

function Health() {
  const checks = useChecks()
  const artefacts = useList('artefacts')
  const images = useList('images')
  const bytes = (artefacts.data ?? []).reduce((n, a) => n + a.sizeBytes, 0)
  return (
    <Grid hasGutter>
      <GridItem lg={8}>
        <Loaded query={checks}>
          {(all) => {
            const bad = all.filter((c) => c.status !== 'ok')
            return (
              <>
                {bad.length === 0 ? (
                  <Content component="p">All {all.length} checks are good.</Content>
                ) : (
                  <Checks checks={bad} />
                )}
                <Button variant="link" isInline isLoading={checks.isFetching} onClick={() => void checks.refetch()}>
                  Check again
                </Button>
              </>
            )
          }}
        </Loaded>
      </GridItem>
      <GridItem lg={4} className="cards">
        <Database />
        <Card isCompact>
          <CardTitle component="h3">Images and their files</CardTitle>
          <CardBody>
            <p>
              <Link to="/images">{images.data?.length ?? 0} images</Link> of {artefacts.data?.length ?? 0} files,{' '}
              {(bytes / 1e9).toFixed(1)} GB
            </p>
            {images.data?.length === 0 && (
              <p>
                <State state="pending" /> There is no image yet: import a system that machines can boot.
              </p>
            )}
          </CardBody>
        </Card>
      </GridItem>
    </Grid>
  )
}
