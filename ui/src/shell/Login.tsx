import { ActionGroup, Alert, Button, Form, LoginPage, Spinner } from '@patternfly/react-core'
import { type FormEvent, useEffect, useState } from 'react'
import { Link } from 'react-router'
import { send } from '../api/act'
import { api, must, Problem, type Schemas } from '../api/client'
import type { Me } from '../api/me'
import { askKey, canUseKeys, type KeyAnswer } from '../api/securityKey'
import { Failure } from '../parts/Failure'
import { TextField } from '../parts/Fields'
import type { Whereabouts } from './login'
import { comesBack } from './tabs'

type Offers = Schemas['Offers']

// Login lets somebody in, with a password, a token, or through the organisation's own login where that is set up.
export function Login({
  at,
  why,
  entered,
  again,
}: {
  at: Whereabouts
  why: unknown
  entered: (me: Me) => void
  again: () => void
}) {
  const [offers, setOffers] = useState<Offers>()
  const [byToken, setByToken] = useState<boolean>()
  const [error, setError] = useState<unknown>()
  useEffect(() => {
    must(api.GET('/api/v1/logins/offers')).then(setOffers, setError)
  }, [])
  if (at === 'away') {
    // A server that answers says why it cannot work, such as a database that is away.
    const isSilent = !(why instanceof Problem) || why.status === 0
    return (
      <LoginPage loginTitle={isSilent ? 'Slipway does not answer' : 'Slipway cannot work now'}>
        <Failure
          error={isSilent ? new Problem(0, 'No answer', 'The server cannot be reached.', 'Is it running?') : why}
          again={again}
        />
      </LoginPage>
    )
  }
  const isToken = byToken ?? offers?.password === false
  const enter: Enter = async (body) => {
    setError(undefined)
    try {
      entered(await send<Me>({ method: 'POST', path: '/logins', body }))
    } catch (err) {
      setError(err)
    }
  }
  return (
    <LoginPage
      loginTitle="Log in to Slipway"
      textContent="Slipway finds bare machines, shows their hardware, and installs their systems."
      loginSubtitle={isToken ? 'With an API token: slipway token create NAME' : 'With your user name and password'}
    >
      <div style={{ display: 'grid', gap: '1rem', marginBlockEnd: '1rem' }}>
        {at === 'ended' && (
          <Alert variant="info" isInline title="Your login has ended">
            After you log in, you are back on this page.
          </Alert>
        )}
        {error !== undefined && <Failure error={error} />}
        {offers?.oidc?.refused && error === undefined && <Refused {...offers.oidc.refused} />}
      </div>
      {offers === undefined && error === undefined ? (
        <Spinner aria-label="Loading" />
      ) : isToken ? (
        <TokenForm enter={enter} />
      ) : (
        <PasswordForm enter={enter} asksCode={asksCode(error)} failed={setError} />
      )}
      {offers?.oidc && (
        <>
          <Button
            variant="secondary"
            isBlock
            component="a"
            href={outTo(at === 'ended' ? comesBack : location.pathname + location.search + location.hash)}
            {...(at === 'ended' && { target: '_blank', rel: 'noreferrer' })}
            style={{ marginBlock: '1rem' }}
          >
            Log in with {offers.oidc.title}
            {at === 'ended' && ' in a new tab'}
          </Button>
          {at === 'ended' && <p>Your input stays on this page.</p>}
        </>
      )}
      {offers?.password && (
        <Button
          variant="link"
          isBlock
          onClick={() => {
            setError(undefined)
            setByToken(!isToken)
          }}
        >
          {isToken ? 'With user name and password' : 'With a token'}
        </Button>
      )}
      {offers?.password === false && !offers.oidc && (
        <p style={{ marginBlockStart: '1rem' }}>
          There is no user yet. The server put a token into the file admin.token of its data directory when it was
          started for the first time; for a day it lets you in to make the first user. On the server: sudo slipway user
          create NAME --role admin.
        </p>
      )}
    </LoginPage>
  )
}

// outTo is the way to the organisation's login, and from there back to a page.
const outTo = (back: string) => `/api/v1/logins/oidc?back=${encodeURIComponent(back)}`

// LoggedIn is where a login ends that was begun in a tab of its own, so that the first one keeps what was typed.
export function LoggedIn() {
  return (
    <LoginPage loginTitle="You are logged in">
      <p>
        Go back to your first tab, and go on there. Close this tab, or <Link to="/">use it as another</Link>.
      </p>
    </LoginPage>
  )
}

function Refused({ message, hint, requestID }: { message: string; hint?: string; requestID: string }) {
  return <Failure error={new Problem(0, 'Refused', message, hint, requestID)} />
}

type Enter = (body: Record<string, string | KeyAnswer>) => Promise<void>

function useSubmit(enter: Enter, body: () => Record<string, string>) {
  const [isBusy, setBusy] = useState(false)
  return {
    isBusy,
    submit: async (e: FormEvent) => {
      e.preventDefault()
      setBusy(true)
      await enter(body())
      setBusy(false)
    },
  }
}

function TokenForm({ enter }: { enter: Enter }) {
  const [secret, setSecret] = useState('')
  const { isBusy, submit } = useSubmit(enter, () => ({ token: secret.trim() }))
  return (
    <Form onSubmit={submit}>
      <TextField label="Token" type="password" complete="off" value={secret} set={setSecret} isRequired />
      <ActionGroup>
        <Button type="submit" isDisabled={secret.trim() === '' || isBusy} isLoading={isBusy}>
          Log in
        </Button>
      </ActionGroup>
    </Form>
  )
}

// asksCode says whether the server has refused a login for want of a code of the second factor.
const asksCode = (error: unknown) => error instanceof Problem && error.fields.some((f) => f.location === 'body.code')

function PasswordForm({
  enter,
  asksCode,
  failed,
}: {
  enter: Enter
  asksCode: boolean
  failed: (err: unknown) => void
}) {
  const [code, setCode] = useState('')
  const [withCode, setWithCode] = useState(false)
  if (asksCode && !withCode) setWithCode(true)
  const [user, setUser] = useState('')
  const [password, setPassword] = useState('')
  const who = { user: user.trim(), password }
  const { isBusy, submit } = useSubmit(enter, () => ({ ...who, ...(withCode && { code: code.trim() }) }))
  const byKey = async () => {
    try {
      await enter({ ...who, securityKey: await askKey(who.user, password) })
    } catch (err) {
      failed(err)
    }
  }
  return (
    <Form onSubmit={submit}>
      <TextField label="User" complete="username" value={user} set={setUser} isRequired />
      <TextField
        label="Password"
        type="password"
        complete="current-password"
        value={password}
        set={setPassword}
        isRequired
      />
      {withCode && canUseKeys() && (
        <Button variant="secondary" isBlock isDisabled={password === ''} onClick={() => void byKey()}>
          Use a security key
        </Button>
      )}
      {withCode && (
        <TextField
          label="Code of the app, or a recovery code"
          complete="one-time-code"
          value={code}
          set={setCode}
          isRequired
        />
      )}
      <ActionGroup>
        <Button type="submit" isDisabled={user.trim() === '' || password === '' || isBusy} isLoading={isBusy}>
          Log in
        </Button>
      </ActionGroup>
    </Form>
  )
}
