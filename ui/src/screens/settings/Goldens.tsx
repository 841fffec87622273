import { Checkbox } from '@patternfly/react-core'
import { useState } from 'react'
import type { Call } from '../../api/act'
import type { Golden } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { bytesOf } from '../../parts/bytes'
import { Nothing } from '../../parts/Failure'
import { EditForm, LongField, TextField } from '../../parts/Fields'
import { Add, Plain, useChosen } from '../../parts/Plain'
import { SelectorField } from '../../parts/SelectorField'

const gib = 2 ** 30

// Goldens say which hardware hosts of a kind must have.
export function Goldens() {
  const goldens = useList('goldens').data
  const [chosen, open] = useChosen('golden')
  const not = mayNot(useMe(), 'admin', '')
  return (
    <>
      <p>
        The hardware that every host of a kind must have. A part that an inspection does not find is an issue. With
        “strict” no machine can claim such a host.
      </p>
      <Add text="Describe a kind of host" not={not} act={() => open('')} />
      <Plain
        noun="goldens"
        label="Golden hardware"
        columns={[
          { key: 'name', name: 'Name', cell: (g) => g.name },
          { key: 'hosts', name: 'Hosts', cell: (g) => <code>{g.selector}</code> },
          { key: 'musts', name: 'Must have', cell: musts },
          { key: 'strict', name: 'Strict', cell: (g) => (g.isStrict ? 'yes' : 'no') },
        ]}
        keyOf={(g) => g.name}
        acts={(g) => [{ text: 'Change', not, act: () => open(g.name) }]}
        removal={(g) => ({ title: `Delete golden hardware ${g.name}?`, not })}
        nothing={
          <Nothing title="Nothing is required yet">
            A disk that is missing or a DIMM that fell out then shows only to who looks for it.
          </Nothing>
        }
      />
      {goldens && chosen !== null && !not && (
        <EditGolden key={chosen} golden={goldens.find((g) => g.name === chosen)} close={() => open()} />
      )}
    </>
  )
}

// musts says in words what is required.
export function musts(g: Golden): string {
  const r = g.requirements ?? {}
  return (
    [
      g.diskN && `${g.diskN} disks`,
      g.dimmN && `${g.dimmN} DIMMs`,
      g.portN && `${g.portN} ports`,
      r.memoryBytes && `${bytesOf(r.memoryBytes)} memory`,
      r.cpuThreads && `${r.cpuThreads} threads`,
      r.accelerators && `${r.accelerators} accelerators`,
      r.expression && `that ${r.expression}`,
      ...Object.entries(g.firmware ?? {}).map(([k, v]) => `${k} ${v}`),
    ]
      .filter(Boolean)
      .join(', ') || 'nothing yet'
  )
}

function EditGolden({ golden, close }: { golden: Golden | undefined; close: () => void }) {
  const [old] = useState(golden) // as it was seen; a change meanwhile is refused, not overwritten
  const [f, setF] = useState(() => ({
    name: old?.name ?? '',
    selector: old?.selector ?? '',
    disks: number(old?.diskN),
    dimms: number(old?.dimmN),
    ports: number(old?.portN),
    memory: number((old?.requirements?.memoryBytes ?? 0) / gib),
    threads: number(old?.requirements?.cpuThreads),
    expression: old?.requirements?.expression ?? '',
    firmware: Object.entries(old?.firmware ?? {})
      .map(([k, v]) => `${k}=${v}`)
      .join('\n'),
    isStrict: old?.isStrict ?? false,
  }))
  const set = (more: Partial<typeof f>) => setF({ ...f, ...more })
  const body = bodyOf(old, f)
  const call: Call = old
    ? { method: 'PUT', path: `/goldens/${encodeURIComponent(f.name)}`, body, version: old.version }
    : { method: 'POST', path: '/goldens', body }
  const count = (label: string, key: 'disks' | 'dimms' | 'ports' | 'memory' | 'threads') => (
    <TextField label={label} type="number" min={0} value={f[key]} set={(v) => set({ [key]: v })} />
  )
  return (
    <EditForm
      title={old ? `Change ${old.name}` : 'Describe a kind of host'}
      verb="Save"
      call={call}
      lacks={!body.name ? 'it has no name' : !body.selector ? 'it has no selector' : ''}
      close={close}
    >
      {!old && <TextField label="Name" value={f.name} set={(name) => set({ name })} isRequired />}
      <SelectorField id="golden-selector" value={f.selector} onChange={(selector) => set({ selector })} isRequired />
      {count('Disks, exactly', 'disks')}
      {count('DIMMs, exactly', 'dimms')}
      {count('Network ports, exactly', 'ports')}
      {count('Memory in GiB, at least', 'memory')}
      {count('CPU threads, at least', 'threads')}
      <LongField
        label="Firmware"
        rows={3}
        value={f.firmware}
        set={(firmware) => set({ firmware })}
        help="What=version, one in a line: bios=2.1.0, bmc=5.10, disk:MODEL=…, port:DRIVER=…"
      />
      <TextField
        label="Expression"
        value={f.expression}
        set={(expression) => set({ expression })}
        help="For what the fields above cannot say, in CEL (docs/machines.md)."
      />
      <Checkbox
        id="golden-strict"
        label="Strict"
        description="A host that lacks something is not claimed."
        isChecked={f.isStrict}
        onChange={(_, v) => set({ isStrict: v })}
      />
    </EditForm>
  )
}

const number = (n: number | undefined) => (n ? String(n) : '')

interface Filled {
  name: string
  selector: string
  disks: string
  dimms: string
  ports: string
  memory: string
  threads: string
  expression: string
  firmware: string
  isStrict: boolean
}

// bodyOf keeps what the form does not show.
function bodyOf(old: Golden | undefined, f: Filled) {
  const { memoryBytes: _m, cpuThreads: _t, expression: _e, ...others } = old?.requirements ?? {}
  return {
    name: f.name.trim(),
    selector: f.selector.trim(),
    isStrict: f.isStrict,
    diskN: Number(f.disks) || 0,
    dimmN: Number(f.dimms) || 0,
    portN: Number(f.ports) || 0,
    requirements: {
      ...others,
      ...(Number(f.memory) > 0 && { memoryBytes: Math.round(Number(f.memory) * gib) }),
      ...(Number(f.threads) > 0 && { cpuThreads: Number(f.threads) }),
      ...(f.expression.trim() && { expression: f.expression.trim() }),
    },
    ...(f.firmware.trim() && {
      firmware: Object.fromEntries(
        f.firmware
          .split('\n')
          .map((l) => l.trim())
          .filter(Boolean)
          .map(
            (l) => [l.slice(0, l.indexOf('=')), l.slice(l.indexOf('=') + 1)].map((x) => x.trim()) as [string, string],
          ),
      ),
    }),
  }
}
