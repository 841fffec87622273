import type { Host } from '../../api/client'
import { useOne } from '../../api/queries'
import { flags, shell } from '../../parts/cli'
import { Failure } from '../../parts/Failure'
import { EditForm, TextField, useFields } from '../../parts/Fields'

// GoldenForm makes what a host is made of the measure for those like it.
export function GoldenForm({ host, close }: { host: Host; close: () => void }) {
  const found = useOne('hosts', host.name, '/hardware')
  const word = (s: string | undefined) =>
    (s ?? '')
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-|-$/g, '')
      .slice(0, 60)
  const [{ name, selector }, of] = useFields({
    name: word(host.product) || 'golden',
    selector: host.product ? `product=${host.product}` : '',
  })
  const hw = found.data?.hardware
  return (
    <EditForm
      title={`Hardware of ${host.name} as golden`}
      verb="Save"
      ready={name !== '' && selector !== '' && hw !== undefined}
      call={{
        method: 'POST',
        path: '/goldens',
        body: {
          name,
          selector,
          ...(hw && {
            diskN: hw.disks?.length ?? 0,
            dimmN: hw.dimms?.length ?? 0,
            portN: hw.ports?.length ?? 0,
            ...(hw.firmware.version && { firmware: { bios: hw.firmware.version } }),
          }),
        },
      }}
      cli={`slipway golden create ${shell(name || 'NAME')}${flags({
        selector: selector || 'SELECTOR',
        disks: hw?.disks?.length,
        dimms: hw?.dimms?.length,
        ports: hw?.ports?.length,
        ...(hw?.firmware.version && { firmware: `bios=${hw.firmware.version}` }),
      })}`}
      close={close}
    >
      <p>
        Each inspection compares the hosts that match the selector with this hardware. A missing part becomes an issue.
      </p>
      <TextField label="Name" {...of('name')} isRequired />
      <TextField
        label="Selector"
        {...of('selector')}
        isRequired
        help="The hosts with this hardware, such as product=R650."
      />
      {hw && (
        <p>
          {hw.disks?.length ?? 0} disks, {hw.dimms?.length ?? 0} memory modules, {hw.ports?.length ?? 0} network ports,
          firmware {hw.firmware.version || 'unknown'}.
        </p>
      )}
      {found.error && <Failure error={found.error} />}
    </EditForm>
  )
}
