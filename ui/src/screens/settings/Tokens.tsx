import { Alert, Button, ClipboardCopy, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core'
import { useState } from 'react'
import type { Call } from '../../api/act'
import type { Schemas } from '../../api/client'
import { type Grant, may, type Role, roleOf, useMe } from '../../api/me'
import { Add } from '../../parts/Act'
import { Nothing } from '../../parts/Failure'
import { ChoiceField, EditForm, TextField } from '../../parts/Fields'
import { Plain, useChosen } from '../../parts/Plain'
import { When } from '../../parts/When'
import { GrantLabels, GrantsField } from './Grants'

// Tokens let programs in. Admins see all, everybody else their own.
export function Tokens() {
  const [chosen, open] = useChosen('token')
  const [made, setMade] = useState<Schemas['NewToken']>()
  return (
    <>
      <p>A token lets a program act in your name, with the roles that you choose. It can never do more than you can.</p>
      <Add text="Make a token" act={() => open('')} />
      <Plain
        noun="tokens"
        label="Tokens"
        columns={[
          { key: 'name', name: 'Name', cell: (t) => t.name },
          { key: 'user', name: 'User', cell: (t) => t.user || 'nobody' },
          { key: 'roles', name: 'Roles', cell: (t) => <GrantLabels grants={t.grants} /> },
          { key: 'expires', name: 'Expires', cell: (t) => <When at={t.expiresAt} /> },
          { key: 'used', name: 'Last used', cell: (t) => <When at={t.lastUsedAt} /> },
        ]}
        keyOf={(t) => t.name}
        acts={() => []}
        removal={(t) => ({ title: `Delete token ${t.name}?`, cli: `slipway token delete ${t.name}` })}
        nothing={
          <Nothing title="No token">A script or another machine needs one to use the API over the network.</Nothing>
        }
      />
      {chosen === '' && <MakeToken close={() => open()} done={setMade} />}
      {made && <Made token={made} close={() => setMade(undefined)} />}
    </>
  )
}

const lives: [days: number, text: string][] = [
  [1, 'a day'],
  [30, '30 days'],
  [365, 'a year'],
  [0, 'until it is deleted'],
]

function MakeToken({ close, done }: { close: () => void; done: (made: Schemas['NewToken']) => void }) {
  const me = useMe()
  const [name, setName] = useState('')
  const [days, setDays] = useState(30)
  const [grants, setGrants] = useState<Grant[]>(() => {
    const role: Role = may(me, 'operator') ? 'operator' : 'viewer'
    return roleOf(me, '') ? [{ role }] : (me?.grants ?? []).slice(0, 1)
  })
  const [from] = useState(() => Date.now())
  const call: Call = {
    method: 'POST',
    path: '/tokens',
    body: { name: name.trim(), grants, ...(days && { expiresAt: new Date(from + days * 86_400_000).toISOString() }) },
  }
  const first = grants[0]
  const cli = `slipway token create ${name.trim() || 'NAME'}${first ? ` --role ${first.role}${first.pool ? ` --pool ${first.pool}` : ''}` : ''}${days ? ` --expires-in ${days * 24}h` : ''}`
  return (
    <EditForm
      title="Make a token"
      verb="Make"
      call={call}
      cli={cli}
      lacks={!name.trim() ? 'it has no name' : grants.length === 0 ? 'it has no role' : ''}
      close={close}
      done={done}
    >
      <TextField label="Name" value={name} set={setName} isRequired />
      <ChoiceField
        label="Good for"
        value={String(days)}
        set={(v) => setDays(Number(v))}
        choices={lives.map(([n, text]) => [String(n), text])}
      />
      <GrantsField value={grants} onChange={setGrants} />
    </EditForm>
  )
}

function Made({ token, close }: { token: Schemas['NewToken']; close: () => void }) {
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="token-title">
      <ModalHeader labelId="token-title" title={`Token ${token.name} is made`} />
      <ModalBody tabIndex={0}>
        <Alert variant="warning" isInline title="This is shown once. Copy it now." />
        <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel="Secret of the token">
          {token.secret}
        </ClipboardCopy>
        <p>
          Send it as <code>Authorization: Bearer SECRET</code>, or set <code>SLIPWAY_TOKEN</code> for the command line.
        </p>
      </ModalBody>
      <ModalFooter>
        <Button onClick={close}>Done</Button>
      </ModalFooter>
    </Modal>
  )
}
