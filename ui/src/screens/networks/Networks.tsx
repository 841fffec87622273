import { Alert, Button, Tab, Tabs, TabTitleText } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, Route, Routes, useParams, useSearchParams } from 'react-router'
import { api, type Issue, must } from '../../api/client'
import { useMayNot } from '../../api/me'
import { nouns } from '../../api/nouns'
import { useList } from '../../api/queries'
import { Ask, dryOf } from '../../parts/Ask'
import { Command } from '../../parts/Command'
import { shell } from '../../parts/cli'
import { Facts } from '../../parts/Facts'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { NounList } from '../../parts/NounList'
import { Screen } from '../../parts/Screen'
import { When } from '../../parts/When'
import { linesOf, linesOfOptions } from '../../parts/written'
import { Addresses } from '../addresses/Addresses'
import { Leases } from './Leases'
import { Reservations } from './Reservations'
import { Snippets } from './Snippets'
import { SubnetForm } from './SubnetForm'
import { UseBars } from './UseBars'
import { modes } from './words'
import './networks.css'
import { Act } from '../../parts/Act'
import { Rows } from '../../parts/Rows'

export function Networks() {
  return (
    <Routes>
      <Route index element={<All />} />
      <Route path=":subnet" element={<One />} />
    </Routes>
  )
}

const advertised: Record<string, string> = {
  managed: 'managed: addresses come by DHCPv6',
  slaac: 'slaac: machines make their own addresses',
  off: 'off: another router advertises',
}

function All() {
  const subnets = useList('subnets')
  const [isNew, setNew] = useState(false)
  const not = useMayNot('admin', '')
  return (
    <Screen
      title="Networks"
      about="Subnets that Slipway serves, and their addresses."
      actions={<Act text="Add a subnet" variant="primary" not={not} act={() => setNew(true)} />}
    >
      {isNew && <SubnetForm close={() => setNew(false)} />}
      <Loaded query={subnets}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="No subnet yet">
              Without one, Slipway answers nobody. Add the network of an interface below, or: slipway subnet create NAME
              --cidr 10.0.0.0/24 --interface eno1
            </Nothing>
          ) : (
            <Rows
              label="Subnets"
              rows={all}
              keyOf={(s) => s.name}
              columns={[
                ['Name', (s) => <Link to={`/networks/${s.name}`}>{s.name}</Link>],
                ['Network', (s) => s.cidr],
                ['Mode', (s) => `${s.mode}: ${modes[s.mode]}`],
                ['Interface', (s) => s.interface || 'by relay'],
                ['Unaccepted machines', (s) => s.unknown],
                ['Addresses', (s) => <UseBars subnet={s.name} isBrief />, { style: { minInlineSize: '14rem' } }],
              ]}
            />
          )
        }
      </Loaded>
      <section aria-label="Classes of clients" className="network-part">
        <h2>Classes of DHCP clients</h2>
        <NounList d={nouns.classes} variant="secondary" />
      </section>
      <Interfaces />
      <Others />
    </Screen>
  )
}

function Interfaces() {
  const list = useQuery({
    queryKey: ['subnets', 'interfaces'],
    queryFn: () => must(api.GET('/api/v1/interfaces')),
  })
  return (
    <section aria-label="Interfaces" className="network-part">
      <h2>Interfaces of the server</h2>
      <Loaded query={list}>
        {({ items }) => (
          <Rows
            label="Interfaces"
            rows={items}
            keyOf={(i) => i.name}
            columns={[
              ['Name', (i) => i.name],
              ['MAC', (i) => i.mac],
              ['Link', (i) => (i.isUp ? 'up' : 'down')],
              ['Addresses', (i) => (i.addresses ?? []).join(' ')],
              [
                'Subnet',
                (i) =>
                  i.subnet ? (
                    <Link to={`/networks/${i.subnet}`}>{i.subnet}</Link>
                  ) : i.isServed ? (
                    'none: Slipway answers nobody'
                  ) : (
                    ''
                  ),
              ],
              [
                'Boot URL',
                (i) => i.bootURL ?? (i.isServed ? 'no address yet' : 'not served: start with --interface to serve it'),
              ],
            ]}
          />
        )}
      </Loaded>
    </section>
  )
}

// Others asks the networks for other DHCP servers; that takes seconds, so only when it is wanted.
function Others() {
  const heard = useQuery({
    queryKey: ['selfcheck', 'others'],
    enabled: false,
    queryFn: async () => {
      const all = await must(api.GET('/api/v1/selfcheck'))
      return all.items.filter(
        (c) => c.name.startsWith('other DHCP') || c.name.startsWith('subnet') || c.name.startsWith('reservation'),
      )
    },
  })
  return (
    <section aria-label="Other DHCP servers" className="network-part">
      <h2>Other DHCP servers</h2>
      <Button
        variant="secondary"
        isLoading={heard.isFetching}
        isDisabled={heard.isFetching}
        onClick={() => void heard.refetch()}
      >
        Search for them
      </Button>
      <div className="network-heard">
        {heard.error && <Failure error={heard.error} />}
        {heard.data?.map((c) => (
          <Alert
            key={c.name}
            isInline
            variant={c.status === 'ok' ? 'success' : c.status === 'warning' ? 'warning' : 'danger'}
            title={`${c.name}: ${c.detail}`}
          >
            {c.hint}
          </Alert>
        ))}
      </div>
    </section>
  )
}

