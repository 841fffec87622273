import { ActionGroup, Alert, Button, Form, FormGroup, TextInput } from '@patternfly/react-core'
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { send } from '../../api/act'
import type { Me } from '../../api/me'
import { Failure } from '../../parts/Failure'

interface Begun {
  secret: string
  url: string
  ticket: string
}

// SecondFactor sets up an authenticator app beside the password, or takes it away.
export function SecondFactor({ me, user }: { me: Me; user: string }) {
  const queries = useQueryClient()
  const [begun, setBegun] = useState<Begun>()
  const [code, setCode] = useState('')
  const [password, setPassword] = useState('')
  const [codes, setCodes] = useState<string[]>()
  const [error, setError] = useState<unknown>()
  const path = `/users/${encodeURIComponent(user)}/second-factor`
  const act = async (what: () => Promise<unknown>) => {
    setError(undefined)
    try {
      await what()
      setCode('')
      await queries.invalidateQueries({ queryKey: ['me'] })
    } catch (err) {
      setError(err)
    }
  }
  const confirm = (e: FormEvent) => {
    e.preventDefault()
    void act(async () => {
      const body = { ticket: begun?.ticket, code: code.replaceAll(' ', ''), password }
      setCodes((await send<{ codes: string[] }>({ method: 'PUT', path, body })).codes)
      setBegun(undefined)
      setPassword('')
    })
  }
  const remove = (e: FormEvent) => {
    e.preventDefault()
    void act(async () => {
      await send({ method: 'DELETE', path: `${path}?code=${encodeURIComponent(code.trim())}` })
      setCodes(undefined)
    })
  }
  const codeField = (label: string) => (
    <FormGroup label={label} fieldId="factor-code" isRequired>
      <TextInput id="factor-code" value={code} onChange={(_, v) => setCode(v)} autoComplete="one-time-code" />
    </FormGroup>
  )
  return (
    <div style={{ display: 'grid', gap: '1rem' }}>
      {me.mustSetUpSecondFactor && (
        <Alert variant="warning" isInline title="Set up a second factor before anything else." />
      )}
      {codes && (
        <Alert
          variant="success"
          isInline
          title="The second factor is set up. Keep these recovery codes; they are shown this once."
        >
          <pre>{codes.join('\n')}</pre>
          <p>Each is good once, in place of a code of the app. Your other logins have ended.</p>
        </Alert>
      )}
      {begun ? (
        <Form onSubmit={confirm} isWidthLimited>
          <p>
            Put this secret into your authenticator app, or <a href={begun.url}>open it there</a>:
          </p>
          <code>{begun.secret}</code>
          {codeField('Code that the app shows now')}
          <FormGroup label="Your password" fieldId="factor-password" isRequired>
            <TextInput
              id="factor-password"
              type="password"
              value={password}
              onChange={(_, v) => setPassword(v)}
              autoComplete="current-password"
            />
          </FormGroup>
          <ActionGroup>
            <Button type="submit" isDisabled={code === '' || password === ''}>
              Set up
            </Button>
          </ActionGroup>
        </Form>
      ) : (
        <div>
          <Button
            variant="secondary"
            onClick={() => void act(async () => setBegun(await send<Begun>({ method: 'POST', path })))}
          >
            {me.hasSecondFactor ? 'Set up another app in its place' : 'Set up an authenticator app'}
          </Button>
        </div>
      )}
      {me.hasSecondFactor && !begun && (
        <Form onSubmit={remove} isWidthLimited>
          {codeField('Code of the app, or a recovery code')}
          <ActionGroup>
            <Button type="submit" variant="danger" isDisabled={code === ''}>
              Take the second factor away
            </Button>
          </ActionGroup>
        </Form>
      )}
      {error !== undefined && <Failure error={error} />}
    </div>
  )
}
