import { Button, Label } from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useMutation } from '@tanstack/react-query'
import { api, must } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useOne } from '../../api/queries'
import { Command } from '../../parts/Command'
import { shell } from '../../parts/cli'
import { Failure, Loaded } from '../../parts/Failure'
import { When } from '../../parts/When'

const kinds: Record<string, string> = {
  bios: 'BIOS',
  uefi: 'UEFI',
  'uefi-http': 'UEFI HTTP Boot',
  'uefi-arm64': 'UEFI, 64-bit ARM',
  ipxe: 'iPXE',
}

const ends = { us: ['green', 'to us'], elsewhere: ['red', 'elsewhere'], nowhere: ['orange', 'nowhere'] } as const

// Probe shows the other DHCP servers of a subnet, and asks them where they lead each kind of machine.
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
            <p>No other DHCP server was noticed here in the last hour.</p>
          ) : (
            <Table aria-label="Other DHCP servers" variant="compact">
              <Thead>
                <Tr>
                  <Th>Server</Th>
                  <Th>MAC</Th>
                  <Th>Interface</Th>
                  <Th>Noticed by</Th>
                  <Th>Last</Th>
                </Tr>
              </Thead>
              <Tbody>
                {items.map((s) => (
                  <Tr key={`${s.interface} ${s.server} ${s.duid} ${s.isHeard}`}>
                    <Td dataLabel="Server">{s.duid ? `${s.server} DUID ${s.duid}` : s.server}</Td>
                    <Td dataLabel="MAC">{s.mac ?? ''}</Td>
                    <Td dataLabel="Interface">{s.interface}</Td>
                    <Td dataLabel="Noticed by">{s.isHeard ? 'its own answer' : 'what a machine said'}</Td>
                    <Td dataLabel="Last">
                      <When at={s.lastAt} />
                    </Td>
                  </Tr>
                ))}
              </Tbody>
            </Table>
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
        Ask where machines are led
      </Button>
      {ask.isError && <Failure error={ask.error} />}
      {ask.data && (
        <Table aria-label="Where machines are led" variant="compact">
          <Thead>
            <Tr>
              <Th>Machines</Th>
              <Th>Led</Th>
              <Th>Why</Th>
            </Tr>
          </Thead>
          <Tbody>
            {ask.data.items.map((l) => (
              <Tr key={l.kind}>
                <Td dataLabel="Machines">{kinds[l.kind] ?? l.kind}</Td>
                <Td dataLabel="Led">
                  <Label color={ends[l.leadsTo][0]}>{ends[l.leadsTo][1]}</Label>
                </Td>
                <Td dataLabel="Why">
                  {l.detail}
                  {l.hint && <div>→ {l.hint}</div>}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      )}
      <Command cli={`slipway subnet probe ${shell(subnet)}`} />
    </>
  )
}
