import { Card, CardBody, CardTitle } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { Link } from 'react-router'
import { api, must, type Schemas } from '../../api/client'
import { Loaded } from '../../parts/Failure'
import { Tag } from '../../parts/State'

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
        <p>
          PostgreSQL {d.version} at {d.server}, answers in {(d.roundTripSeconds * 1000).toFixed(1)} ms
        </p>
        {d.isDurable === undefined ? null : d.isDurable ? (
          <p>
            <Tag color="green">durable</Tag> Acknowledged changes survive a crash and a failover.
          </p>
        ) : (
          <p>
            <Tag color="orange">not durable</Tag> A crash or a failover can lose acknowledged changes.
          </p>
        )}
        {d.waitsFor && (
          <p>
            <Tag color="red">waits</Tag> Each commit waits for {d.waitsFor}.
          </p>
        )}
        <p>
          <Link to="/instances">Instances of this database</Link>
        </p>
        {d.standbys.map((s) => (
          <p key={`${s.name} ${s.address}`}>
            Standby {s.name} {s.address}: {s.state ? `${s.state}, ${s.sync}, ${s.lagBytes} bytes behind` : 'not known'}
          </p>
        ))}
      </CardBody>
    </Card>
  )
}
