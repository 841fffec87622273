import {
  Alert,
  Button,
  Form,
  FormGroup,
  Label,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextInput,
  Tooltip,
} from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useSearchParams } from 'react-router'
import { type Call, send } from '../../api/act'
import type { User } from '../../api/client'
import { type Grant, mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Ask, dryOf } from '../../parts/Ask'
import { Command } from '../../parts/Command'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { Refused, TextField } from '../../parts/Fields'
import { When } from '../../parts/When'
import { GrantLabels, GrantsField } from './Grants'

type Asked = { user: User; what: 'disable' | 'enable' | 'delete' | 'logout' }

// Users are the people who log in. Only admins see them.
export function Users() {
  const me = useMe()
  const not = mayNot(me, 'admin', '')
  if (me === undefined) return null
  if (not !== undefined)
    return <Nothing title="Users are for admins">This {not}. What you may do yourself is under Account.</Nothing>
  return <UserTable />
}

function UserTable() {
  const users = useList('users')
  const [params, setParams] = useSearchParams()
  const [asked, setAsked] = useState<Asked>()
  const [newPassword, setNewPassword] = useState<User>()
  const open = (name: string | undefined) => {
    const next = new URLSearchParams(params)
    if (name === undefined) next.delete('user')
    else next.set('user', name)
    setParams(next)
  }
  const chosen = params.get('user')
  return (
    <>
      <p style={{ marginBlock: '0.5rem' }}>
        <Button onClick={() => open('')}>Add a user</Button>
      </p>
      <Loaded query={users}>
        {(all) => (
          <>
            {all.length === 0 ? (
              <Nothing title="There is no user yet">
                Anyone with the server's first token can do everything. With a user for each person, the timeline shows
                who did what, and each user has suitable roles.
              </Nothing>
            ) : (
              <Table aria-label="Users" variant="compact">
                <Thead>
                  <Tr>
                    <Th>Name</Th>
                    <Th>Roles</Th>
                    <Th>State</Th>
                    <Th>Last login</Th>
                    <Th screenReaderText="Actions" />
                  </Tr>
                </Thead>
                <Tbody>
                  {all.map((u) => (
                    <Tr key={u.name}>
                      <Td dataLabel="Name">
                        {u.name} {u.displayName && <small>({u.displayName})</small>}
                      </Td>
                      <Td dataLabel="Roles">
                        <GrantLabels grants={u.grants} />
                      </Td>
                      <Td dataLabel="State">
                        {/* as wide as its words, also where a narrow window stretches what is in a cell */}
                        <div>
                          <UserState user={u} />
                        </div>
                      </Td>
                      <Td dataLabel="Last login">
                        <When at={u.loginAt} />
                      </Td>
                      <Td dataLabel="Actions">
                        <Words>
                          <Word text="Change" of={u.name} act={() => open(u.name)} />
                          <Word
                            text="Set password"
                            of={u.name}
                            act={() => setNewPassword(u)}
                            {...(u.issuer && { not: `${u.issuer} vouches for this user` })}
                          />
                          <Word text="Log out" of={u.name} act={() => setAsked({ user: u, what: 'logout' })} />
                          <Word
                            text={u.isDisabled ? 'Enable' : 'Disable'}
                            of={u.name}
                            act={() => setAsked({ user: u, what: u.isDisabled ? 'enable' : 'disable' })}
                          />
                          <Word text="Delete" of={u.name} act={() => setAsked({ user: u, what: 'delete' })} />
                        </Words>
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            )}
            {chosen !== null && (
              <EditUser key={chosen} user={all.find((u) => u.name === chosen)} close={() => open(undefined)} />
            )}
          </>
        )}
      </Loaded>
      {asked && <AskUser {...asked} close={() => setAsked(undefined)} />}
      {newPassword && <SetPassword user={newPassword} close={() => setNewPassword(undefined)} />}
    </>
  )
}

function UserState({ user }: { user: User }) {
  if (user.isDisabled)
    return (
      <Label isCompact color="grey">
        disabled
      </Label>
    )
  if (user.issuer)
    return (
      <Label isCompact color="blue">
        logs in elsewhere
      </Label>
    )
  if (!user.hasPassword)
    return (
      <Label isCompact color="orange">
        no password
      </Label>
    )
  return (
    <Label isCompact color="green">
      enabled
    </Label>
  )
}

export function Words({ children }: { children: ReactNode }) {
  return <div style={{ display: 'flex', gap: '0.75rem', flexWrap: 'wrap' }}>{children}</div>
}

// Word is an action in a row; what cannot be done says why.
export function Word({ text, of, act, not }: { text: string; of: string; act: () => void; not?: string }) {
  const button = (
    <Button
      variant="link"
      isInline
      aria-label={`${text} ${of}`}
      isAriaDisabled={not !== undefined}
      onClick={() => not === undefined && act()}
    >
      {text}
    </Button>
  )
  return not ? <Tooltip content={not}>{button}</Tooltip> : button
}

function AskUser({ user, what, close }: Asked & { close: () => void }) {
  const path = `/users/${encodeURIComponent(user.name)}`
  if (what === 'logout')
    return (
      <Ask
        title={`Log out ${user.name} everywhere?`}
        verb="Log out"
        call={{ method: 'DELETE', path: `/logins?user=${encodeURIComponent(user.name)}` }}
        close={close}
      >
        <p>All browsers in which the user is logged in ask for the password again.</p>
      </Ask>
    )
  if (what === 'delete')
    return (
      <Ask
        title={`Delete user ${user.name}?`}
        verb="Delete"
        foresees={dryOf({ method: 'DELETE', path, version: user.version })}
        cli={`slipway user delete ${user.name}`}
        call={{ method: 'DELETE', path, version: user.version }}
        close={close}
      />
    )
  const isDisabled = what === 'disable'
  return (
    <Ask
      title={`${isDisabled ? 'Disable' : 'Enable'} user ${user.name}?`}
      verb={isDisabled ? 'Disable' : 'Enable'}
      foresees={
        isDisabled ? dryOf({ method: 'PUT', path, body: { ...user, isDisabled }, version: user.version }) : undefined
      }
      cli={`slipway user ${what} ${user.name}`}
      call={{ method: 'PUT', path, body: { ...user, isDisabled }, version: user.version }}
      close={close}
    />
  )
}

// weak says why a text is no password, as the server does.
export function weak(password: string): string | undefined {
  return [...password].length < 10 ? 'it needs at least 10 characters' : undefined
}

function EditUser({ user: now, close }: { user: User | undefined; close: () => void }) {
  const [user] = useState(now) // as it was seen; a change meanwhile is refused, not overwritten
  const [name, setName] = useState(user?.name ?? '')
  const [displayName, setDisplayName] = useState(user?.displayName ?? '')
  const [grants, setGrants] = useState<Grant[]>(user?.grants ?? [{ role: 'viewer' }])
  const [password, setPassword] = useState('')
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const [isMade, setMade] = useState(false)
  const queries = useQueryClient()
  const body = { ...user, name: name.trim(), displayName: displayName.trim(), grants }
  const call: Call = user
    ? { method: 'PUT', path: `/users/${encodeURIComponent(user.name)}`, body, version: user.version }
    : { method: 'POST', path: '/users', body }
  const lacks = !body.name ? 'it has no name' : !user && weak(password) ? `the password: ${weak(password)}` : ''
  const save = async () => {
    setBusy(true)
    setError(undefined)
    try {
      if (!isMade) await send(call)
      if (!user) {
        setMade(true)
        await send({ method: 'PUT', path: `/users/${encodeURIComponent(body.name)}/password`, body: { password } })
      }
      await queries.invalidateQueries()
      close()
    } catch (err) {
      setError(err)
      void queries.invalidateQueries()
    }
    setBusy(false)
  }
  const first = grants[0]
  const cli = `slipway user create ${body.name || 'NAME'}${first ? ` --role ${first.role}${first.pool ? ` --pool ${first.pool}` : ''}` : ''}`
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="user-title">
      <ModalHeader labelId="user-title" title={user ? `Change user ${user.name}` : 'Add a user'} />
      <ModalBody tabIndex={0}>
        <Refused error={error}>
          <Form onSubmit={(e) => e.preventDefault()}>
            {!user && <TextField label="Name" value={name} set={setName} field="name" isRequired isDisabled={isMade} />}
            <TextField label="Full name" value={displayName} set={setDisplayName} field="displayName" />
            {!user && (
              <TextField
                label="Password"
                type="password"
                value={password}
                set={setPassword}
                field="password"
                isRequired
              />
            )}
            <GrantsField value={grants} onChange={setGrants} />
          </Form>
        </Refused>
        {isMade && error !== undefined && (
          <Alert variant="info" isInline title="The user is there, but has no password yet." />
        )}
        {error !== undefined && <Failure error={error} />}
        <Command {...(!user && { cli })} call={call} />
      </ModalBody>
      <ModalFooter>
        <Button isDisabled={lacks !== '' || isBusy} isLoading={isBusy} onClick={() => void save()}>
          {user ? 'Save' : 'Add'}
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
        {lacks && <small>Not yet: {lacks}.</small>}
      </ModalFooter>
    </Modal>
  )
}

function SetPassword({ user, close }: { user: User; close: () => void }) {
  const [password, setPassword] = useState('')
  const why = weak(password)
  const path = `/users/${encodeURIComponent(user.name)}/password`
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const save = async () => {
    setBusy(true)
    try {
      await send({ method: 'PUT', path, body: { password } })
      close()
    } catch (err) {
      setError(err)
    }
    setBusy(false)
  }
  return (
    <Modal isOpen variant="small" onClose={close} aria-labelledby="password-title">
      <ModalHeader labelId="password-title" title={`Set the password of ${user.name}`} />
      <ModalBody tabIndex={0}>
        <Form onSubmit={(e) => e.preventDefault()}>
          <FormGroup label="New password" fieldId="set-password" isRequired>
            <TextInput
              id="set-password"
              type="password"
              value={password}
              onChange={(_, v) => setPassword(v)}
              autoComplete="new-password"
            />
          </FormGroup>
        </Form>
        <p>The user is logged out everywhere.</p>
        {error !== undefined && <Failure error={error} />}
        <Command cli={`slipway user password ${user.name} --password-file FILE`} />
      </ModalBody>
      <ModalFooter>
        <Button isDisabled={why !== undefined || isBusy} isLoading={isBusy} onClick={() => void save()}>
          Set password
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
        {why && <small>Not yet: {why}.</small>}
      </ModalFooter>
    </Modal>
  )
}
