import { Button, Card, CardBody, CardTitle, Content } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, must } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { usePage } from '../../api/page'
import { Command } from '../../parts/Command'
import { Loaded } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
import { Screen } from '../../parts/Screen'
import { When } from '../../parts/When'
import { InstanceTable } from './InstanceTable'
import { Invitations } from './Invitations'
import { Invite } from './Invite'
import { dutiesOf, inviteNot, isAlone, type OneDuty } from './words'

const shownFirst = 20

// Instances are the servers of the database: whether each is alive, what it does, and how its work came to it.
export function Instances() {
  const me = useMe()
  const why = me && mayNot(me, 'admin', '')
  // A sign of life makes no event: the page asks for it.
  const instances = useQuery({
    queryKey: ['instances', 'page'],
    refetchInterval: 3_000,
    queryFn: async () => (await must(api.GET('/api/v1/instances', { params: { query: { limit: 1000 } } }))).items ?? [],
  })
  const database = useQuery({ queryKey: ['database'], queryFn: () => must(api.GET('/api/v1/database')) })
  return (
    <Screen title="Instances" about="The Slipway servers of this database, and what each of them does.">
      <Loaded query={instances}>
        {(all) => (
          <>
            {isAlone(all, database.data?.kind) && (
              <Content component="p">
                One instance, with its inventory in a file of SQLite. The page <code>docs/database.md</code> says when
                two instances are worth it.
              </Content>
            )}
            <Invite why={why ?? inviteNot(database.data?.kind)} />
            <InstanceTable instances={all} why={why} />
            {!why && database.data?.kind === 'postgresql' && <Invitations />}
            <Duties duties={dutiesOf(all)} />
          </>
        )}
      </Loaded>
      {database.data?.kind === 'postgresql' && <Takeovers />}
      <Command cli="slipway instance list" call={{ method: 'GET', path: '/instances' }} />
    </Screen>
  )
}

function Duties({ duties }: { duties: OneDuty[] }) {
  return (
    <Card style={{ marginBlock: '1rem' }}>
      <CardTitle component="h2">Duties</CardTitle>
      <CardBody>
        {duties.length === 0 ? (
          <Content component="p">No instance has a duty.</Content>
        ) : (
          <Rows
            label="Duties"
            rows={duties}
            keyOf={(d) => d.name}
            columns={[
              ['Duty', (d) => d.name],
              ['Instance', (d) => d.instance],
              ['Since', (d) => <When at={d.sinceAt} />],
              ['Reason', (d) => d.reason],
              ['Taken from', (d) => d.former || 'nobody'],
              ['Epoch', (d) => d.epoch],
            ]}
          />
        )}
      </CardBody>
    </Card>
  )
}

// Takeovers are the events of the duties, newest first.
function Takeovers() {
  const [limit, setLimit] = useState(shownFirst)
  const events = usePage('events', { kind: 'duty', before: Number.MAX_SAFE_INTEGER }, limit)
  return (
    <Card style={{ marginBlock: '1rem' }}>
      <CardTitle component="h2">Takeovers</CardTitle>
      <CardBody>
        <Loaded query={events}>
          {({ items, hasMore }) =>
            items.length === 0 ? (
              <Content component="p">No duty has moved yet, or Slipway has deleted the events.</Content>
            ) : (
              <>
                <Rows
                  label="Takeovers"
                  rows={items}
                  keyOf={(e) => e.id}
                  columns={[
                    ['Time', (e) => <When at={e.at} />, { modifier: 'nowrap' }],
                    ['What happened', (e) => e.detail],
                  ]}
                />
                {hasMore && (
                  <Button variant="link" onClick={() => setLimit(limit + 100)}>
                    Show more
                  </Button>
                )}
              </>
            )
          }
        </Loaded>
      </CardBody>
    </Card>
  )
}
