import type { Host } from '../../api/client'
import { Command } from '../../parts/Command'
import { shell } from '../../parts/cli'
import { AuditTable } from '../audit/AuditTable'

// HostAudit lists what was asked about a host, by whom.
export function HostAudit({ host }: { host: Pick<Host, 'id' | 'name'> }) {
  return (
    <>
      <AuditTable query={{ host: host.id }} isHost />
      <Command cli={`slipway audit list --host ${shell(host.name)}`} />
    </>
  )
}
