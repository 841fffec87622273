import { Alert, Button, Checkbox } from '@patternfly/react-core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { type Call, send } from '../../api/act'
import type { Schemas } from '../../api/client'
import { flags } from '../../parts/cli'
import { Failure } from '../../parts/Failure'
import { CheckField, ChoiceField, EditForm, LongField, same, TextField, useFields } from '../../parts/Fields'
import { begin, bodyOf, drivers, type Entered } from './controller'

export function SetBMC({ host, of, close }: { host: string; of: Schemas['HostBMC'] | null; close: () => void }) {
  const [seen] = useState(of)
  const [e, enter] = useState(() => begin(seen?.driver ?? 'redfish', seen))
  const set = (name: keyof Entered) => (v: string) => enter({ ...e, [name]: v })
  const body = bodyOf(e)
  // The password is sent, but shown nowhere.
  const shown = { ...body, ...(e.password && { password: '…' }) }
  const { driver, address, username, system, fingerprint, mac } = body
  const cli = flags({ driver, address, username, system, fingerprint, mac })
  const at = `/hosts/${encodeURIComponent(host)}/bmc`
  return (
    <EditForm
      title={`Controller of ${host}`}
      verb="Save"
      call={{ method: 'PUT', path: at, body, version: seen?.version }}
      shown={shown}
      cli={`slipway host bmc ${host}${cli}${e.password ? ' --password-file -' : ''}`}
      close={close}
    >
      <ChoiceField
        label="Driver"
        value={e.driver}
        set={(driver) => enter(begin(driver, seen))}
        field="driver"
        help="Another driver has other settings: the form starts empty."
        choices={same(drivers)}
      />
      <TextField
        label="Address"
        value={e.address}
        set={set('address')}
        field="address"
        placeholder={e.driver === 'ipmi' ? '10.0.0.5' : e.driver === 'libvirt' ? 'qemu:///system' : 'https://10.0.0.5'}
      />
      <TextField label="Account" value={e.username} set={set('username')} field="username" />
      <TextField
        label="Password"
        type="password"
        value={e.password}
        set={set('password')}
        field="password"
        help={
          seen
            ? 'Empty: the stored password stays, if driver, address and account stay the same.'
            : 'Sealed, and never shown again.'
        }
      />
      <TextField
        label="System"
        value={e.system}
        set={set('system')}
        field="system"
        help="If the controller has several machines: the Redfish system or the libvirt domain."
      />
      <TextField
        label="Fingerprint of its certificate"
        value={e.fingerprint}
        set={set('fingerprint')}
        field="fingerprint"
      />
      <Checkbox
        id="bmc-insecure"
        label="Accept any certificate"
        description="Then anyone between Slipway and the controller can read the password. Use a fingerprint instead."
        isChecked={e.insecure}
        onChange={(_, insecure) => enter({ ...e, insecure })}
      />
      <TextField label="MAC of the controller's own port" value={e.mac} set={set('mac')} field="mac" />
      <LongField
        label="Options of the driver"
        rows={3}
        value={e.options}
        set={set('options')}
        field="options"
        help="key=value, one in a line."
      />
      <TestConnection call={{ method: 'POST', path: `${at}/test`, body }} />
    </EditForm>
  )
}

// TestConnection has the server connect with what the form holds, before it is saved, and shows at which step that fails.
function TestConnection({ call }: { call: Call }) {
  const test = useMutation({ mutationFn: (c: Call) => send<Schemas['BMCCheck']>(c) })
  const isOf = JSON.stringify(test.variables?.body) === JSON.stringify(call.body)
  return (
    <section aria-label="Test of the connection">
      <Button variant="secondary" isLoading={test.isPending} onClick={() => test.mutate(call)}>
        Test the connection
      </Button>
      {isOf && test.error && <Failure error={test.error} />}
      {isOf &&
        test.data?.results.map((r) => (
          <Alert
            key={r.name}
            isInline
            isPlain
            variant={r.isGood ? 'success' : 'danger'}
            title={`${r.name}: ${r.detail}`}
            component="h3"
          >
            {r.hint}
          </Alert>
        ))}
    </section>
  )
}

export function SetBoot({ host, close }: { host: string; close: () => void }) {
  const [{ device, uri, mode, isPersistent }, of] = useFields({ device: 'pxe', uri: '', mode: '', isPersistent: false })
  return (
    <EditForm
      title={`Where ${host} boots from`}
      verb="Set"
      call={{
        method: 'POST',
        path: `/hosts/${encodeURIComponent(host)}/bmc/boot`,
        body: {
          device,
          ...(mode && { mode }),
          ...(device === 'http' && uri && { uri }),
          ...(isPersistent && { isPersistent }),
        },
      }}
      cli={`slipway bmc boot ${host} ${device}${mode ? ` --mode ${mode}` : ''}${device === 'http' && uri ? ` --uri ${uri}` : ''}${isPersistent ? ' --persistent' : ''}`}
      close={close}
    >
      <ChoiceField
        label="Device"
        {...of('device')}
        choices={['none', 'pxe', 'http', 'disk', 'virtual-media', 'setup'].map((d): [string, string] => [
          d,
          d === 'none' ? 'none: its own order' : d,
        ])}
      />
      {device === 'http' && <TextField label="Address to boot" {...of('uri')} />}
      <ChoiceField
        label="Firmware mode"
        {...of('mode')}
        choices={[
          ['', 'as it is set'],
          ['uefi', 'uefi'],
          ['bios', 'bios'],
        ]}
      />
      <CheckField label="At every boot, not only the next one" {...of('isPersistent')} />
    </EditForm>
  )
}

export function SetMedia({ host, close }: { host: string; close: () => void }) {
  const [url, setURL] = useState('')
  return (
    <EditForm
      title={`Virtual drive of ${host}`}
      verb={url ? 'Put it in' : 'Eject'}
      call={{ method: 'POST', path: `/hosts/${encodeURIComponent(host)}/bmc/media`, body: { url } }}
      cli={`slipway bmc media ${host} ${url || '--eject'}`}
      close={close}
    >
      <TextField
        label="Address of an image"
        value={url}
        set={setURL}
        field="url"
        placeholder="http://10.0.0.1/image.iso"
        help="Empty: Slipway ejects the medium."
      />
    </EditForm>
  )
}

export function SetUser({ host, close }: { host: string; close: () => void }) {
  const [{ user, password, remove }, of] = useFields({ user: '', password: '', remove: false })
  const body = remove ? { user, remove } : { user, password }
  return (
    <EditForm
      title={`Account of ${host}'s controller`}
      verb={remove ? 'Delete it' : 'Save'}
      ready={user !== '' && (remove || password !== '')}
      call={{ method: 'POST', path: `/hosts/${encodeURIComponent(host)}/bmc/user`, body }}
      shown={remove ? body : { user, password: '…' }}
      cli={`slipway bmc users ${host} ${remove ? `--remove ${user}` : `--add ${user}`}`}
      close={close}
    >
      <TextField
        label="Account"
        {...of('user')}
        isRequired
        help="A new account becomes an administrator. An existing one gets a new password."
      />
      {!remove && <TextField label="Password" type="password" {...of('password')} isRequired />}
      <CheckField label="Delete the account" {...of('remove')} />
    </EditForm>
  )
}
