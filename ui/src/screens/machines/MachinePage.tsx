import { Alert, Card, CardBody, CardTitle, Content, Grid, GridItem, Label } from '@patternfly/react-core'
import { useState } from 'react'
import { Link, useParams } from 'react-router'
import type { Machine } from '../../api/client'
import { useHostNames } from '../../api/names'
import { usePage } from '../../api/page'
import { useList, useOne } from '../../api/queries'
import { Command } from '../../parts/Command'
import { Facts } from '../../parts/Facts'
import { Loaded } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
import { Screen } from '../../parts/Screen'
import { State } from '../../parts/State'
import { When } from '../../parts/When'
import { Addresses } from '../addresses/Addresses'
import { IssueList } from '../issues/Issues'
import { OperationTable } from '../operations/OperationTable'
import { AckHook, HoldHook, MachineActions } from './MachineActions'

// MachinePage is one machine: what is wanted, what it has, and what is done for it.
export function MachinePage() {
  const { name = '' } = useParams()
  const machine = useOne('machines', name)
  return (
    <Screen
      title={name}
      about="A machine: one server to install, with its host."
      actions={machine.data && <MachineActions machine={machine.data} />}
    >
      <Loaded query={machine}>
        {(m) => (
          <>
            {m.reason && (
              <Alert
                isInline
                variant={m.phase === 'failed' ? 'danger' : m.phase === 'running' ? 'info' : 'warning'}
                title={m.reason}
                component="h2"
                style={{ marginBlockEnd: '1rem' }}
              >
                {m.hint}
              </Alert>
            )}
            <Chain machine={m} />
            <Grid hasGutter style={{ marginBlock: '1rem' }}>
              <GridItem lg={6}>
                <WantedCard machine={m} />
              </GridItem>
              <GridItem lg={6}>
                <Hooks machine={m} />
              </GridItem>
            </Grid>
            <Card>
              <CardTitle component="h2">Static addresses</CardTitle>
              <CardBody>
                <Addresses of={{ machine: m.name }} none="The machine has no static address: it uses DHCP." />
              </CardBody>
            </Card>
            <Doings machine={m} />
            <Command cli={`slipway machine show ${m.name}`} />
          </>
        )}
      </Loaded>
    </Screen>
  )
}

// Chain is machine, claim, host and node: what is bound to what.
function Chain({ machine: m }: { machine: Machine }) {
  const host = useOne('hosts', m.hostID ?? '')
  const named = useHostNames([m.hostID])
  const node = m.drain?.target ? m.drain.node || m.hostname || m.name : ''
  return (
    <ol className="chain" aria-label="From machine to node">
      <li>
        <small>Machine</small>
        <strong>{m.name}</strong>
        <State state={m.phase} />
      </li>
      <li>
        <small>Claim</small>
        {m.claimID ? <code>{m.claimID}</code> : <span>none yet</span>}
        {m.attemptN > 1 && <small>attempt {m.attemptN}</small>}
      </li>
      <li>
        <small>Host</small>
        {m.hostID ? (
          <>
            <Link to={`/hosts/${encodeURIComponent(named(m.hostID))}`}>{named(m.hostID)}</Link>
            {host.data && <State state={host.data.state} />}
            <Link to={`/hosts/${encodeURIComponent(named(m.hostID))}?tab=timeline`}>timeline</Link>
          </>
        ) : (
          <span>none yet</span>
        )}
      </li>
      <li>
        <small>Node</small>
        {node ? (
          <>
            <strong>{node}</strong>
            <Link to={`/clusters?target=${encodeURIComponent(m.drain?.target ?? '')}`}>in {m.drain?.target}</Link>
          </>
        ) : (
          <span>not a node</span>
        )}
      </li>
    </ol>
  )
}

