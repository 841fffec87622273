import { useState } from 'react'
import { saveOf } from '../../api/act'
import { useMayNot } from '../../api/me'
import { Add } from '../../parts/Act'
import { flags, shell } from '../../parts/cli'
import { Nothing } from '../../parts/Failure'
import { ChoiceField, EditForm, OptionsField, TextField, useFields } from '../../parts/Fields'
import { Plain } from '../../parts/Plain'
import { linesOf, linesOfOptions, optionsOf } from '../../parts/written'
import type { Reservation } from './words'

export function Reservations({ subnet }: { subnet: string }) {
  const [edited, edit] = useState<Partial<Reservation>>()
  const not = useMayNot('admin') // the host of an address may be in a pool
  return (
    <>
      <Add text="Reserve an address" variant="secondary" not={not} act={() => edit({})} />
      <Plain
        noun="reservations"
        query={{ subnet }}
        label="Reservations"
        isLong
        columns={[
          { key: 'address', name: 'Address', cell: (r) => r.address },
          { key: 'who', name: 'Machine', cell: (r) => r.mac ?? r.uuid ?? r.clientID ?? r.port ?? '', min: 14, grow: 2 },
          {
            key: 'by',
            name: 'Known by',
            cell: (r) => (r.mac ? 'MAC' : r.uuid ? 'UUID' : r.port ? 'switch port' : 'client id'),
          },
          { key: 'hostname', name: 'Host name', cell: (r) => r.hostname ?? '' },
        ]}
        keyOf={(r) => r.address}
        acts={(r) => [{ text: 'Edit', not, act: () => edit(r) }]}
        removal={(r) => ({
          title: `Delete the reservation of ${r.address}?`,
          cli: `slipway reservation delete ${shell(r.address)}`,
          not,
        })}
        nothing={
          <Nothing title="No address is reserved">
            A reservation gives one machine a permanent address, inside or outside of the ranges. Add one here, or from
            a lease.
          </Nothing>
        }
      />
      {edited && <ReservationForm subnet={subnet} given={edited} close={() => edit(undefined)} />}
    </>
  )
}

// ReservationForm keeps an address for a machine; with a version it changes one that is stored.
export function ReservationForm({
  subnet,
  given,
  close,
}: {
  subnet: string
  given: Partial<Reservation>
  close: () => void
}) {
  const [{ address, by, who, hostname, options }, of] = useFields({
    address: given.address ?? '',
    by: given.uuid ? 'uuid' : given.clientID ? 'clientID' : given.port ? 'port' : 'mac',
    who: given.mac ?? given.uuid ?? given.clientID ?? given.port ?? '',
    hostname: given.hostname ?? '',
    options: linesOfOptions(given.options),
  })
  const stored = given.version === undefined ? undefined : { name: address, version: given.version }
  const body = { subnet, address, [by]: who.trim(), ...(hostname && { hostname }), options: optionsOf(options) }
  return (
    <EditForm
      title={stored ? `Reservation of ${address}` : 'Reserve an address'}
      verb="Reserve"
      close={close}
      ready={address !== '' && who !== ''}
      call={saveOf('reservations', stored, body)}
      cli={`slipway reservation create ${shell(address || 'ADDRESS')}${flags({ [by === 'clientID' ? 'client-id' : by]: who.trim(), hostname, option: linesOf(options) })}`}
    >
      <TextField label="Address" {...of('address')} isRequired isDisabled={stored !== undefined} />
      <ChoiceField
        label="The machine is known by"
        {...of('by')}
        choices={[
          ['mac', 'its MAC'],
          ['uuid', 'its SMBIOS UUID'],
          ['clientID', 'its client id (option 61) in hex'],
          ['port', 'its switch port, as leases show it'],
        ]}
      />
      <TextField
        label={by === 'mac' ? 'MAC' : by === 'uuid' ? 'UUID' : by === 'port' ? 'Switch port' : 'Client id'}
        {...of('who')}
        field={by}
        isRequired
      />
      <TextField label="Host name" {...of('hostname')} />
      <OptionsField label="DHCP options" {...of('options')} />
    </EditForm>
  )
}
