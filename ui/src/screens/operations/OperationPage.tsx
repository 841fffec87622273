import { Alert, Button, Card, CardBody, CardTitle, Content } from '@patternfly/react-core'
import { useState } from 'react'
import { Link, useParams } from 'react-router'
import { type Event, isObject, type Operation } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useHostNames } from '../../api/names'
import { useList, useOne } from '../../api/queries'
import { Command } from '../../parts/Command'
import { Facts } from '../../parts/Facts'
import { Loaded } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
import { Screen } from '../../parts/Screen'
import { When } from '../../parts/When'
import { CancelOperation, HowFar, isOpen, OperationState } from './OperationTable'

// OperationPage is one operation: what it is at, and its steps as they happened.
export function OperationPage() {
  const { id = '' } = useParams()
  const operation = useOne('operations', id)
  const o = operation.data
  const named = useHostNames([o?.hostID])
  return (
    <Screen
      title={o ? `${o.kind} of ${named(o.hostID)}` : 'Operation'}
      actions={o && <Actions o={o} host={named(o.hostID)} />}
    >
      <Loaded query={operation}>
        {(o) => (
          <>
            <Card>
              <CardTitle component="h2">State</CardTitle>
              <CardBody>
                <About o={o} host={named(o.hostID)} />
              </CardBody>
            </Card>
            <Steps o={o} />
            <Command cli={`slipway operation show ${o.id}`} />
          </>
        )}
      </Loaded>
    </Screen>
  )
}

function Actions({ o, host }: { o: Operation; host: string }) {
  const me = useMe()
  const [isAsked, setAsked] = useState(false)
  const why = isOpen(o) ? me && mayNot(me, 'operator', o.pool || undefined) : 'it has ended'
  return (
    <>
      <Button
        variant="secondary"
        isDanger
        isAriaDisabled={why !== undefined}
        onClick={() => why === undefined && setAsked(true)}
        title={why ?? ''}
      >
        Cancel the operation{why ? `: ${why}` : ''}
      </Button>
      {isAsked && <CancelOperation operation={o} host={host} close={() => setAsked(false)} />}
    </>
  )
}

function About({ o, host }: { o: Operation; host: string }) {
  return (
    <>
      {o.reason && (
        <Alert
          isInline
          variant={o.state === 'failed' ? 'danger' : o.state === 'waiting' ? 'warning' : 'info'}
          title={o.reason}
          component="h3"
        >
          {o.hint}
        </Alert>
      )}
      <Facts
        rows={[
          ['State', <OperationState key="s" state={o.state} />],
          ['Step', <HowFar key="h" operation={o} of={host} />],
          [
            'Host',
            <Link key="l" to={`/hosts/${encodeURIComponent(host)}`}>
              {host}
            </Link>,
          ],
          ['Machine', o.machine && <Link to={`/machines/${encodeURIComponent(o.machine)}`}>{o.machine}</Link>],
          ['Pool', o.pool && <Link to={`/pools/${encodeURIComponent(o.pool)}`}>{o.pool}</Link>],
          ['Asked for by', o.by],
          ['Began', <When key="b" at={o.startedAt} />],
          ['This step since', isOpen(o) && <When at={o.stepAt} />],
          ['Deadline', isOpen(o) && o.deadlineAt && <When at={o.deadlineAt} />],
          ['Ended', o.endedAt && <When at={o.endedAt} />],
          ['Id', <code key="i">{o.id}</code>],
        ]}
      />
    </>
  )
}

const of = (e: Event, field: string) => (isObject(e.data) ? String(e.data[field] ?? '') : '')

function Steps({ o }: { o: Operation }) {
  const events = useList('events', { kind: 'operation', host: o.hostID })
  return (
    <Card style={{ marginBlock: '1rem' }}>
      <CardTitle component="h2">Steps</CardTitle>
      <CardBody>
        <Loaded query={events}>
          {(every) => {
            const all = every.filter((e) => of(e, 'operation') === o.id)
            return all.length === 0 ? (
              <Content component="p">Slipway has no events of this operation. It deletes old events.</Content>
            ) : (
              <Rows
                label="Steps"
                rows={all}
                keyOf={(e) => e.id}
                columns={[
                  ['Time', (e) => <When at={e.at} exact />],
                  ['Step', (e) => of(e, 'step')],
                  ['What happened', (e) => e.detail],
                ]}
              />
            )
          }}
        </Loaded>
      </CardBody>
    </Card>
  )
}