function WantedCard({ machine: m }: { machine: Machine }) {
  const p = m.placement ?? {}
  return (
    <Card>
      <CardTitle component="h2">Settings</CardTitle>
      <CardBody>
        <Facts
          rows={[
            [
              'Profile',
              <Link key="p" to={`/profiles/${encodeURIComponent(m.profile ?? '')}`}>
                {m.profile}
              </Link>,
            ],
            ['Revision', m.profileRevision],
            ['Image', m.image],
            [
              'Pool',
              <Link key="o" to={`/pools/${encodeURIComponent(m.pool || 'default')}`}>
                {m.pool || 'default'}
              </Link>,
            ],
            ['Owner', m.owner],
            ['Host name', m.hostname],
            ['Exactly on', p.host],
            ['Hosts that match', p.selector && <code>{p.selector}</code>],
            ['Failure domain', p.failureDomain && `${p.failureDomain}${p.isDomainPreferred ? ', if possible' : ''}`],
            ['Reuse', p.reuse],
            [
              'Parameters',
              Object.entries(m.parameters ?? {})
                .map(([k, v]) => `${k}=${v}`)
                .join(', '),
            ],
            ['Kernel arguments', m.kernelArgs?.join(' ')],
            ['Disks that are kept', m.keepDisks?.length],
            ['Disks after the deletion', m.clean || 'as the pool says'],
            ['Bootstrap data from', m.bootstrapFrom],
            ['Failed before on', m.avoid?.length ? `${m.avoid.length} hosts` : ''],
            ['Created', <When key="c" at={m.createdAt} />],
            ['Deletion requested', m.deletedAt && <When at={m.deletedAt} />],
            ['Next check', m.nextAt && <When at={m.nextAt} />],
          ]}
        />
        {m.config && <pre className="mono">{m.config}</pre>}
      </CardBody>
    </Card>
  )
}

function Hooks({ machine: m }: { machine: Machine }) {
  const [acked, setAcked] = useState<{ step: string; owner: string }>()
  const [held, setHeld] = useState<{ step: string; owner: string }>()
  return (
    <Card>
      <CardTitle component="h2">Hooks</CardTitle>
      <CardBody>
        {(m.hooks ?? []).length === 0 ? (
          <Content component="p">It has no hooks.</Content>
        ) : (
          <Rows
            label="Hooks"
            rows={m.hooks ?? []}
            keyOf={(h) => `${h.step} ${h.owner}`}
            columns={[
              ['Step', (h) => h.step],
              ['Who acknowledges', (h) => h.owner],
              [
                'Acknowledged',
                (h) =>
                  h.ackedAt ? (
                    <When at={h.ackedAt} />
                  ) : (
                    <>
                      <button
                        type="button"
                        className="pf-v6-c-button pf-m-link pf-m-inline"
                        onClick={() => setAcked({ step: h.step, owner: h.owner })}
                      >
                        Acknowledge
                      </button>
                      {h.reason && <div>Not yet: {h.reason}</div>}
                      <button
                        type="button"
                        className="pf-v6-c-button pf-m-link pf-m-inline"
                        onClick={() => setHeld({ step: h.step, owner: h.owner })}
                      >
                        Give a reason
                      </button>
                    </>
                  ),
              ],
            ]}
          />
        )}
        {held && <HoldHook machine={m.name} hook={held} close={() => setHeld(undefined)} />}
        {acked && <AckHook machine={m.name} hook={acked} close={() => setAcked(undefined)} />}
      </CardBody>
    </Card>
  )
}

function Doings({ machine: m }: { machine: Machine }) {
  const operations = usePage('operations', { machine: m.name }, 20)
  const issues = useList('issues', m.hostID ? { host: m.hostID } : {})
  const mine = m.hostID ? (issues.data ?? []) : []
  return (
    <>
      {mine.length > 0 && (
        <Card style={{ marginBlockEnd: '1rem' }}>
          <CardTitle component="h2">
            Issues of its host <Label isCompact>{mine.length}</Label>
          </CardTitle>
          <CardBody>
            <IssueList issues={mine.slice(0, 10)} />
          </CardBody>
        </Card>
      )}
      <Card style={{ marginBlockEnd: '1rem' }}>
        <CardTitle component="h2">Operations</CardTitle>
        <CardBody>
          <Loaded query={operations}>
            {({ items, hasMore }) =>
              items.length === 0 ? (
                <Content component="p">It has no operation yet.</Content>
              ) : (
                <>
                  <OperationTable operations={items} />
                  {hasMore && <Link to={`/operations?machine=${encodeURIComponent(m.name)}`}>All of them</Link>}
                </>
              )
            }
          </Loaded>
        </CardBody>
      </Card>
    </>
  )
}
