import { useState } from 'react'
import type { Pool } from '../../api/client'
import { flags, shell } from '../../parts/cli'
import { ChoiceField, EditForm, LongField, TextField } from '../../parts/Fields'

const whole = (text: string) => Math.max(0, Math.floor(Number(text)) || 0)
const gib = 2 ** 30

// PoolForm makes a pool, or changes one as it was seen.
export function PoolForm({ pool, close, done }: { pool?: Pool; close: () => void; done?: () => void }) {
  const [first] = useState(pool)
  const need = first?.requirements
  const [name, setName] = useState(first?.name ?? '')
  const [selector, setSelector] = useState(first?.selector ?? '')
  const [clean, setClean] = useState<string>(first?.clean ?? '')
  const [spare, setSpare] = useState(String(first?.minSpare ?? 0))
  const [provision, setProvision] = useState(String(first?.budget?.provision ?? 0))
  const [destroy, setDestroy] = useState(String(first?.budget?.destroy ?? 0))
  const [interval, setInterval] = useState<string>(first?.budget?.destroyInterval ?? '')
  const [burnIn, setBurnIn] = useState<string>(first?.burnInFor ?? '')
  const [threads, setThreads] = useState(String(need?.cpuThreads ?? 0))
  const [memory, setMemory] = useState(String((need?.memoryBytes ?? 0) / gib))
  const [expression, setExpression] = useState(need?.expression ?? '')
  const { hosts: _, ...kept } = first ?? ({} as Pool)
  const body = {
    ...kept,
    name,
    selector,
    clean: clean || undefined,
    minSpare: whole(spare),
    budget: {
      ...first?.budget,
      provision: whole(provision),
      destroy: whole(destroy),
      destroyInterval: interval || undefined,
    },
    burnInFor: burnIn || undefined,
    requirements: { ...need, cpuThreads: whole(threads), memoryBytes: whole(memory) * gib, expression },
  }
  const cli = `slipway pool ${first ? 'set' : 'create'} ${shell(name || 'NAME')}${flags({
    selector,
    clean,
    'min-spare': spare,
    'max-provision': provision,
    'max-destroy': destroy,
    'destroy-interval': interval,
    'burn-in': burnIn,
    require: [
      ...(whole(threads) ? [`cpu=${whole(threads)}`] : []),
      ...(whole(memory) ? [`memory=${whole(memory)}G`] : []),
      ...(expression ? [`expression=${expression}`] : []),
    ],
  })}`
  return (
    <EditForm
      title={first ? `Edit pool ${first.name}` : 'Create a pool'}
      verb={first ? 'Save' : 'Create'}
      ready={name !== ''}
      call={
        first
          ? { method: 'PUT', path: `/pools/${encodeURIComponent(first.name)}`, body, version: first.version }
          : { method: 'POST', path: '/pools', body }
      }
      cli={cli}
      close={close}
      done={() => done?.()}
    >
      <TextField
        label="Name"
        field="name"
        value={name}
        set={setName}
        isRequired
        isDisabled={!!first}
        help="default is the pool of machines that name none."
      />
      <TextField
        label="Hosts that match"
        field="selector"
        value={selector}
        set={setSelector}
        placeholder="rack=r1"
        help="A selector, all hosts when empty. A host may be in several pools."
      />
      <TextField
        label="Spare hosts"
        field="minSpare"
        type="number"
        value={spare}
        set={setSpare}
        help="So many stay unclaimed, to replace failed ones."
      />
      <TextField
        label="Installations at once"
        field="budget.provision"
        type="number"
        value={provision}
        set={setProvision}
        help="0 for any number"
      />
      <TextField
        label="Wipes at once"
        field="budget.destroy"
        type="number"
        value={destroy}
        set={setDestroy}
        help="0 for any number"
      />
      <TextField
        label="Between the starts of two wipes"
        field="budget.destroyInterval"
        value={interval}
        set={setInterval}
        placeholder="5m"
      />
      <ChoiceField
        label="Disks of hosts that are released"
        field="clean"
        value={clean}
        set={setClean}
        choices={[
          ['', 'quick wipe (default)'],
          ['none', 'leave them'],
          ['quick', 'quick wipe'],
          ['full', 'full wipe'],
          ['secure', 'secure erase'],
        ]}
      />
      <TextField
        label="Burn-in of new hosts"
        field="burnInFor"
        value={burnIn}
        set={setBurnIn}
        placeholder="2h"
        help="None when empty"
      />
      <TextField label="CPU threads at least" type="number" value={threads} set={setThreads} />
      <TextField label="Memory at least, GiB" type="number" value={memory} set={setMemory} />
      <LongField
        label="More that hosts must have"
        field="requirements.expression"
        value={expression}
        set={setExpression}
        rows={2}
        help='In CEL, such as host.cpu.threads > 16 && host.labels["zone"] == "a"'
      />
    </EditForm>
  )
}
