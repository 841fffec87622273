import { Checkbox } from '@patternfly/react-core'
import { useState } from 'react'
import { ChoiceField, EditForm, LongField, TextField } from '../../parts/Fields'
import type { Known } from './BMC'
import { readPairs } from './EditHost'

const drivers = ['redfish', 'ipmi', 'libvirt', 'webhook', 'wol', 'manual', 'fake']

export function SetBMC({ host, of, close }: { host: string; of: Known | null; close: () => void }) {
  const [seen] = useState(of)
  const [driver, setDriver] = useState<string>(seen?.driver ?? 'redfish')
  const [address, setAddress] = useState(seen?.address ?? '')
  const [username, setUser] = useState(seen?.username ?? '')
  const [password, setPassword] = useState('')
  const [system, setSystem] = useState(seen?.system ?? '')
  const [fingerprint, setPrint] = useState(seen?.fingerprint ?? '')
  const [mac, setMAC] = useState(seen?.mac ?? '')
  const [insecure, setInsecure] = useState(seen?.insecureSkipVerify ?? false)
  const [options, setOptions] = useState(
    Object.entries(seen?.options ?? {})
      .map(([k, v]) => `${k}=${v}`)
      .join('\n'),
  )
  const body = {
    driver,
    ...(address && { address }),
    ...(username && { username }),
    ...(password && { password }),
    ...(system && { system }),
    ...(fingerprint && { fingerprint }),
    ...(mac && { mac }),
    ...(insecure && { insecureSkipVerify: true }),
    ...(options.trim() && { options: readPairs(options) }),
  }
  // The password is sent, but shown nowhere.
  const shown = { ...body, ...(password && { password: '…' }) }
  const cli = ['driver', 'address', 'username', 'system', 'fingerprint', 'mac']
    .flatMap((k) => ((body as Record<string, unknown>)[k] ? [`--${k} ${(body as Record<string, unknown>)[k]}`] : []))
    .join(' ')
  return (
    <EditForm
      title={`How ${host} is powered`}
      verb="Save"
      call={{ method: 'PUT', path: `/hosts/${encodeURIComponent(host)}/bmc`, body, version: seen?.version }}
      shown={shown}
      cli={`slipway host bmc ${host} ${cli}${password ? ' --password-file -' : ''}`}
      close={close}
    >
      <ChoiceField
        label="Driver"
        value={driver}
        set={setDriver}
        field="driver"
        choices={drivers.map((d): [string, string] => [d, d])}
      />
      <TextField
        label="Address"
        value={address}
        set={setAddress}
        field="address"
        placeholder={driver === 'ipmi' ? '10.0.0.5' : driver === 'libvirt' ? 'qemu:///system' : 'https://10.0.0.5'}
      />
      <TextField label="Account" value={username} set={setUser} field="username" />
      <TextField
        label="Password"
        type="password"
        value={password}
        set={setPassword}
        field="password"
        help={
          seen
            ? 'Empty: the one that is stored stays, while driver, address and account do.'
            : 'Sealed, and never shown again.'
        }
      />
      <TextField
        label="System"
        value={system}
        set={setSystem}
        field="system"
        help="Which machine behind the address it is: a Redfish system, a libvirt domain."
      />
      <TextField label="Fingerprint of its certificate" value={fingerprint} set={setPrint} field="fingerprint" />
      <Checkbox
        id="bmc-insecure"
        label="Accept any certificate"
        description="A fingerprint is the better way."
        isChecked={insecure}
        onChange={(_, on) => setInsecure(on)}
      />
      <TextField label="MAC of the controller's own port" value={mac} set={setMAC} field="mac" />
      <LongField
        label="Options of the driver"
        rows={3}
        value={options}
        set={setOptions}
        field="options"
        help="key=value, one on a line."
      />
    </EditForm>
  )
}

export function SetBoot({ host, close }: { host: string; close: () => void }) {
  const [device, setDevice] = useState('pxe')
  const [mode, setMode] = useState('')
  const [uri, setURI] = useState('')
  const [isPersistent, setPersistent] = useState(false)
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
        value={device}
        set={setDevice}
        field="device"
        choices={['none', 'pxe', 'http', 'disk', 'virtual-media', 'setup'].map((d): [string, string] => [
          d,
          d === 'none' ? 'none: its own order' : d,
        ])}
      />
      {device === 'http' && <TextField label="Address to boot" value={uri} set={setURI} field="uri" />}
      <ChoiceField
        label="Firmware mode"
        value={mode}
        set={setMode}
        field="mode"
        choices={[
          ['', 'as it is set'],
          ['uefi', 'uefi'],
          ['bios', 'bios'],
        ]}
      />
      <Checkbox
        id="boot-persistent"
        label="At every boot, not only the next"
        isChecked={isPersistent}
        onChange={(_, on) => setPersistent(on)}
      />
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
        help="Empty: what is in it is ejected."
      />
    </EditForm>
  )
}

export function SetUser({ host, close }: { host: string; close: () => void }) {
  const [user, setUser] = useState('')
  const [password, setPassword] = useState('')
  const [remove, setRemove] = useState(false)
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
        value={user}
        set={setUser}
        field="user"
        isRequired
        help="A new one becomes an administrator; one that is there gets a new password."
      />
      {!remove && (
        <TextField label="Password" type="password" value={password} set={setPassword} field="password" isRequired />
      )}
      <Checkbox id="user-remove" label="Delete the account" isChecked={remove} onChange={(_, on) => setRemove(on)} />
    </EditForm>
  )
}
