import { Button, Content } from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useState } from 'react'
import { Link } from 'react-router'
import type { Pool } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Command } from '../../parts/Command'
import { Loaded, Nothing } from '../../parts/Failure'
import { Screen } from '../../parts/Screen'
import { PoolForm } from './PoolForm'

export function PoolList() {
  const pools = useList('pools')
  const me = useMe()
  const why = me && mayNot(me, 'admin', '')
  const [isNew, setNew] = useState(false)
  return (
    <Screen
      title="Pools"
      about="Sets of hosts that machines are taken from, with how much may happen in them at once."
      actions={
        <Button isAriaDisabled={why !== undefined} title={why ?? ''} onClick={() => !why && setNew(true)}>
          Create a pool
        </Button>
      }
    >
      <Loaded query={pools}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="There is one pool: default">
              <Content component="p">
                It holds every accepted host, and machines that name no pool are taken from it. Pools of your own split
                the rack between teams, keep spare hosts, and bound how many hosts are installed or wiped at a time.
              </Content>
              <code>slipway pool create web --selector rack=r1 --min-spare 1</code>
            </Nothing>
          ) : (
            <PoolTable pools={all} />
          )
        }
      </Loaded>
      <Command cli="slipway pool list" />
      {isNew && <PoolForm close={() => setNew(false)} />}
    </Screen>
  )
}

function PoolTable({ pools }: { pools: Pool[] }) {
  return (
    <Table aria-label="Pools" variant="compact">
      <Thead>
        <Tr>
          <Th>Name</Th>
          <Th>Hosts that match</Th>
          <Th>Hosts</Th>
          <Th>Available</Th>
          <Th>Claimed</Th>
          <Th>Cleaning</Th>
          <Th>Failed</Th>
          <Th>Spares</Th>
        </Tr>
      </Thead>
      <Tbody>
        {pools.map((p) => (
          <Tr key={p.name}>
            <Td dataLabel="Name">
              <Link to={`/pools/${encodeURIComponent(p.name)}`}>{p.name}</Link>
            </Td>
            <Td dataLabel="Hosts that match">{p.selector ? <code>{p.selector}</code> : 'all'}</Td>
            <Td dataLabel="Hosts">{p.hosts.total}</Td>
            <Td dataLabel="Available">{p.hosts.available}</Td>
            <Td dataLabel="Claimed">{p.hosts.claimed}</Td>
            <Td dataLabel="Cleaning">{p.hosts.cleaning}</Td>
            <Td dataLabel="Failed">{p.hosts.failed}</Td>
            <Td dataLabel="Spares">
              {p.minSpare ?? 0}
              {(p.minSpare ?? 0) > p.hosts.available && ' (too few are available)'}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  )
}
