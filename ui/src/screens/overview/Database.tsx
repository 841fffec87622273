import { Card, CardBody, CardTitle } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { Link } from 'react-router'
import { api, must, type Schemas } from '../../api/client'
import { useList } from '../../api/queries'
import { sentence } from '../../parts/Ask'
import { Facts } from '../../parts/Facts'
import { Loaded } from '../../parts/Failure'
import { Tag } from '../../parts/State'
import { standbyText } from './standby'

// Database shows where the inventory is. For SQLite it shows nothing.
export function Database() {
  const database = useQuery({
    queryKey: ['database'],
    refetchInterval: 15_000,
    staleTime: 0,
    queryFn: () => must(api.GET('/api/v1/database')),
  })
  return <Loaded query={database}>{(d) => (d.kind === 'sqlite' ? null : <PostgreSQL database={d} />)}</Loaded>
}

function PostgreSQL({ database: d }: { database: Schemas['Database'] }) {
  return (
    <Card isCompact>
      <CardTitle component="h3">Database</CardTitle>
      <CardBody>
        <Facts
          rows={[
            ['PostgreSQL', d.version],
            ['Primary', d.server],
            [
              'Round trip',
              d.isReachable ? `${(d.roundTripSeconds * 1000).toFixed(1)} ms` : <Unreachable key="away" database={d} />,
            ],
            ['Changes', d.isDurable !== undefined && <Durable database={d} />],
            [
              'Commits',
              d.waitsFor && (
                <>
                  <Tag color="red">wait</Tag> Nothing is stored before standby {d.waitsFor} is connected.
                </>
              ),
            ],
            [
              'Standbys',
              d.standbys.length > 0 && d.standbys.map((s) => <p key={`${s.name} ${s.address}`}>{standbyText(s)}</p>),
            ],
            ['Instances', <Instances key="instances" />],
          ]}
        />
      </CardBody>
    </Card>
  )
}

function Unreachable({ database: d }: { database: Schemas['Database'] }) {
  return (
    <>
      <Tag color="red">no answer</Tag> {d.reason && sentence(d.reason)} {d.hint && sentence(d.hint)}
    </>
  )
}

function Durable({ database: d }: { database: Schemas['Database'] }) {
  if (d.isDurable) {
    const isCopied = d.standbys.some((s) => s.sync === 'sync' || s.sync === 'quorum')
    return (
      <>
        <Tag color="green">durable</Tag>{' '}
        {isCopied
          ? 'Each commit is on the disk of a synchronous standby, too.'
          : 'Each commit is on the disk. No standby has to have it.'}
      </>
    )
  }
  return (
    <>
      <Tag color="orange">not durable</Tag> Acknowledged changes can be lost:
      {d.risks.map((r) => (
        <p key={r.cause}>
          {r.cause}; {r.hint}
        </p>
      ))}
    </>
  )
}

function Instances() {
  const instances = useList('instances').data
  const leader = instances?.find((i) => i.isLeader)
  return (
    <Link to="/instances">
      {instances === undefined
        ? 'Instances of this database'
        : `${instances.filter((i) => i.life === 'alive').length} of ${instances.length} alive`}
      {leader && `; ${leader.name} has the engine`}
    </Link>
  )
}
