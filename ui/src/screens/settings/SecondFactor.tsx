import { ActionGroup, Alert, Button, Form } from '@patternfly/react-core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { send } from '../../api/act'
import type { Schemas } from '../../api/client'
import type { Me } from '../../api/me'
import { canUseKeys, createKey } from '../../api/securityKey'
import { Failure, Loaded } from '../../parts/Failure'
import { ChoiceField, TextField } from '../../parts/Fields'
import { Rows } from '../../parts/Rows'
import { When } from '../../parts/When'

interface Begun {
  secret: string
  url: string
  ticket: string
}

// SecondFactor sets up an authenticator app or security keys beside the password, or takes them away.
export function SecondFactor({ me, user }: { me: Me; user: string }) {
  const queries = useQueryClient()
  const [begun, setBegun] = useState<Begun>()
  const [code, setCode] = useState('')
  const [password, setPassword] = useState('')
  const [codes, setCodes] = useState<string[]>()
  const [lost, setLost] = useState('') // name of a key, or all
  const [error, setError] = useState<unknown>()
  const path = `/users/${encodeURIComponent(user)}/second-factor`
  const factors = useQuery({
    queryKey: ['second-factor', user],
    queryFn: () => send<Schemas['SecondFactors']>({ method: 'GET', path }),
  })
  // act reports whether the server has taken it; what was typed stays otherwise.
  const act = async (what: () => Promise<unknown>) => {
    setError(undefined)
    try {
      await what()
      setCode('')
      await queries.invalidateQueries({ queryKey: ['me'] })
      await queries.invalidateQueries({ queryKey: ['second-factor', user] })
      return true
    } catch (err) {
      setError(err)
      return false
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
      await send({ method: 'DELETE', path: `${path}?${new URLSearchParams({ code: code.trim(), key: lost })}` })
      setLost('')
      setCodes(undefined)
    })
  }
  const codeField = (label: string) => (
    <TextField label={label} value={code} set={setCode} complete="one-time-code" isRequired />
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
          <p>You can use each code once, in place of your app or a key. Slipway has ended your other logins.</p>
        </Alert>
      )}
      {begun ? (
        <Form onSubmit={confirm} isWidthLimited>
          <p>
            Put this secret into your authenticator app, or <a href={begun.url}>open it there</a>:
          </p>
          <code>{begun.secret}</code>
          {codeField('Code that the app shows now')}
          <OwnPassword value={password} set={setPassword} />
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
            {factors.data?.app ? 'Set up another app in its place' : 'Set up an authenticator app'}
          </Button>
        </div>
      )}
      <Loaded query={factors}>{(f) => <Keys keys={f.securityKeys ?? []} />}</Loaded>
      <AddKey
        add={(name, password) =>
          act(async () => {
            const body = { ...(await createKey(user)), password }
            const keyPath = `/users/${encodeURIComponent(user)}/security-keys/${encodeURIComponent(name)}`
            const made = (await send<{ codes: string[] | null }>({ method: 'PUT', path: keyPath, body })).codes ?? []
            if (made.length > 0) setCodes(made)
          })
        }
      />
      {me.hasSecondFactor && !begun && (
        <Form onSubmit={remove} isWidthLimited>
          <ChoiceField
            label="Remove"
            value={lost}
            set={setLost}
            choices={[
              ['', 'All second factors'],
              ...(factors.data?.securityKeys ?? []).map((k): [string, string] => [k.name, `Security key ${k.name}`]),
            ]}
          />
          {codeField('Code of the app, or a recovery code')}
          <ActionGroup>
            <Button type="submit" variant="danger" isDisabled={code === ''}>
              Remove
            </Button>
          </ActionGroup>
        </Form>
      )}
      {error !== undefined && <Failure error={error} />}
    </div>
  )
}

function OwnPassword(p: { value: string; set: (v: string) => void }) {
  return <TextField label="Your password" type="password" complete="current-password" isRequired {...p} />
}

function Keys({ keys }: { keys: Schemas['SecurityKey'][] }) {
  if (keys.length === 0) return null
  return (
    <Rows
      label="Security keys"
      rows={keys}
      keyOf={(k) => k.name}
      columns={[
        ['Security key', (k) => k.name],
        ['For', (k) => k.site],
        ['Added', (k) => <When at={k.addedAt} />],
        ['Last used', (k) => (k.usedAt ? <When at={k.usedAt} /> : 'never')],
      ]}
    />
  )
}

// AddKey registers a security key or passkey that the browser finds.
function AddKey({ add }: { add: (name: string, password: string) => Promise<boolean> }) {
  const [isOpen, setOpen] = useState(false)
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  if (!canUseKeys())
    return <small>Browsers offer security keys only if the address of this page has TLS and a name.</small>
  if (!isOpen)
    return (
      <div>
        <Button variant="secondary" onClick={() => setOpen(true)}>
          Register a security key
        </Button>
      </div>
    )
  const submit = async (e: FormEvent) => {
    e.preventDefault()
    if (!(await add(name.trim(), password))) return
    setName('')
    setPassword('')
    setOpen(false)
  }
  return (
    <Form onSubmit={(e) => void submit(e)} isWidthLimited>
      <TextField label="Name of the key" value={name} set={setName} placeholder="work" isRequired />
      <OwnPassword value={password} set={setPassword} />
      <ActionGroup>
        <Button type="submit" isDisabled={name.trim() === '' || password === ''}>
          Register
        </Button>
        <Button variant="link" onClick={() => setOpen(false)}>
          Cancel
        </Button>
      </ActionGroup>
    </Form>
  )
}
