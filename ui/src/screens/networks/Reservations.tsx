import { useState } from 'react'
import { useMayNot } from '../../api/me'
import { flags, shell } from '../../parts/cli'
import { Nothing } from '../../parts/Failure'
import { ChoiceField, EditForm, TextField } from '../../parts/Fields'
import { Add, Plain } from '../../parts/Plain'
import { OptionsField } from './OptionsField'
import { flagsOfOptions, linesOfOptions, optionsOf, type Reservation } from './words'

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
            A reservation gives one machine one address permanently, inside or outside of the ranges. Make one here, or
            from a lease.
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
  const [address, setAddress] = useState(given.address ?? '')
  const [by, setBy] = useState(given.uuid ? 'uuid' : given.clientID ? 'clientID' : given.port ? 'port' : 'mac')
  const [who, setWho] = useState(given.mac ?? given.uuid ?? given.clientID ?? given.port ?? '')
  const [name, setName] = useState(given.hostname ?? '')
  const [options, setOptions] = useState(linesOfOptions(given.options))
  const isStored = given.version !== undefined
  const body = {
    subnet,
    address,
    [by]: who.trim(),
    ...(name && { hostname: name }),
    options: optionsOf(options),
  }
  return (
    <EditForm
      title={isStored ? `Reservation of ${address}` : 'Reserve an address'}
      verb="Reserve"
      close={close}
      ready={address !== '' && who !== ''}
      call={
        isStored
          ? { method: 'PUT', path: `/reservations/${encodeURIComponent(address)}`, body, version: given.version }
          : { method: 'POST', path: '/reservations', body }
      }
      cli={`slipway reservation create ${shell(address || 'ADDRESS')}${flags({ [by === 'clientID' ? 'client-id' : by]: who.trim(), hostname: name, option: flagsOfOptions(options) })}`}
    >
      <TextField label="Address" value={address} set={setAddress} field="address" isRequired isDisabled={isStored} />
      <ChoiceField
        label="The machine is known by"
        value={by}
        set={setBy}
        choices={[
          ['mac', 'its MAC'],
          ['uuid', 'its SMBIOS UUID'],
          ['clientID', 'its client id (option 61) in hex'],
          ['port', 'its switch port, as leases show it'],
        ]}
      />
      <TextField
        label={by === 'mac' ? 'MAC' : by === 'uuid' ? 'UUID' : by === 'port' ? 'Switch port' : 'Client id'}
        value={who}
        set={setWho}
        field={by}
        isRequired
      />
      <TextField label="Host name" value={name} set={setName} field="hostname" />
      <OptionsField value={options} set={setOptions} field="options" />
    </EditForm>
  )
}
