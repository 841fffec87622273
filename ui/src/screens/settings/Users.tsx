import { Label } from '@patternfly/react-core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { type Call, send } from '../../api/act'
import type { User } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { nouns } from '../../api/nouns'
import { Ask, dryOf } from '../../parts/Ask'
import { Nothing } from '../../parts/Failure'
import { FormDialog, TextField } from '../../parts/Fields'
import type { FormField } from '../../parts/kinds'
import { NounForm } from '../../parts/NounForm'
import { NounList } from '../../parts/NounList'

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
  const [asked, setAsked] = useState<Asked>()
  const [newPassword, setNewPassword] = useState<User>()
  return (
    <>
      <NounList
        d={nouns.users}
        columns={{
          Name: {
            cell: (u) => (
              <>
                {u.name} {u.displayName && <small>({u.displayName})</small>}
              </>
            ),
          },
          State: { cell: (u) => <UserState user={u} /> },
        }}
        acts={(user) => [
          {
            text: 'Set password',
            act: () => setNewPassword(user),
            not: user.issuer ? `this user logs in with ${user.issuer}` : undefined,
          },
          { text: 'Log out', act: () => setAsked({ user, what: 'logout' }) },
          user.isDisabled
            ? { text: 'Enable', act: () => setAsked({ user, what: 'enable' }) }
            : { text: 'Disable', act: () => setAsked({ user, what: 'disable' }) },
        ]}
        form={(user, close) =>
          user ? <NounForm d={nouns.users} one={user} close={close} /> : <NewUser close={close} />
        }
      />
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
        single sign-on
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
        <p>All browsers of this user ask for the password again.</p>
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

const password: FormField = {
  name: 'password',
  label: 'Password',
  kind: 'password',
  isMust: true,
  isAside: true,
  wrong: weak,
}
const form = { ...nouns.users, fields: nouns.users.fields.flatMap((f) => (f.kind === 'roles' ? [password, f] : [f])) }

function NewUser({ close }: { close: () => void }) {
  return (
    <NounForm
      d={form}
      given={{ grants: [{ role: 'viewer' }] }}
      after={({ name = '', password }) => ({
        call: passwordCall(name.trim(), password),
        half: 'Slipway has made the user, but without a password.',
      })}
      close={close}
    />
  )
}

const passwordCall = (user: string, password: string | undefined): Call => ({
  method: 'PUT',
  path: `/users/${encodeURIComponent(user)}/password`,
  body: { password },
})

function SetPassword({ user, close }: { user: User; close: () => void }) {
  const [password, setPassword] = useState('')
  const set = useMutation({ mutationFn: () => send(passwordCall(user.name, password)), onSuccess: close })
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
      <p>All browsers of this user have to log in again.</p>
    </FormDialog>
  )
}
