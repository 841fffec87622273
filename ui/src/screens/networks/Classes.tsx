import { useState } from 'react'
import { useMayNot } from '../../api/me'
import { flags, shell } from '../../parts/cli'
import { EditForm, LongField, TextField } from '../../parts/Fields'
import { Add, Plain } from '../../parts/Plain'
import { OptionsField } from './OptionsField'
import { type Class, flagsOfOptions, linesOfOptions, optionsOf, wordsOf } from './words'

const linesOf = (text: string) =>
  text
    .split('\n')
    .map((l) => l.trim())
    .filter(Boolean)

// Classes lists the classes of DHCP clients that get options of their own.
export function Classes() {
  const [edited, edit] = useState<Partial<Class>>()
  const not = useMayNot('admin', '')
  return (
    <section aria-label="Classes of clients" className="network-part">
      <h2>Classes of DHCP clients</h2>
      <p>A class matches clients by their packets, such as phones and switches, and gives them options of their own.</p>
      <Add text="Add a class" variant="secondary" not={not} act={() => edit({})} />
      <Plain
        noun="classes"
        label="Classes"
        columns={[
          { key: 'name', name: 'Name', cell: (c) => c.name },
          {
            key: 'clients',
            name: 'Clients',
            cell: (c) =>
              [
                ...(c.vendorClasses ?? []),
                ...(c.userClasses ?? []),
                ...(c.macPrefixes ?? []),
                ...(c.archs ?? []).map((a) => `architecture ${a}`),
              ].join(', '),
          },
          { key: 'options', name: 'Options', cell: (c) => (c.options ?? []).length + (c.options6 ?? []).length },
        ]}
        keyOf={(c) => c.name}
        of={(c) => `class ${c.name}`}
        acts={(c) => [{ text: 'Edit', not, act: () => edit(c) }]}
        removal={(c) => ({
          title: `Delete class ${c.name}?`,
          cli: `slipway class delete ${shell(c.name)}`,
          not,
        })}
        nothing={null}
      />
      {edited && <ClassForm given={edited} close={() => edit(undefined)} />}
    </section>
  )
}

function ClassForm({ given, close }: { given: Partial<Class>; close: () => void }) {
  const [name, setName] = useState(given.name ?? '')
  const [vendors, setVendors] = useState((given.vendorClasses ?? []).join('\n'))
  const [users, setUsers] = useState((given.userClasses ?? []).join('\n'))
  const [macs, setMACs] = useState((given.macPrefixes ?? []).join(' '))
  const [archs, setArchs] = useState((given.archs ?? []).join(' '))
  const [priority, setPriority] = useState(given.priority ? String(given.priority) : '')
  const [options, setOptions] = useState(linesOfOptions(given.options))
  const [options6, setOptions6] = useState(linesOfOptions(given.options6))
  const isStored = given.version !== undefined
  const body = {
    name,
    vendorClasses: linesOf(vendors),
    userClasses: linesOf(users),
    macPrefixes: wordsOf(macs),
    archs: wordsOf(archs).map(Number),
    ...(priority && { priority: Number(priority) }),
    options: optionsOf(options),
    options6: optionsOf(options6),
  }
  const words = flags({
    'vendor-class': linesOf(vendors),
    'user-class': linesOf(users),
    'mac-prefix': wordsOf(macs),
    arch: wordsOf(archs),
    priority,
    option: flagsOfOptions(options),
    option6: flagsOfOptions(options6),
  })
  return (
    <EditForm
      title={isStored ? `Class ${name}` : 'Add a class'}
      verb="Save"
      close={close}
      ready={name !== ''}
      call={
        isStored
          ? { method: 'PUT', path: `/classes/${name}`, body, version: given.version }
          : { method: 'POST', path: '/classes', body }
      }
      cli={`slipway class ${isStored ? 'update' : 'create'} ${shell(name || 'NAME')}${words}`}
    >
      {!isStored && <TextField label="Name" value={name} set={setName} field="name" isRequired />}
      <LongField
        label="Vendor classes"
        value={vendors}
        set={setVendors}
        field="vendorClasses"
        rows={2}
        help="Option 60, one in a line; * stands for any text, as in onie_vendor:*"
      />
      <LongField label="User classes" value={users} set={setUsers} field="userClasses" rows={2} help="Option 77" />
      <TextField label="Beginnings of MACs" value={macs} set={setMACs} field="macPrefixes" help="such as 00:04:f2" />
      <TextField label="Architectures" value={archs} set={setArchs} field="archs" help="Numbers of option 93" />
      <TextField label="Priority" type="number" value={priority} set={setPriority} field="priority" />
      <OptionsField value={options} set={setOptions} field="options" />
      <OptionsField label="IPv6 options" value={options6} set={setOptions6} field="options6" />
    </EditForm>
  )
}
