import { Alert, Button, FormSelect, FormSelectOption, Title } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useSearchParams } from 'react-router'
import { api, type Host, headers, must, Problem, problemOf, type Schemas } from '../../api/client'
import { bytesOf } from '../../parts/bytes'
import { Command } from '../../parts/Command'
import { Diff } from '../../parts/Diff'
import { Facts } from '../../parts/Facts'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { type Cells, Rows as Table } from '../../parts/Rows'
import { When } from '../../parts/When'

type Inspection = Schemas['Inspection']

export function useInspections(name: string) {
  return useQuery({
    queryKey: ['hosts', name, 'inspections'],
    queryFn: async () =>
      (
        await must(
          api.GET('/api/v1/hosts/{host}/inspections', { params: { path: { host: name }, query: { limit: 20 } } }),
        )
      ).items,
  })
}

// Hardware shows what a host is made of, what changed between two looks at it, and its acceptance sheet.
export function Hardware({ host: h }: { host: Host }) {
  const inspections = useInspections(h.name)
  const [params, setParams] = useSearchParams()
  const n = Number(params.get('n') ?? 0)
  return (
    <>
      <Known host={h} />
      <Loaded query={inspections}>
        {(all) => {
          const shown = all.find((i) => i.n === n) ?? all[0]
          if (!shown) {
            return (
              <Nothing title="No inspection yet">
                The machine itself reported the values above when it booted. Actions → Inspect lets our agent read
                everything.
              </Nothing>
            )
          }
          return (
            <>
              <div className="host-events-head">
                <Title headingLevel="h2">Inspection by our agent</Title>
                <FormSelect
                  aria-label="Inspection"
                  value={String(shown.n)}
                  onChange={(_, v) =>
                    setParams((p) => {
                      p.set('n', v)
                      return p
                    })
                  }
                >
                  {all.map((i) => (
                    <FormSelectOption
                      key={i.n}
                      value={String(i.n)}
                      label={`no. ${i.n}, ${new Date(i.at).toLocaleString()}`}
                    />
                  ))}
                </FormSelect>
              </div>
              <Found of={shown} />
              <Changes all={all} of={shown} />
              <Sheet name={h.name} />
            </>
          )
        }}
      </Loaded>
      <Command
        cli={`slipway host hardware ${h.name}`}
        call={{ method: 'GET', path: `/hosts/${encodeURIComponent(h.name)}/hardware` }}
      />
    </>
  )
}

function Known({ host: h }: { host: Host }) {
  return (
    <Facts
      rows={[
        ['Manufacturer', h.manufacturer],
        ['Product', h.product],
        ['Serial', h.serial],
        ['UUID', h.uuid],
        ['Asset tag', h.assetTag],
        ['Architecture', h.arch],
        ['Firmware', h.firmware],
        ['Memory', h.memoryMiB && bytesOf(h.memoryMiB * 1024 * 1024)],
        ['Labels', pairs(h.labels)],
        ['Reported facts', pairs(h.facts)],
        ['Identified', h.identifiedAt && <When key="at" at={h.identifiedAt} />],
      ]}
    />
  )
}

const pairs = (all: Record<string, string> | undefined) =>
  Object.entries(all ?? {})
    .map(([k, v]) => `${k}=${v}`)
    .join(', ')

// Rows is a table of what there are several of.
export function Rows({
  label,
  head,
  rows,
}: {
  label: string
  head: string[]
  rows: (string | number | undefined)[][]
}) {
  if (rows.length === 0) return null
  return (
    <>
      <Title headingLevel="h3">
        {label} ({rows.length})
      </Title>
      <Table
        label={label}
        rows={rows.slice(0, 500)}
        keyOf={(_, i) => i}
        columns={head.map((name, k): Cells<(string | number | undefined)[]> => [name, (r) => r[k] || '–'])}
      />
    </>
  )
}

