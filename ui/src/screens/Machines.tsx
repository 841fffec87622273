import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { Link } from 'react-router'
import { useList } from '../api/queries'
import { Loaded, Nothing } from '../parts/Failure'
import { Screen } from '../parts/Screen'
import { State } from '../parts/State'

export function Machines() {
  const machines = useList('machines')
  const hosts = useList('hosts')
  const named = new Map(hosts.data?.map((h) => [h.id, h.name]))
  return (
    <Screen title="Machines" about="The installed servers that somebody wants, and the hosts that they were given.">
      <Loaded query={machines}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="Nobody wants a machine yet">slipway machine create web-1 --profile PROFILE</Nothing>
          ) : (
            <Table aria-label="Machines" variant="compact">
              <Thead>
                <Tr>
                  <Th>Name</Th>
                  <Th>Phase</Th>
                  <Th>Profile</Th>
                  <Th>Host</Th>
                  <Th>What it waits for</Th>
                </Tr>
              </Thead>
              <Tbody>
                {all.map((m) => (
                  <Tr key={m.uid}>
                    <Td dataLabel="Name">{m.name}</Td>
                    <Td dataLabel="Phase">
                      <State state={m.phase} />
                    </Td>
                    <Td dataLabel="Profile">{m.profile}</Td>
                    <Td dataLabel="Host">
                      {m.hostID && (
                        <Link to={`/hosts/${named.get(m.hostID) ?? m.hostID}`}>{named.get(m.hostID) ?? m.hostID}</Link>
                      )}
                    </Td>
                    <Td dataLabel="What it waits for">
                      {m.reason}
                      {m.hint && (
                        <>
                          {' '}
                          <small>{m.hint}</small>
                        </>
                      )}
                    </Td>
                  </Tr>
                ))}
              </Tbody>
            </Table>
          )
        }
      </Loaded>
    </Screen>
  )
}
