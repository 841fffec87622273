import { Alert, Label } from '@patternfly/react-core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Call, send } from '../../api/act'
import type { User } from '../../api/client'
import { type Grant, mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Add } from '../../parts/Act'
import { Ask, dryOf } from '../../parts/Ask'
import { Nothing } from '../../parts/Failure'
import { FormDialog, TextField, useFields } from '../../parts/Fields'
import { Plain, useChosen } from '../../parts/Plain'
import { When } from '../../parts/When'
import { GrantLabels, GrantsField } from './Grants'

type Asked = { user: User; what: 'disable' | 'enable' | 'logout' }

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
  const users = useList('users').data
  const [asked, setAsked] = useState<Asked>()
  const [newPassword, setNewPassword] = useState<User>()
  const [chosen, open] = useChosen('user')
  return (
    <>
      <Add text="Add a user" act={() => open('')} />
      <Plain
        noun="users"
        label="Users"
        columns={[
          {
            key: 'name',
            name: 'Name',
            cell: (u) => (
              <>
                {u.name} {u.displayName && <small>({u.displayName})</small>}
              </>
            ),
          },
          { key: 'roles', name: 'Roles', cell: (u) => <GrantLabels grants={u.grants} /> },
          { key: 'state', name: 'State', cell: (u) => <UserState user={u} /> },
          { key: 'login', name: 'Last login', cell: (u) => <When at={u.loginAt} /> },
        ]}
        keyOf={(u) => u.name}
        acts={(user) => [
          { text: 'Change', act: () => open(user.name) },
          {
            text: 'Set password',
            act: () => setNewPassword(user),
            not: user.issuer ? `${user.issuer} vouches for this user` : undefined,
          },
          { text: 'Log out', act: () => setAsked({ user, what: 'logout' }) },
          user.isDisabled
            ? { text: 'Enable', act: () => setAsked({ user, what: 'enable' }) }
            : { text: 'Disable', act: () => setAsked({ user, what: 'disable' }) },
        ]}
        removal={(u) => ({ title: `Delete user ${u.name}?`, cli: `slipway user delete ${u.name}` })}
        nothing={
          <Nothing title="There is no user yet">
            Anyone with the server's first token can do everything. With a user for each person, the timeline shows who
            did what, and each user has suitable roles.
          </Nothing>
        }
      />
      {users && chosen !== null && (
        <EditUser key={chosen} user={users.find((u) => u.name === chosen)} close={() => open()} />
      )}
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
  const [grants, setGrants] = useState<Grant[]>(user?.grants ?? [{ role: 'viewer' }])
  const [{ name, displayName, password }, of] = useFields({
    name: user?.name ?? '',
    displayName: user?.displayName ?? '',
    password: '',
  })
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
    <FormDialog
      title={user ? `Change user ${user.name}` : 'Add a user'}
      verb={user ? 'Save' : 'Add'}
      save={() => void save()}
      isBusy={isBusy}
      error={error}
      lacks={lacks}
      call={call}
      {...(!user && { cli })}
      close={close}
    >
      {!user && <TextField label="Name" {...of('name')} isRequired isDisabled={isMade} />}
      <TextField label="Full name" {...of('displayName')} />
      {!user && <TextField label="Password" type="password" {...of('password')} isRequired />}
      <GrantsField value={grants} onChange={setGrants} />
      {isMade && error !== undefined && (
        <Alert variant="info" isInline title="The user is there, but has no password yet." />
      )}
    </FormDialog>
  )
}

function SetPassword({ user, close }: { user: User; close: () => void }) {
  const [password, setPassword] = useState('')
  const path = `/users/${encodeURIComponent(user.name)}/password`
  const set = useMutation({
    mutationFn: () => send({ method: 'PUT', path, body: { password } }),
    onSuccess: close,
  })
  return (
    <FormDialog
      title={`Set the password of ${user.name}`}
      verb="Set password"
      save={() => set.mutate()}
      isBusy={set.isPending}
      error={set.error}
      lacks={weak(password) ?? ''}
      isSmall
      cli={`slipway user password ${user.name} --password-file FILE`}
      close={close}
    >
      <TextField label="New password" type="password" value={password} set={setPassword} isRequired />
      <p>The user is logged out everywhere.</p>
    </FormDialog>
  )
}
