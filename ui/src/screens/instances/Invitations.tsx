import { Card, CardBody, CardTitle } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, must, type Schemas } from '../../api/client'
import { Act } from '../../parts/Act'
import { Ask } from '../../parts/Ask'
import { Loaded } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
import { When } from '../../parts/When'
import { becameOf } from './words'

// works says whether a machine can use the code. One that has used it can do so again.
const works = (i: Schemas['Invitation']) => i.state === 'open' || i.state === 'used'

// Invitations are those of the last day. Only an admin may read them, and the card is there once there is one.
export function Invitations() {
  const [asked, setAsked] = useState<Schemas['Invitation']>()
  const invitations = useQuery({
    queryKey: ['invitations'],
    refetchInterval: 3_000, // that a code expires makes no event
    queryFn: async () => (await must(api.GET('/api/v1/invitations'))).items ?? [],
  })
  return (
    <>
      <Loaded query={invitations}>
        {(all) =>
          all.length > 0 && (
            <Card style={{ marginBlock: '1rem' }}>
              <CardTitle component="h2">Invitations</CardTitle>
              <CardBody>
                <Rows
                  label="Invitations"
                  rows={all}
                  keyOf={(i) => i.id}
                  columns={[
                    ['Id', (i) => i.id],
                    ['State', (i) => i.state],
                    ['For', (i) => i.name || 'any name'],
                    ['Made by', (i) => i.by],
                    ['Expires', (i) => (works(i) ? <When at={i.expiresAt} /> : '')],
                    ['Used', becameOf],
                    [
                      'Actions',
                      (i) => (
                        <Act
                          text="Withdraw"
                          of={`invitation ${i.id}`}
                          not={works(i) ? undefined : `it is ${i.state}`}
                          isDanger
                          act={() => setAsked(i)}
                        />
                      ),
                    ],
                  ]}
                />
              </CardBody>
            </Card>
          )
        }
      </Loaded>
      {asked && (
        <Ask
          title={`Withdraw invitation ${asked.id}?`}
          verb="Withdraw"
          call={{ method: 'DELETE', path: `/invitations/${asked.id}` }}
          cli={`slipway instance withdraw ${asked.id}`}
          close={() => setAsked(undefined)}
        >
          <p>
            From then on, nobody can use its code. A machine that has used it before keeps secret.key and the password
            of the database.
          </p>
        </Ask>
      )}
    </>
  )
}
