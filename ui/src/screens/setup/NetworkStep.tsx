import { Button, Card, CardBody, CardTitle, Content, Label } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'react-router'
import { api, must, type Schemas } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useOne } from '../../api/queries'
import { useChecks } from '../../parts/Checks'
import { Command } from '../../parts/Command'
import { flags } from '../../parts/cli'
import { Facts } from '../../parts/Facts'
import { Loaded } from '../../parts/Failure'
import { ChoiceField, EditForm, TextField, useFields } from '../../parts/Fields'
import { choicesOf, modes, unknowns } from '../networks/words'
import { nameOf, suggest } from './steps'

type Interface = Schemas['Interface']

// NetworkStep shows where machines boot, and gives a subnet to interfaces that have none. Which interfaces are served is
// said when the server starts, for it opens their sockets then.
export function NetworkStep() {
  const interfaces = useQuery({
    queryKey: ['interfaces'],
    staleTime: 0,
    queryFn: async () => (await must(api.GET('/api/v1/interfaces'))).items,
  })
  return (
    <Loaded query={interfaces}>
      {(all) => {
        const served = all.filter((i) => i.isServed)
        const others = all.filter((i) => !i.isServed)
        return (
          <>
            {served.map((i) => (
              <Served key={i.name} iface={i} />
            ))}
            {others.length > 0 && (
              <Card isCompact>
                <CardTitle component="h3">Interfaces that are not served</CardTitle>
                <CardBody>
                  <Content component="p">
                    Slipway does not answer machines on these interfaces. You choose the interfaces at the start of the
                    server. To add one, start it with:
                  </Content>
                  <ul>
                    {others.map((i) => (
                      <li key={i.name}>
                        {i.name} {(i.addresses ?? []).join(' ') || '(no IPv4 address)'} {!i.isUp && '(down)'}
                      </li>
                    ))}
                  </ul>
                  <Command
                    cli={`slipway serve${flags({ interface: [...served.map((i) => i.name), others[0]?.name ?? 'NAME'] })}`}
                  />
                </CardBody>
              </Card>
            )}
          </>
        )
      }}
    </Loaded>
  )
}

function Served({ iface: i }: { iface: Interface }) {
  const me = useMe()
  const checks = useChecks()
  const why = me && mayNot(me, 'admin', '')
  const [isAsked, setAsked] = useState(false)
  const heard = (checks.data ?? []).find((c) => c.name === `other DHCP on ${i.name}`)
  const own = i.addresses?.[0]
  return (
    <Card style={{ marginBlockEnd: '1rem' }}>
      <CardTitle component="h3">
        Interface {i.name}{' '}
        <Label isCompact color={i.isUp ? 'green' : 'red'}>
          {i.isUp ? 'up' : 'down'}
        </Label>
      </CardTitle>
      <CardBody>
        <Facts
          rows={[
            [
              'Its address',
              (i.addresses ?? []).join(', ') ||
                `none: first give it an address, such as ip addr add 10.0.0.1/24 dev ${i.name}`,
            ],
            ['Other DHCP servers', heard && heard.detail + (heard.hint ? `. ${heard.hint}` : '')],
            ['Machines boot from', i.bootURL],
            ['Subnet', i.subnet && <Link to={`/networks/${encodeURIComponent(i.subnet)}`}>{i.subnet}</Link>],
          ]}
        />
        {i.subnet ? (
          <SubnetFacts name={i.subnet} />
        ) : (
          <>
            <p>No subnet contains its address, so Slipway answers nobody there.</p>
            <Button
              isAriaDisabled={why !== undefined || !own}
              title={why ?? (own ? '' : 'it has no address')}
              onClick={() => !why && own && setAsked(true)}
            >
              Add a subnet
            </Button>
          </>
        )}
        {isAsked && own && <SubnetForm iface={i.name} own={own} others={heard?.status} close={() => setAsked(false)} />}
      </CardBody>
    </Card>
  )
}

function SubnetFacts({ name }: { name: string }) {
  const subnet = useOne('subnets', name)
  return (
    <Loaded query={subnet}>
      {(s) => (
        <>
          <Facts
            rows={[
              ['Network', s.cidr],
              ['Mode', `${s.mode}: ${modes[s.mode]}`],
              ['Addresses to lease', (s.ranges ?? []).map((r) => `${r.first} to ${r.last}`).join(', ') || 'none'],
              ['Unaccepted machines', `${s.unknown}: ${unknowns[s.unknown]}`],
            ]}
          />
          <Link to={`/networks/${encodeURIComponent(name)}`}>Change it under Networks</Link>
        </>
      )}
    </Loaded>
  )
}

function SubnetForm({
  iface,
  own,
  others,
  close,
}: {
  iface: string
  own: string
  others: string | undefined // of the check for other DHCP servers; undefined before its answer

  close: () => void
}) {
  const isShared = others !== undefined && others !== 'ok'
  const wise = suggest(own)
  const [{ name, cidr, mode, first, last, unknown }, of] = useFields({
    name: nameOf(iface),
    cidr: wise?.cidr ?? '',
    mode: isShared ? 'proxy' : 'full',
    first: wise?.first ?? '',
    last: wise?.last ?? '',
    unknown: 'disk',
  })
  const ranges = mode === 'full' && first !== '' ? [{ first, last }] : []
  return (
    <EditForm
      title={`A subnet for ${iface}`}
      verb="Add"
      ready={name !== '' && cidr !== ''}
      call={{ method: 'POST', path: '/subnets', body: { name, cidr, interface: iface, mode, unknown, ranges } }}
      cli={`slipway subnet create ${name}${flags({ cidr, interface: iface, mode, unknown })}${ranges.length > 0 ? ` && slipway range add ${name} ${first}-${last}` : ''}`}
      close={close}
    >
      <TextField label="Name" {...of('name')} isRequired />
      <TextField label="Network" {...of('cidr')} isRequired />
      <ChoiceField
        label="Mode"
        {...of('mode')}
        choices={choicesOf(modes)}
        help={
          others === 'ok'
            ? 'Slipway asked this network, and no other DHCP server answered.'
            : `${isShared ? 'Another DHCP server may answer here.' : 'Slipway is still looking for other DHCP servers here.'} Two DHCP servers in mode full disturb each other. With mode proxy, the other one can stay.`
        }
      />
      {mode === 'full' && (
        <>
          <TextField label="Lease from" {...of('first')} field="ranges" />
          <TextField
            label="to"
            {...of('last')}
            field="ranges"
            help="The form suggests the upper half of the network."
          />
        </>
      )}
      <ChoiceField
        label="Unaccepted machines"
        {...of('unknown')}
        choices={choicesOf(unknowns)}
        help="Slipway never writes to their disks."
      />
    </EditForm>
  )
}
