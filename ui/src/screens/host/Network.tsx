import { Alert, Title } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { Link } from 'react-router'
import { api, type Host, must } from '../../api/client'
import { useList } from '../../api/queries'
import { Command } from '../../parts/Command'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { Rows, useInspections } from './Hardware'

// rackOf is the id of the rack that a host stands in, as the server has it: parts with a slash in between.
function rackOf({ place: { site = '', row = '', rack = '' } }: Host): string {
  const part = (s: string) => s.replaceAll('%', '%25').replaceAll('/', '%2F')
  if (!rack) return ''
  return site || row ? [site, row, rack].map(part).join('/') : part(rack)
}

// Network shows the ports of a host: who made them, what is at the other end, and which addresses they have.
export function Network({ host: h }: { host: Host }) {
  const macs = h.nics.map((n) => n.mac)
  const leases = useList('leases', { host: h.name })
  const reservations = useList('reservations')
  const cables = useQuery({
    queryKey: ['hosts', h.name, 'cabling'],
    queryFn: () => must(api.GET('/api/v1/cabling', { params: { query: { host: h.name } } })),
  })
  const rack = rackOf(h)
  const found = useInspections(h.name).data?.[0]?.hardware
  const portOf = (mac: string) => found?.ports?.find((p) => p.mac === mac)
  const extra = (found?.ports ?? []).filter((p) => !macs.includes(p.mac))
  const speed = (mbps: number | undefined) => mbps && (mbps >= 1000 ? `${mbps / 1000} Gbit/s` : `${mbps} Mbit/s`)
  return (
    <>
      {(cables.data?.faults ?? []).map((f) => (
        <Alert key={f.detail} isInline variant="warning" component="h2" title={f.detail}>
          {f.hint}
        </Alert>
      ))}
      <Rows
        label="Network ports"
        head={['Port', 'MAC', 'Card', 'Link', 'Switch', 'Switch port', 'VLAN', 'Addresses']}
        rows={[...h.nics, ...extra.map((p) => ({ mac: p.mac, name: p.name, vendor: p.vendor, isBoot: false }))].map(
          (n) => {
            const p = portOf(n.mac)
            const at = p?.neighbour
            return [
              `${n.name || p?.name || '–'}${n.isBoot ? ' (boots)' : ''}`,
              n.mac,
              [n.vendor || p?.vendor, p?.driver].filter(Boolean).join(', '),
              p ? (p.hasLink ? (speed(p.speedMbps) ?? 'up') : 'down') : undefined,
              at?.system || at?.chassis,
              at && [at.port, at.portDescription].filter(Boolean).join(' '),
              at?.vlan,
              (p?.addresses ?? []).join(' '),
            ]
          },
        )}
      />
      {cables.error && <Failure error={cables.error} again={() => void cables.refetch()} />}
      {rack && (
        <p>
          <Link to={`/racks?tab=cables&rack=${encodeURIComponent(rack)}`}>All cables of its rack</Link>
        </p>
      )}
      {!found && <p>An inspection finds link, switch and VLAN: the agent listens for LLDP.</p>}
      <Title headingLevel="h2">Addresses</Title>
      <Loaded query={leases}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="It has no lease">
              It gets an address when it asks for one in a subnet that Slipway serves.
            </Nothing>
          ) : (
            <Rows
              label="Leases"
              head={['Address', 'MAC', 'Subnet', 'State', 'Name', 'Until']}
              rows={all.map((l) => [
                l.address,
                l.mac,
                l.subnet,
                l.state,
                l.hostname,
                new Date(l.expiresAt).toLocaleString(),
              ])}
            />
          )
        }
      </Loaded>
      <Loaded query={reservations}>
        {(all) => (
          <Rows
            label="Reservations"
            head={['Address', 'MAC', 'Subnet', 'Name']}
            rows={all.map((r) => [r.address, r.mac, r.subnet, r.hostname])}
          />
        )}
      </Loaded>
      <p>
        <Link to="/networks">All networks</Link>
      </p>
      <Command
        cli={`slipway lease list --host ${h.name}`}
        call={{ method: 'GET', path: `/leases?host=${encodeURIComponent(h.name)}` }}
      />
    </>
  )
}
