import { ActionGroup, Alert, Button, Card, CardBody, CardTitle, Form } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { send } from '../../api/act'
import type { Schemas } from '../../api/client'
import { type Me, useMe } from '../../api/me'
import { Ask } from '../../parts/Ask'
import { Failure, Loaded } from '../../parts/Failure'
import { TextField, useFields } from '../../parts/Fields'
import { GrantLabels } from '../../parts/Grants'
import { Rows } from '../../parts/Rows'
import { When } from '../../parts/When'
import { SecondFactor } from './SecondFactor'
import { weak } from './Users'

// Account is who is logged in: what that one may do, the password, and where else.
export function Account() {
  const me = useMe()
  if (!me) return null
  return (
    <div style={{ display: 'grid', gap: '1rem' }}>
      <Card>
        <CardTitle component="h2">{me.displayName || me.name}</CardTitle>
        <CardBody>
          <p>You are {me.name}, and may do this:</p>
          <GrantLabels grants={me.grants} />
          <p>
            A viewer can only read. An operator acts on hosts and machines. An admin also manages users, and grants
            roles.
          </p>
          {!me.user && (
            <p>
              You are logged in with a token that belongs to no user. With a user of your own, the timeline shows your
              name.
            </p>
          )}
        </CardBody>
      </Card>
      {me.user && (
        <Card>
          <CardTitle component="h2">Password</CardTitle>
          <CardBody>
            <Password me={me} user={me.user} />
          </CardBody>
        </Card>
      )}
      {me.user && me.hasPassword && (
        <Card>
          <CardTitle component="h2">Second factor</CardTitle>
          <CardBody>
            <SecondFactor me={me} user={me.user} />
          </CardBody>
        </Card>
      )}
      <Card>
        <CardTitle component="h2">Where you are logged in</CardTitle>
        <CardBody>
          <Logins />
        </CardBody>
      </Card>
    </div>
  )
}

function Password({ me, user }: { me: Me & { hasPassword?: boolean }; user: string }) {
  const [{ old, password, again }, of, fill] = useFields({ old: '', password: '', again: '' })
  const [error, setError] = useState<unknown>()
  const [isDone, setDone] = useState(false)
  const [isBusy, setBusy] = useState(false)
  if (!me.hasPassword) return <p>You log in with single sign-on: change your password there.</p>
  const why = !old
    ? 'enter the old password'
    : (weak(password) ?? (password !== again ? 'the new passwords differ' : undefined))
  const save = async (e: FormEvent) => {
    e.preventDefault()
    setBusy(true)
    setDone(false)
    setError(undefined)
    try {
      await send({ method: 'PUT', path: `/users/${encodeURIComponent(user)}/password`, body: { password, old } })
      fill({ old: '', password: '', again: '' })
      setDone(true)
    } catch (err) {
      setError(err)
    }
    setBusy(false)
  }
  return (
    <Form onSubmit={save} isWidthLimited>
      <TextField label="Old password" type="password" {...of('old')} complete="current-password" isRequired />
      <TextField label="New password" type="password" {...of('password')} isRequired />
      <TextField label="New password again" type="password" {...of('again')} isRequired />
      {error !== undefined && <Failure error={error} />}
      {isDone && <Alert variant="success" isInline title="The password is changed. Your other logins have ended." />}
      <ActionGroup>
        <Button type="submit" isDisabled={why !== undefined || isBusy} isLoading={isBusy}>
          Change password
        </Button>
        {why && (old || password) && <small>Not yet: {why}.</small>}
      </ActionGroup>
    </Form>
  )
}

function Logins() {
  const logins = useQuery({
    queryKey: ['logins', 'list'],
    queryFn: async () =>
      (await send<{ items: Schemas['OneLogin'][] | null }>({ method: 'GET', path: '/logins' })).items ?? [],
  })
  const [ends, setEnds] = useState<Schemas['OneLogin']>()
  const [all, setAll] = useState(false)
  return (
    <>
      <Loaded query={logins}>
        {(rows) => (
          <Rows
            label="Logins"
            rows={rows}
            keyOf={(l) => l.id}
            columns={[
              [
                'Browser',
                (l) => (
                  <>
                    {l.agent || 'unknown'} {l.isCurrent && <strong>(this one)</strong>}
                  </>
                ),
                { modifier: 'breakWord' },
              ],
              ['Address', (l) => l.source],
              ['Since', (l) => <When at={l.createdAt} />],
              ['Last seen', (l) => <When at={l.seenAt} />],
              [
                'Actions',
                (l) =>
                  !l.isCurrent && (
                    <Button
                      variant="link"
                      isInline
                      onClick={() => setEnds(l)}
                      aria-label={`End the login from ${l.source}`}
                    >
                      End
                    </Button>
                  ),
              ],
            ]}
          />
        )}
      </Loaded>
      <p>A login ends after 12 hours without use, and after 7 days at the latest.</p>
      <Button variant="secondary" onClick={() => setAll(true)}>
        Log out everywhere
      </Button>
      {all && (
        <Ask
          title="Log out everywhere?"
          verb="Log out"
          call={{ method: 'DELETE', path: '/logins' }}
          close={() => setAll(false)}
        >
          <p>All your browsers ask for your password again, also this one.</p>
        </Ask>
      )}
      {ends && (
        <Ask
          title="End this login?"
          verb="End"
          call={{ method: 'DELETE', path: `/logins/${encodeURIComponent(ends.id ?? '')}` }}
          close={() => setEnds(undefined)}
        >
          <p>That browser asks for your password again.</p>
        </Ask>
      )}
    </>
  )
}
