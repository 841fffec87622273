import { Progress } from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { Link } from 'react-router'
import type { Operation } from '../api/client'
import { useList } from '../api/queries'
import { Loaded, Nothing } from '../parts/Failure'
import { Screen } from '../parts/Screen'
import { When } from '../parts/When'

export function Operations() {
  const operations = useList('operations')
  return (
    <Screen title="Operations" about="What is being done with hosts, step by step, and what was.">
      <Loaded query={operations}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="Nothing was done yet">
              Installing, inspecting, wiping and powering hosts shows here.
            </Nothing>
          ) : (
            <OperationTable operations={all} />
          )
        }
      </Loaded>
    </Screen>
  )
}

export function OperationTable({ operations }: { operations: Operation[] }) {
  const hosts = useList('hosts')
  const named = new Map(hosts.data?.map((h) => [h.id, h.name]))
  return (
    <Table aria-label="Operations" variant="compact">
      <Thead>
        <Tr>
          <Th>Kind</Th>
          <Th>Host</Th>
          <Th>Step</Th>
          <Th>State</Th>
          <Th>Reason</Th>
          <Th>Began</Th>
        </Tr>
      </Thead>
      <Tbody>
        {operations.map((o) => {
          const host = named.get(o.hostID) ?? o.hostID
          const { bytes: done = 0, total = 0 } = o.progress ?? {}
          return (
            <Tr key={o.id}>
              <Td dataLabel="Kind">{o.kind}</Td>
              <Td dataLabel="Host">
                <Link to={`/hosts/${host}`}>{host}</Link>
              </Td>
              <Td dataLabel="Step">
                {o.step}
                {total > 0 && <Progress aria-label={`${o.step} of ${host}`} value={(100 * done) / total} size="sm" />}
              </Td>
              <Td dataLabel="State">{o.state}</Td>
              <Td dataLabel="Reason">
                {o.reason} {o.hint && <small>{o.hint}</small>}
              </Td>
              <Td dataLabel="Began">
                <When at={o.startedAt} />
              </Td>
            </Tr>
          )
        })}
      </Tbody>
    </Table>
  )
}
