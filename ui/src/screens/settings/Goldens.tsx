import {
  Button,
  Checkbox,
  Form,
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextArea,
  TextInput,
  Tooltip,
} from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useState } from 'react'
import { useSearchParams } from 'react-router'
import { type Call, useAct } from '../../api/act'
import type { Golden } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Ask, dryOf } from '../../parts/Ask'
import { bytesOf } from '../../parts/bytes'
import { Command } from '../../parts/Command'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { SelectorField } from '../../parts/SelectorField'
import './settings-catalogue.css'

const gib = 2 ** 30

// Goldens say which hardware hosts of a kind must have.
export function Goldens() {
  const goldens = useList('goldens')
  const [params, setParams] = useSearchParams()
  const [goes, setGoes] = useState<Golden>()
  const not = mayNot(useMe(), 'admin', '')
  const open = (name: string | undefined) => {
    const next = new URLSearchParams(params)
    if (name === undefined) next.delete('golden')
    else next.set('golden', name)
    setParams(next)
  }
  const chosen = params.get('golden')
  const add = (
    <Button isAriaDisabled={not !== undefined} onClick={() => not === undefined && open('')}>
      Describe a kind of host
    </Button>
  )
  return (
    <>
      <p>
        The hardware that every host of a kind must have. A part that an inspection does not find is an issue. With
        “strict” no machine can claim such a host.
      </p>
      <p className="settings-do">{not ? <Tooltip content={not}>{add}</Tooltip> : add}</p>
      <Loaded query={goldens}>
        {(all) => (
          <>
            {all.length === 0 ? (
              <Nothing title="Nothing is required yet">
                A disk that is missing or a DIMM that fell out then shows only to who looks for it.
              </Nothing>
            ) : (
              <Table aria-label="Golden hardware" variant="compact">
                <Thead>
                  <Tr>
                    <Th>Name</Th>
                    <Th>Hosts</Th>
                    <Th>Must have</Th>
                    <Th>Strict</Th>
                    <Th screenReaderText="Actions" />
                  </Tr>
                </Thead>
                <Tbody>
                  {all.map((g) => (
                    <Tr key={g.name}>
                      <Td dataLabel="Name">{g.name}</Td>
                      <Td dataLabel="Hosts">
                        <code>{g.selector}</code>
                      </Td>
                      <Td dataLabel="Must have">{musts(g)}</Td>
                      <Td dataLabel="Strict">{g.isStrict ? 'yes' : 'no'}</Td>
                      <Td dataLabel="Actions">
                        <div>
                          <Button
                            variant="link"
                            isInline
                            isDisabled={not !== undefined}
                            onClick={() => open(g.name)}
                            aria-label={`Change ${g.name}`}
                          >
                            Change
                          </Button>{' '}
                          <Button
                            variant="link"
                            isInline
                            isDisabled={not !== undefined}
                            onClick={() => setGoes(g)}
                            aria-label={`Delete ${g.name}`}
                          >
                            Delete
                          </Button>
                        </div>
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            )}
            {chosen !== null && !not && (
              <EditGolden key={chosen} {...pick(all, chosen)} close={() => open(undefined)} />
            )}
          </>
        )}
      </Loaded>
      {goes && (
        <Ask
          title={`Delete golden hardware ${goes.name}?`}
          verb="Delete"
          foresees={dryOf({
            method: 'DELETE',
            path: `/goldens/${encodeURIComponent(goes.name)}`,
            version: goes.version,
          })}
          call={{ method: 'DELETE', path: `/goldens/${encodeURIComponent(goes.name)}`, version: goes.version }}
          close={() => setGoes(undefined)}
        />
      )}
    </>
  )
}

function pick(all: Golden[], name: string): { golden?: Golden } {
  const golden = all.find((g) => g.name === name)
  return golden ? { golden } : {}
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

function EditGolden({ golden, close }: { golden?: Golden; close: () => void }) {
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
  const act = useAct(close)
  const body = bodyOf(old, f)
  const call: Call = old
    ? { method: 'PUT', path: `/goldens/${encodeURIComponent(f.name)}`, body, version: old.version }
    : { method: 'POST', path: '/goldens', body }
  const lacks = !body.name ? 'it has no name' : !body.selector ? 'it has no selector' : ''
  const count = (label: string, key: 'disks' | 'dimms' | 'ports' | 'memory' | 'threads') => (
    <FormGroup label={label} fieldId={`golden-${key}`}>
      <TextInput id={`golden-${key}`} type="number" min={0} value={f[key]} onChange={(_, v) => set({ [key]: v })} />
    </FormGroup>
  )
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="golden-title">
      <ModalHeader labelId="golden-title" title={old ? `Change ${old.name}` : 'Describe a kind of host'} />
      <ModalBody tabIndex={0}>
        <Form onSubmit={(e) => e.preventDefault()}>
          {!old && (
            <FormGroup label="Name" fieldId="golden-name" isRequired>
              <TextInput id="golden-name" value={f.name} onChange={(_, v) => set({ name: v })} autoComplete="off" />
            </FormGroup>
          )}
          <SelectorField
            id="golden-selector"
            value={f.selector}
            onChange={(selector) => set({ selector })}
            isRequired
          />
          {count('Disks, exactly', 'disks')}
          {count('DIMMs, exactly', 'dimms')}
          {count('Network ports, exactly', 'ports')}
          {count('Memory in GiB, at least', 'memory')}
          {count('CPU threads, at least', 'threads')}
          <FormGroup label="Firmware" fieldId="golden-firmware">
            <TextArea id="golden-firmware" value={f.firmware} rows={3} onChange={(_, v) => set({ firmware: v })} />
            <Help>What=version, one in a line: bios=2.1.0, bmc=5.10, disk:MODEL=…, port:DRIVER=…</Help>
          </FormGroup>
          <FormGroup label="Expression" fieldId="golden-expression">
            <TextInput
              id="golden-expression"
              value={f.expression}
              onChange={(_, v) => set({ expression: v })}
              spellCheck={false}
              autoComplete="off"
            />
            <Help>For what the fields above cannot say, in CEL (docs/machines.md).</Help>
          </FormGroup>
          <Checkbox
            id="golden-strict"
            label="Strict"
            description="A host that lacks something is not claimed."
            isChecked={f.isStrict}
            onChange={(_, v) => set({ isStrict: v })}
          />
        </Form>
        {act.error && <Failure error={act.error} />}
        <Command call={call} />
      </ModalBody>
      <ModalFooter>
        <Button isDisabled={lacks !== '' || act.isPending} isLoading={act.isPending} onClick={() => act.mutate(call)}>
          Save
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
        {lacks && <small>Not yet: {lacks}.</small>}
      </ModalFooter>
    </Modal>
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

function Help({ children }: { children: React.ReactNode }) {
  return (
    <FormHelperText>
      <HelperText>
        <HelperTextItem>{children}</HelperTextItem>
      </HelperText>
    </FormHelperText>
  )
}