function Found({ of: i }: { of: Inspection }) {
  const w = i.hardware
  return (
    <>
      {(i.faults ?? []).map((f) => (
        <Alert key={f} isInline variant="warning" title={f} component="h3" />
      ))}
      <Facts
        rows={[
          ['Machine', [w.system.manufacturer, w.system.product, w.system.version].filter(Boolean).join(' ')],
          ['Board', [w.system.boardProduct, w.system.boardSerial].filter(Boolean).join(' ')],
          ['Chassis', w.system.chassis],
          [
            'Firmware',
            [w.firmware.kind, w.firmware.vendor, w.firmware.version, w.firmware.releasedAt].filter(Boolean).join(' '),
          ],
          ['Secure Boot', w.firmware.isSecureBoot ? 'on' : 'off'],
          [
            'Processor',
            [
              w.cpu.model,
              w.cpu.sockets && `${w.cpu.sockets} sockets`,
              w.cpu.cores && `${w.cpu.cores} cores`,
              w.cpu.threads && `${w.cpu.threads} threads`,
            ]
              .filter(Boolean)
              .join(', '),
          ],
          ['Memory', w.memoryBytes > 0 && bytesOf(w.memoryBytes)],
          ['TPM', w.tpm && [w.tpm.version, w.tpm.vendor].filter(Boolean).join(' ')],
          ['Kernel of the agent', w.kernel],
          ['Compared with', i.golden && `golden ${i.golden}`],
        ]}
      />
      <Rows
        label="Memory modules"
        head={['Slot', 'Size', 'Type', 'Speed', 'Manufacturer', 'Part', 'Serial']}
        rows={(w.dimms ?? []).map((d) => [
          d.slot,
          bytesOf(d.sizeBytes),
          d.type,
          d.speedMTs && `${d.speedMTs} MT/s`,
          d.manufacturer,
          d.part,
          d.serial,
        ])}
      />
      <Rows
        label="Boot entries of the firmware"
        head={['Entry', 'Description', 'Path', 'Active']}
        rows={(w.firmware.bootOrder ?? []).map((e) => [
          e.id === w.firmware.bootCurrent ? `${e.id} (used)` : e.id,
          e.description,
          e.path,
          e.isActive ? 'yes' : 'no',
        ])}
      />
      <Rows
        label="Accelerators"
        head={['Address', 'Vendor', 'Model', 'Driver']}
        rows={(w.accelerators ?? []).map((d) => [d.address, d.vendor, d.model ?? d.id, d.driver])}
      />
      <Rows
        label="PCI devices"
        head={['Address', 'Vendor', 'Model', 'Driver']}
        rows={(w.pci ?? []).map((d) => [
          d.address,
          d.vendor,
          d.model ?? d.id,
          d.isMissingDriver ? 'none: missing' : d.driver,
        ])}
      />
    </>
  )
}

// Changes shows what the agent saw change, and on demand every line that differs from another look.
function Changes({ all, of }: { all: Inspection[]; of: Inspection }) {
  const [other, setOther] = useState('')
  const past = all.filter((i) => i.n !== of.n)
  const against = past.find((i) => String(i.n) === other)
  const text = (i: Inspection) => JSON.stringify({ ...i.hardware, collectedAt: undefined }, null, 2)
  return (
    <>
      <Title headingLevel="h2">What changed</Title>
      {(of.changes ?? []).length === 0 ? (
        <p>{of.n === 1 ? 'It is the first inspection.' : 'Nothing since the inspection before it.'}</p>
      ) : (
        <Rows
          label="Changes"
          head={['What', 'How', 'Before', 'After']}
          rows={(of.changes ?? []).map((c) => [c.what, c.kind, c.old, c.new])}
        />
      )}
      {past.length > 0 && (
        <>
          <FormSelect
            aria-label="Compare with inspection"
            value={other}
            onChange={(_, v) => setOther(v)}
            className="host-narrow"
          >
            <FormSelectOption value="" label="compare every line with …" />
            {past.map((i) => (
              <FormSelectOption
                key={i.n}
                value={String(i.n)}
                label={`no. ${i.n}, ${new Date(i.at).toLocaleString()}`}
              />
            ))}
          </FormSelect>
          {against && (
            <Diff before={text(against)} after={text(of)} label={`From inspection ${against.n} to ${of.n}`} />
          )}
        </>
      )}
    </>
  )
}

function Sheet({ name }: { name: string }) {
  const [error, setError] = useState<unknown>()
  const save = async () => {
    setError(undefined)
    try {
      const r = await fetch(`/api/v1/hosts/${encodeURIComponent(name)}/report.html`, { headers: headers() })
      if (!r.ok) throw await problemOf(r)
      const a = document.createElement('a')
      a.href = URL.createObjectURL(await r.blob())
      a.download = `${name}-acceptance.html`
      a.click()
      URL.revokeObjectURL(a.href)
    } catch (e) {
      setError(e instanceof Problem ? e : new Problem(0, 'No answer', 'The server does not answer.'))
    }
  }
  return (
    <>
      <Title headingLevel="h2">Acceptance sheet</Title>
      <p>Hardware, burn-ins, firmware and wipes on one page, to print and file.</p>
      <Button variant="secondary" onClick={() => void save()}>
        Download acceptance sheet
      </Button>
      {error !== undefined && <Failure error={error} />}
      <Command cli={`slipway host report ${name} --html ${name}.html`} />
    </>
  )
}
