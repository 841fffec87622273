import { Content } from '@patternfly/react-core'
import { useState } from 'react'
import { Link } from 'react-router'
import type { Pool } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { nouns } from '../../api/nouns'
import { useList } from '../../api/queries'
import { Act } from '../../parts/Act'
import { Command } from '../../parts/Command'
import { Loaded, Nothing } from '../../parts/Failure'
import { NounForm } from '../../parts/NounForm'
import { Rows } from '../../parts/Rows'
import { Screen } from '../../parts/Screen'

export function PoolList() {
  const pools = useList('pools')
  const me = useMe()
  const why = me && mayNot(me, 'admin', '')
  const [isNew, setNew] = useState(false)
  return (
    <Screen
      title="Pools"
      about="Sets of hosts for machines, with limits for installations and wipes."
      actions={<Act text="Create a pool" variant="primary" not={why} act={() => setNew(true)} />}
    >
      <Loaded query={pools}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="There is one pool: default">
              <Content component="p">
                It contains every host. Machines that name no pool take their host from it. Other pools divide the hosts
                between teams, keep spare hosts, and limit installations and wipes.
              </Content>
              <code>slipway pool create web --selector rack=r1 --min-spare 1</code>
            </Nothing>
          ) : (
            <PoolTable pools={all} />
          )
        }
      </Loaded>
      <Command cli="slipway pool list" />
      {isNew && <NounForm d={nouns.pools} close={() => setNew(false)} />}
    </Screen>
  )
}

function PoolTable({ pools }: { pools: Pool[] }) {
  return (
    <Rows
      label="Pools"
      rows={pools}
      keyOf={(p) => p.name}
      columns={[
        ['Name', (p) => <Link to={`/pools/${encodeURIComponent(p.name)}`}>{p.name}</Link>],
        ['Hosts that match', (p) => (p.selector ? <code>{p.selector}</code> : 'all')],
        ['Hosts', (p) => p.hosts.total],
        ['Available', (p) => p.hosts.available],
        ['Claimed', (p) => p.hosts.claimed],
        ['Cleaning', (p) => p.hosts.cleaning],
        ['Failed', (p) => p.hosts.failed],
        [
          'Spares',
          (p) => (
            <>
              {p.minSpare ?? 0}
              {(p.minSpare ?? 0) > p.hosts.available && ' (too few are available)'}
            </>
          ),
        ],
      ]}
    />
  )
}
