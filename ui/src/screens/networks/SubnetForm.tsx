import { Checkbox } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, must } from '../../api/client'
import { flags, shell } from '../../parts/cli'
import { ChoiceField, EditForm, LongField, TextField } from '../../parts/Fields'
import { OptionsField } from './OptionsField'
import {
  choicesOf,
  flagsOfOptions,
  is6,
  linesOfOptions,
  modes,
  optionsOf,
  rangesOf,
  type Subnet,
  unknowns,
  wordsOf,
} from './words'

// SubnetForm makes or changes a subnet. What is wrong with it is for the server to say, field by field.
export function SubnetForm({ subnet: now, close }: { subnet?: Subnet; close: () => void }) {
  const [subnet] = useState(now) // as it was seen; a change meanwhile is refused, not overwritten
  const [name, setName] = useState(subnet?.name ?? '')
  const [cidr, setCIDR] = useState(subnet?.cidr ?? '')
  const [iface, setInterface] = useState(subnet?.interface ?? '')
  const [mode, setMode] = useState<string>(subnet?.mode ?? 'full')
  const [gateway, setGateway] = useState(subnet?.gateway ?? '')
  const [dns, setDNS] = useState((subnet?.dns ?? []).join(' '))
  const [ntp, setNTP] = useState((subnet?.ntp ?? []).join(' '))
  const [domain, setDomain] = useState(subnet?.domain ?? '')
  const [mtu, setMTU] = useState(subnet?.mtu ? String(subnet.mtu) : '')
  const [ranges, setRanges] = useState((subnet?.ranges ?? []).map((r) => `${r.first}-${r.last}`).join('\n'))
  const [statics, setStatics] = useState((subnet?.staticRanges ?? []).map((r) => `${r.first}-${r.last}`).join('\n'))
  const [leaseFor, setLeaseFor] = useState(subnet?.leaseFor ?? '24h')
  const [bootLeaseFor, setBootLeaseFor] = useState(subnet?.bootLeaseFor ?? '10m')
  const [unknown, setUnknown] = useState<string>(subnet?.unknown ?? 'wait')
  const [advertise, setAdvertise] = useState(subnet?.advertise ?? 'managed')
  const [isRouter, setRouter] = useState(subnet?.isRouter ?? false)
  const [options, setOptions] = useState(linesOfOptions(subnet?.options))
  const isIPv6 = is6(cidr)
  const interfaces = useQuery({
    queryKey: ['subnets', 'interfaces'],
    queryFn: () => must(api.GET('/api/v1/interfaces')),
  })
  const body = {
    name,
    cidr,
    ...(iface && { interface: iface }),
    mode,
    ...(gateway && { gateway }),
    dns: wordsOf(dns),
    ntp: wordsOf(ntp),
    ...(domain && { domain }),
    ...(mtu && { mtu: Number(mtu) }),
    routes: subnet?.routes ?? [],
    ranges: rangesOf(ranges),
    staticRanges: rangesOf(statics),
    options: optionsOf(options),
    leaseFor,
    bootLeaseFor,
    unknown,
    ...(isIPv6 && { advertise, isRouter }),
  }
  const words = flags({
    cidr,
    interface: iface,
    mode,
    gateway,
    dns: wordsOf(dns),
    ntp: wordsOf(ntp),
    domain,
    mtu,
    range: wordsOf(ranges),
    'static-range': wordsOf(statics),
    option: flagsOfOptions(options),
    'lease-for': leaseFor,
    'boot-lease-for': bootLeaseFor,
    unknown,
    ...(isIPv6 && { advertise, router: isRouter }),
  })
  const choices = new Set(['', ...(iface ? [iface] : []), ...(interfaces.data?.items ?? []).map((i) => i.name)])
  return (
    <EditForm
      title={subnet ? `Subnet ${subnet.name}` : 'Add a subnet'}
      verb="Save"
      close={close}
      ready={name !== '' && cidr !== ''}
      call={
        subnet
          ? { method: 'PUT', path: `/subnets/${subnet.name}`, body, version: subnet.version }
          : { method: 'POST', path: '/subnets', body }
      }
      cli={`slipway subnet ${subnet ? 'update' : 'create'} ${shell(name || 'NAME')}${words}`}
    >
      {!subnet && <TextField label="Name" value={name} set={setName} field="name" isRequired />}
      <TextField label="Network" value={cidr} set={setCIDR} field="cidr" isRequired help="such as 10.0.0.0/24" />
      <ChoiceField
        label="Interface"
        value={iface}
        set={setInterface}
        field="interface"
        choices={[...choices].map((c) => [c, c || 'none: reached by relay only'])}
      />
      <ChoiceField label="Mode" value={mode} set={setMode} field="mode" choices={choicesOf(modes)} />
      <LongField
        label="Ranges"
        value={ranges}
        set={setRanges}
        field="ranges"
        rows={2}
        help="Addresses that DHCP leases to any machine: FIRST-LAST, one in a line"
      />
      <LongField
        label="Static ranges"
        value={statics}
        set={setStatics}
        field="staticRanges"
        rows={2}
        help="Addresses that machines with fromSubnets keep as long as they live: FIRST-LAST, one in a line"
      />
      {isIPv6 && (
        <>
          <ChoiceField
            label="Addresses of machines"
            value={advertise}
            set={setAdvertise}
            field="advertise"
            choices={[
              ['managed', 'managed: DHCPv6 gives them, and this server advertises that'],
              ['slaac', 'slaac: machines make their own, and DHCPv6 says what to boot'],
              ['off', 'off: another router advertises, with the M or the O flag'],
            ]}
          />
          <Checkbox
            id="subnet-router"
            label="This server is advertised as the default router"
            isChecked={isRouter}
            onChange={(_, is) => setRouter(is)}
          />
        </>
      )}
      <TextField label="Gateway" value={gateway} set={setGateway} field="gateway" />
      <TextField label="Name servers" value={dns} set={setDNS} field="dns" help="with a space between" />
      <TextField label="Time servers" value={ntp} set={setNTP} field="ntp" />
      <TextField label="Domain" value={domain} set={setDomain} field="domain" />
      <TextField label="MTU" type="number" value={mtu} set={setMTU} field="mtu" />
      <TextField label="Leases of systems last" value={leaseFor} set={setLeaseFor} field="leaseFor" />
      <TextField label="Leases of firmware last" value={bootLeaseFor} set={setBootLeaseFor} field="bootLeaseFor" />
      <ChoiceField
        label="Unknown machines"
        value={unknown}
        set={setUnknown}
        field="unknown"
        choices={choicesOf(unknowns)}
      />
      <OptionsField value={options} set={setOptions} field="options" />
    </EditForm>
  )
}
