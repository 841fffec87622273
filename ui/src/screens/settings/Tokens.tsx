import {
  Alert,
  Button,
  ClipboardCopy,
  Form,
  FormGroup,
  FormSelect,
  FormSelectOption,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextInput,
} from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useState } from 'react'
import { useSearchParams } from 'react-router'
import { type Call, useAct } from '../../api/act'
import type { Token } from '../../api/client'
import { type Grant, may, type Role, roleOf, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Ask, dryOf } from '../../parts/Ask'
import { Command } from '../../parts/Command'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { When } from '../../parts/When'
import { GrantLabels, GrantsField } from './Grants'
import { Word, Words } from './Users'

// Tokens let programs in. Admins see all, everybody else their own.
export function Tokens() {
  const tokens = useList('tokens')
  const [params, setParams] = useSearchParams()
  const [goes, setGoes] = useState<Token>()
  const isOpen = params.get('token') === ''
  const open = (on: boolean) => {
    const next = new URLSearchParams(params)
    if (on) next.set('token', '')
    else next.delete('token')
    setParams(next)
  }
  return (
    <>
      <p>A token lets a program do what you let it, in your name. It never may more than you may at the time.</p>
      <p style={{ marginBlock: '0.5rem' }}>
        <Button onClick={() => open(true)}>Make a token</Button>
      </p>
      <Loaded query={tokens}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="No token">A script or another machine needs one to use the API over the network.</Nothing>
          ) : (
            <Table aria-label="Tokens" variant="compact">
              <Thead>
                <Tr>
                  <Th>Name</Th>
                  <Th>User</Th>
                  <Th>Roles</Th>
                  <Th>Expires</Th>
                  <Th>Last used</Th>
                  <Th screenReaderText="Actions" />
                </Tr>
              </Thead>
              <Tbody>
                {all.map((t) => (
                  <Tr key={t.name}>
                    <Td dataLabel="Name">{t.name}</Td>
                    <Td dataLabel="User">{t.user || 'nobody'}</Td>
                    <Td dataLabel="Roles">
                      <GrantLabels grants={t.grants} />
                    </Td>
                    <Td dataLabel="Expires">
                      <When at={t.expiresAt} />
                    </Td>
                    <Td dataLabel="Last used">
                      <When at={t.lastUsedAt} />
                    </Td>
                    <Td dataLabel="Actions">
                      <Words>
                        <Word text="Delete" of={t.name} act={() => setGoes(t)} />
                      </Words>
                    </Td>
                  </Tr>
                ))}
              </Tbody>
            </Table>
          )
        }
      </Loaded>
      {isOpen && <MakeToken close={() => open(false)} />}
      {goes && (
        <Ask
          title={`Delete token ${goes.name}?`}
          verb="Delete"
          foresees={dryOf({ method: 'DELETE', path: `/tokens/${encodeURIComponent(goes.name)}` })}
          cli={`slipway token delete ${goes.name}`}
          call={{ method: 'DELETE', path: `/tokens/${encodeURIComponent(goes.name)}` }}
          close={() => setGoes(undefined)}
        />
      )}
    </>
  )
}

const lives: [days: number, text: string][] = [
  [1, 'a day'],
  [30, '30 days'],
  [365, 'a year'],
  [0, 'until it is deleted'],
]

function MakeToken({ close }: { close: () => void }) {
  const me = useMe()
  const [name, setName] = useState('')
  const [days, setDays] = useState(30)
  const [grants, setGrants] = useState<Grant[]>(() => {
    const role: Role = may(me, 'operator') ? 'operator' : 'viewer'
    return roleOf(me, '') ? [{ role }] : (me?.grants ?? []).slice(0, 1)
  })
  const [from] = useState(() => Date.now())
  const act = useAct<{ secret?: string }>()
  const call: Call = {
    method: 'POST',
    path: '/tokens',
    body: { name: name.trim(), grants, ...(days && { expiresAt: new Date(from + days * 86_400_000).toISOString() }) },
  }
  const secret = act.data?.secret
  const lacks = !name.trim() ? 'it has no name' : grants.length === 0 ? 'it has no role' : ''
  const first = grants[0]
  const cli = `slipway token create ${name.trim() || 'NAME'}${first ? ` --role ${first.role}${first.pool ? ` --pool ${first.pool}` : ''}` : ''}${days ? ` --expires-in ${days * 24}h` : ''}`
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="token-title">
      <ModalHeader labelId="token-title" title={secret ? `Token ${name.trim()} is made` : 'Make a token'} />
      <ModalBody tabIndex={0}>
        {secret ? (
          <>
            <Alert variant="warning" isInline title="This is shown once. Copy it now." />
            <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel="Secret of the token">
              {secret}
            </ClipboardCopy>
            <p>
              Send it as <code>Authorization: Bearer SECRET</code>, or set <code>SLIPWAY_TOKEN</code> for the command
              line.
            </p>
          </>
        ) : (
          <>
            <Form onSubmit={(e) => e.preventDefault()}>
              <FormGroup label="Name" fieldId="token-name" isRequired>
                <TextInput id="token-name" value={name} onChange={(_, v) => setName(v)} autoComplete="off" />
              </FormGroup>
              <FormGroup label="Good for" fieldId="token-life">
                <FormSelect id="token-life" value={days} onChange={(_, v) => setDays(Number(v))}>
                  {lives.map(([n, text]) => (
                    <FormSelectOption key={n} value={n} label={text} />
                  ))}
                </FormSelect>
              </FormGroup>
              <GrantsField value={grants} onChange={setGrants} />
            </Form>
            {act.error && <Failure error={act.error} />}
            <Command cli={cli} call={call} />
          </>
        )}
      </ModalBody>
      <ModalFooter>
        {secret ? (
          <Button onClick={close}>Done</Button>
        ) : (
          <>
            <Button
              isDisabled={lacks !== '' || act.isPending}
              isLoading={act.isPending}
              onClick={() => act.mutate(call)}
            >
              Make
            </Button>
            <Button variant="link" onClick={close}>
              Cancel
            </Button>
            {lacks && <small>Not yet: {lacks}.</small>}
          </>
        )}
      </ModalFooter>
    </Modal>
  )
}
