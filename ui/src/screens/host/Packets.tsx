import { Button, Title } from '@patternfly/react-core'
import type { Host } from '../../api/client'
import { useMayNotOn } from '../../api/me'
import { Command } from '../../parts/Command'

// Packets gives out what was on the wire at a host's latest boots, as a file for Wireshark.
export function Packets({ host }: { host: Host }) {
  const not = useMayNotOn(host.name)('operator')
  const path = `/hosts/${encodeURIComponent(host.name)}/packets`
  return (
    <section aria-label="Packets" className="host-packets">
      <Title headingLevel="h2">Packets</Title>
      <p>
        The latest DHCP, TFTP and HTTP requests of its boots, without contents and keys, for tcpdump and Wireshark. They
        are kept on disk, too: a restart of the server does not lose them.
      </p>
      <p className="host-buttons">
        {not ? (
          <Button variant="secondary" size="sm" isAriaDisabled title={not}>
            Download pcap
          </Button>
        ) : (
          <Button variant="secondary" size="sm" component="a" href={`/api/v1${path}`} download={`${host.name}.pcap`}>
            Download pcap
          </Button>
        )}
      </p>
      <Command cli={`slipway host pcap ${host.name}`} call={{ method: 'GET', path }} />
    </section>
  )
}
