import { useQuery } from '@tanstack/react-query'
import { api, must } from '../../api/client'
import type { Filled, Form } from '../../parts/kinds'
import { NounForm } from '../../parts/NounForm'
import { choicesOf, is6, modes, type Subnet, unknowns } from './words'

const isIPv6 = (f: Filled) => is6(f.cidr ?? '')

const form = (interfaces: string[]): Form => ({
  one: 'subnet',
  many: 'subnets',
  needs: 'admin',
  own: ['createdAt', 'updatedAt', 'version'],
  add: 'Add a subnet',
  verb: 'Save',
  cmds: ['create', 'update'],
  fields: [
    { name: 'name', label: 'Name', isMust: true },
    { name: 'cidr', label: 'Network', isMust: true, help: 'such as 10.0.0.0/24', flag: 'cidr' },
    {
      name: 'interface',
      label: 'Interface',
      kind: 'choice',
      flag: 'interface',
      choices: ['', ...interfaces].map((i) => [i, i || 'none: reached by relay only']),
    },
    { name: 'mode', label: 'Mode', kind: 'choice', choices: choicesOf(modes), first: 'full', flag: 'mode' },
    {
      name: 'ranges',
      label: 'Ranges',
      kind: 'ranges',
      rows: 2,
      help: 'Addresses that DHCP leases to any machine: FIRST-LAST, one in a line',
      flag: 'range',
    },
    {
      name: 'staticRanges',
      label: 'Static ranges',
      kind: 'ranges',
      rows: 2,
      help: 'Addresses for machines with fromSubnets. A machine keeps its address until it is deleted: FIRST-LAST, one in a line',
      flag: 'static-range',
    },
    {
      name: 'advertise',
      label: 'Addresses of machines',
      kind: 'choice',
      when: isIPv6,
      first: 'managed',
      choices: [
        ['managed', 'managed: DHCPv6 gives them, and this server advertises that'],
        ['slaac', 'slaac: machines make their own, and DHCPv6 only names what to boot'],
        ['off', 'off: another router advertises, with the M or the O flag'],
      ],
      flag: 'advertise',
    },
    {
      name: 'isRouter',
      label: 'This server is advertised as the default router',
      kind: 'flag',
      when: isIPv6,
      flag: 'router',
    },
    { name: 'gateway', label: 'Gateway', flag: 'gateway' },
    { name: 'dns', label: 'Name servers', kind: 'words', help: 'with a space between', flag: 'dns' },
    { name: 'ntp', label: 'Time servers', kind: 'words', flag: 'ntp' },
    { name: 'domain', label: 'Domain', flag: 'domain' },
    { name: 'mtu', label: 'MTU', kind: 'number', flag: 'mtu' },
    { name: 'leaseFor', label: 'Leases of systems last', first: '24h', flag: 'lease-for' },
    { name: 'bootLeaseFor', label: 'Leases of firmware last', first: '10m', flag: 'boot-lease-for' },
    {
      name: 'unknown',
      label: 'Unaccepted machines',
      kind: 'choice',
      choices: choicesOf(unknowns),
      first: 'wait',
      flag: 'unknown',
    },
    { name: 'options', label: 'DHCP options', kind: 'options', flag: 'option' },
  ],
})

// SubnetForm makes or changes a subnet. What is wrong with it is for the server to say, field by field.
export function SubnetForm({ subnet, close }: { subnet?: Subnet; close: () => void }) {
  const interfaces = useQuery({
    queryKey: ['subnets', 'interfaces'],
    queryFn: () => must(api.GET('/api/v1/interfaces')),
  }).data
  const names = new Set((interfaces?.items ?? []).map((i) => i.name))
  if (subnet?.interface) names.add(subnet.interface)
  return <NounForm d={form([...names])} one={subnet} close={close} />
}