const tabs = ['leases', 'reservations', 'static', 'conflicts', 'others'] as const

function One() {
  const { subnet: name = '' } = useParams()
  const [params, setParams] = useSearchParams()
  const tab = tabs.find((t) => t === params.get('tab')) ?? 'leases'
  const subnets = useList('subnets')
  const issues = useList('issues')
  const [asked, ask] = useState<'edit' | 'delete'>()
  const not = useMayNot('admin', '')
  return (
    <Screen title={`Subnet ${name}`}>
      <Loaded query={subnets}>
        {(all) => {
          const s = all.find((x) => x.name === name)
          if (!s)
            return (
              <Nothing title="There is no such subnet">
                <Link to="/networks">All networks</Link>
              </Nothing>
            )
          return (
            <>
              <Facts
                rows={[
                  ['Network', s.cidr],
                  ['Mode', `${s.mode}: ${modes[s.mode]}`],
                  ['Interface', s.interface || 'reached by relay only'],
                  ['Gateway', s.gateway],
                  ['DNS', (s.dns ?? []).join(' ')],
                  ['NTP', (s.ntp ?? []).join(' ')],
                  ['Domain', s.domain],
                  ['MTU', s.mtu],
                  ['Routes', (s.routes ?? []).map((r) => `${r.to} via ${r.via}`).join(', ')],
                  ['Leases', `${s.leaseFor} for systems, ${s.bootLeaseFor} for firmware`],
                  ['Unaccepted machines', s.unknown],
                  ['DHCP options', linesOf(linesOfOptions(s.options)).join(', ')],
                  ['Advertised', s.advertise && advertised[s.advertise]],
                  ['Default router', s.advertise && (s.isRouter ? 'this server' : 'another one')],
                ]}
              />
              <p className="network-acts">
                <Act text="Edit" variant="secondary" not={not} act={() => ask('edit')} />{' '}
                <Button variant="link" isDanger isAriaDisabled={!!not} title={not} onClick={() => not || ask('delete')}>
                  Delete
                </Button>
              </p>
              {asked === 'edit' && <SubnetForm subnet={s} close={() => ask(undefined)} />}
              {asked === 'delete' && (
                <Ask
                  title={`Delete subnet ${s.name}?`}
                  verb="Delete"
                  foresees={dryOf({ method: 'DELETE', path: `/subnets/${s.name}`, version: s.version })}
                  typed={s.name}
                  call={{ method: 'DELETE', path: `/subnets/${s.name}`, version: s.version }}
                  cli={`slipway subnet delete ${shell(s.name)}`}
                  close={() => ask(undefined)}
                />
              )}
              {issuesOf(issues.data ?? [], s.name).map((i) => (
                <Alert key={i.id} isInline variant="warning" title={i.cause}>
                  {i.hint} <When at={i.openedAt} />
                </Alert>
              ))}
              <UseBars subnet={s.name} />
              <Tabs
                activeKey={tab}
                onSelect={(_, k) => setParams(k === 'leases' ? {} : { tab: String(k) }, { replace: true })}
                aria-label="Addresses"
              >
                <Tab eventKey="leases" title={<TabTitleText>Leases</TabTitleText>}>
                  {tab === 'leases' && <Leases subnet={s.name} />}
                </Tab>
                <Tab eventKey="reservations" title={<TabTitleText>Reservations</TabTitleText>}>
                  {tab === 'reservations' && <Reservations subnet={s.name} />}
                </Tab>
                <Tab eventKey="static" title={<TabTitleText>Static addresses</TabTitleText>}>
                  {tab === 'static' && (
                    <Addresses of={{ subnet: s.name }} none="No machine has an address of its static ranges." />
                  )}
                </Tab>
                <Tab eventKey="conflicts" title={<TabTitleText>Conflicts</TabTitleText>}>
                  {tab === 'conflicts' && <Leases subnet={s.name} onlyConflicts />}
                </Tab>
                <Tab eventKey="others" title={<TabTitleText>Another DHCP server</TabTitleText>}>
                  {tab === 'others' && <Snippets subnet={s.name} />}
                </Tab>
              </Tabs>
              <Command cli={`slipway subnet show ${shell(s.name)}`} />
            </>
          )
        }}
      </Loaded>
    </Screen>
  )
}

// issuesOf are the open problems of a subnet.
const issuesOf = (issues: Issue[], subnet: string) => issues.filter((i) => i.subnet === subnet)
