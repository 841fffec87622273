import { Card, CardBody, CardTitle, Content, Grid, GridItem, Progress } from '@patternfly/react-core'
import { useState } from 'react'
import { Link, useNavigate, useParams } from 'react-router'
import type { Host, Pool } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { nouns } from '../../api/nouns'
import { usePage } from '../../api/page'
import { useList, useOne } from '../../api/queries'
import { Act } from '../../parts/Act'
import { Ask, dryOf } from '../../parts/Ask'
import { Command } from '../../parts/Command'
import { Facts } from '../../parts/Facts'
import { Loaded } from '../../parts/Failure'
import { NounForm } from '../../parts/NounForm'
import { Screen } from '../../parts/Screen'
import { State } from '../../parts/State'
import { MachineTable } from '../machines/MachineList'

const shown = 100

export function PoolPage() {
  const { name = '' } = useParams()
  const pool = useOne('pools', name)
  const isImplied = name === 'default' && pool.error !== null
  return (
    <Screen
      title={name}
      about="A pool: a set of hosts for machines."
      actions={pool.data && <Actions pool={pool.data} />}
    >
      {isImplied ? (
        <Content component="p">
          As long as nobody creates the pool default, it contains every host, and has no limits.
        </Content>
      ) : (
        <Loaded query={pool}>{(p) => <About pool={p} />}</Loaded>
      )}
      {(pool.data || isImplied) && <Members name={name} selector={pool.data?.selector ?? ''} />}
      <Command cli={`slipway pool show ${name}`} />
    </Screen>
  )
}

function Actions({ pool }: { pool: Pool }) {
  const me = useMe()
  const go = useNavigate()
  const [asked, setAsked] = useState<'edit' | 'delete'>()
  const why = (me && mayNot(me, 'admin', '')) ?? (pool.owner ? `it belongs to ${pool.owner}` : undefined)
  return (
    <div>
      <Act text="Edit" variant="primary" not={why} act={() => setAsked('edit')} />{' '}
      <Act text="Delete" variant="secondary" isDanger not={why} act={() => setAsked('delete')} />
      {asked === 'edit' && <NounForm d={nouns.pools} one={pool} close={() => setAsked(undefined)} />}
      {asked === 'delete' && (
        <Ask
          title={`Delete pool ${pool.name}?`}
          verb="Delete"
          foresees={dryOf({ method: 'DELETE', path: `/pools/${encodeURIComponent(pool.name)}`, version: pool.version })}
          call={{ method: 'DELETE', path: `/pools/${encodeURIComponent(pool.name)}`, version: pool.version }}
          cli={`slipway pool delete ${pool.name}`}
          close={() => setAsked(undefined)}
          done={() => go('/pools')}
        />
      )}
    </div>
  )
}

function Bar({ label, n, of }: { label: string; n: number; of: number }) {
  return <Progress size="sm" title={label} value={of > 0 ? (100 * n) / of : 0} label={`${n} of ${of}`} />
}

function About({ pool: p }: { pool: Pool }) {
  // Operations that wait for the budget do not use any of it.
  const open = useList('operations', { open: true })
  const using = (kinds: string[]) =>
    (open.data ?? []).filter((o) => (o.pool || 'default') === p.name && kinds.includes(o.kind) && o.grantedAt).length
  const { provision = 0, destroy = 0, destroyInterval } = p.budget ?? {}
  const installs = using(['install', 'reinstall'])
  const wipes = using(['release', 'clean'])
  const need = p.requirements ?? {}
  return (
    <Grid hasGutter style={{ marginBlockEnd: '1rem' }}>
      <GridItem lg={6}>
        <Card isFullHeight>
          <CardTitle component="h2">Settings</CardTitle>
          <CardBody>
            <Facts
              rows={[
                ['Hosts that match', p.selector ? <code key="s">{p.selector}</code> : 'all'],
                ['CPU threads at least', need.cpuThreads],
                ['Memory at least', need.memoryBytes && `${Math.round(need.memoryBytes / 2 ** 30)} GiB`],
                ['They must have', need.expression && <code>{need.expression}</code>],
                ['Disks of released hosts', p.clean || 'quick wipe'],
                ['Burn-in of new hosts', p.burnInFor],
                ['Namespaces that may claim', p.allowedNamespaces],
                ['Kept for', p.owner],
              ]}
            />
          </CardBody>
        </Card>
      </GridItem>
      <GridItem lg={6}>
        <Card isFullHeight>
          <CardTitle component="h2">Use</CardTitle>
          <CardBody>
            <div className="bars">
              <Bar label="Claimed" n={p.hosts.claimed} of={p.hosts.total} />
              <Bar label="Available" n={p.hosts.available} of={p.hosts.total} />
              {p.hosts.failed > 0 && <Bar label="Failed" n={p.hosts.failed} of={p.hosts.total} />}
            </div>
            <Facts
              rows={[
                ['Spares', `${p.hosts.available} free, ${p.minSpare ?? 0} required`],
                ['Installations now', provision ? `${installs} of ${provision} at once` : `${installs}, no limit`],
                ['Wipes now', destroy ? `${wipes} of ${destroy} at once` : `${wipes}, no limit`],
                ['Between two wipes', destroyInterval],
                ['Cleaning', p.hosts.cleaning],
              ]}
            />
          </CardBody>
        </Card>
      </GridItem>
    </Grid>
  )
}

// Members are the hosts that a selector matches, and the machines that were taken from the pool: a host may be in several
// pools, and its machine is from one.
function Members({ name, selector }: { name: string; selector: string }) {
  const hosts = usePage('hosts', selector ? { selector } : {}, shown)
  const machines = usePage('machines', { pool: name }, shown)
  return (
    <>
      <Card style={{ marginBlockEnd: '1rem' }}>
        <CardTitle component="h2">Hosts</CardTitle>
        <CardBody>
          <Loaded query={hosts}>
            {({ items, hasMore }) => (
              <>
                {items.length === 0 && <Content component="p">No host matches.</Content>}
                <ul className="members" aria-label="Its hosts">
                  {items.map((h: Host) => (
                    <li key={h.id}>
                      <Link to={`/hosts/${encodeURIComponent(h.name)}`}>{h.name}</Link> <State state={h.state} />
                    </li>
                  ))}
                </ul>
                {hasMore && <p>These are the first {shown}.</p>}
                {items.some((h) => h.state === 'discovered') && (
                  <p>Discovered hosts become part of the pool when you accept them.</p>
                )}
                <Link to={`/hosts?q=pool=${encodeURIComponent(name)}`}>Hosts with a machine of this pool</Link>
              </>
            )}
          </Loaded>
        </CardBody>
      </Card>
      <Card style={{ marginBlockEnd: '1rem' }}>
        <CardTitle component="h2">Machines from it</CardTitle>
        <CardBody>
          <Loaded query={machines}>
            {({ items, hasMore }) =>
              items.length === 0 ? (
                <Content component="p">No machine has a host of this pool.</Content>
              ) : (
                <>
                  <MachineTable machines={items} />
                  {hasMore && <Link to={`/machines?pool=${encodeURIComponent(name)}`}>All of them</Link>}
                </>
              )
            }
          </Loaded>
        </CardBody>
      </Card>
    </>
  )
}
