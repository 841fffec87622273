import { nouns } from '../../api/nouns'
import type { FormField } from '../../parts/kinds'
import { NounForm } from '../../parts/NounForm'
import { NounList } from '../../parts/NounList'
import type { Reservation } from './words'

export function Reservations({ subnet }: { subnet: string }) {
  return (
    <NounList
      d={nouns.reservations}
      query={{ subnet }}
      isLong
      variant="secondary"
      form={(one, close) => <ReservationForm one={one} given={{ subnet }} close={close} />}
    />
  )
}

// marks are what a machine is known by. A reservation has one of them.
const marks: [name: 'mac' | 'uuid' | 'clientID' | 'port', label: string][] = [
  ['mac', 'its MAC'],
  ['uuid', 'its SMBIOS UUID'],
  ['clientID', 'its client id (option 61) in hex'],
  ['port', 'its switch port, as in the list of leases'],
]

interface Shown {
  one?: Reservation | undefined
  given: Partial<Reservation>
  close: () => void
}

// ReservationForm keeps an address for a machine, or changes a reservation.
export function ReservationForm({ one, given, close }: Shown) {
  const first = marks.find(([name]) => (one ?? given)[name])?.[0] ?? 'mac'
  const by: FormField = {
    name: 'by',
    label: 'Identify the machine by',
    kind: 'choice',
    choices: marks,
    first,
    isAside: true,
  }
  const fields = nouns.reservations.fields.flatMap((f): FormField[] => {
    if (!marks.some(([name]) => name === f.name)) return [f]
    const mark = { ...f, when: ({ by }: Record<string, string>) => by === f.name }
    return f.name === 'mac' ? [by, mark] : [mark]
  })
  return <NounForm d={{ ...nouns.reservations, fields }} one={one} given={given} close={close} />
}
