import { Button, Label } from '@patternfly/react-core'
import { useMutation } from '@tanstack/react-query'
import { api, must } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useOne } from '../../api/queries'
import { Command } from '../../parts/Command'
import { shell } from '../../parts/cli'
import { Failure, Loaded } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
import { When } from '../../parts/When'

const kinds: Record<string, string> = {
  bios: 'BIOS',
  uefi: 'UEFI',
  'uefi-http': 'UEFI HTTP Boot',
  'uefi-arm64': 'UEFI, 64-bit ARM',
  ipxe: 'iPXE',
}

const ends = {
  us: ['green', 'Slipway'],
  elsewhere: ['red', 'another server'],
  nowhere: ['orange', 'no server'],
} as const

// Probe shows the other DHCP servers of a subnet, and asks them where each kind of machine would boot from.
export function Probe({ subnet }: { subnet: string }) {
  const me = useMe()
  const not = me && mayNot(me, 'operator', '')
  const servers = useOne('subnets', subnet, '/foreign-servers')
  const ask = useMutation({
    mutationFn: () => must(api.POST('/api/v1/subnets/{name}/probe', { params: { path: { name: subnet } } })),
    onSettled: () => servers.refetch(),
  })
  return (
    <>
      <Loaded query={servers}>
        {({ items }) =>
          items.length === 0 ? (
            <p>Slipway has seen no other DHCP server here in the last hour.</p>
          ) : (
            <Rows
              label="Other DHCP servers"
              rows={items}
              keyOf={(s) => `${s.interface} ${s.server} ${s.duid} ${s.isHeard}`}
              columns={[
                ['Server', (s) => (s.duid ? `${s.server} DUID ${s.duid}` : s.server)],
                ['MAC', (s) => s.mac ?? ''],
                ['Interface', (s) => s.interface],
                ['Noticed by', (s) => (s.isHeard ? 'its own answer' : 'what a machine said')],
                ['Last', (s) => <When at={s.lastAt} />],
              ]}
            />
          )
        }
      </Loaded>
      <Button
        variant="secondary"
        isLoading={ask.isPending}
        isDisabled={ask.isPending}
        isAriaDisabled={!!not}
        title={not}
        onClick={() => not || ask.mutate()}
      >
        Test where machines would boot from
      </Button>
      {ask.isError && <Failure error={ask.error} />}
      {ask.data && (
        <Rows
          label="Where machines would boot from"
          rows={ask.data.items}
          keyOf={(l) => l.kind}
          columns={[
            ['Machines', (l) => kinds[l.kind] ?? l.kind],
            ['Boots from', (l) => <Label color={ends[l.leadsTo][0]}>{ends[l.leadsTo][1]}</Label>],
            [
              'Why',
              (l) => (
                <>
                  {l.detail}
                  {l.hint && <div>→ {l.hint}</div>}
                </>
              ),
            ],
          ]}
        />
      )}
      <Command cli={`slipway subnet probe ${shell(subnet)}`} />
    </>
  )
}
