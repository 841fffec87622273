import { Button, Flex, FlexItem } from '@patternfly/react-core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { headers, problemOf } from '../../api/client'
import { useMayNot } from '../../api/me'
import { Ask, dryOf } from '../../parts/Ask'
import { flags, shell } from '../../parts/cli'
import { Failure } from '../../parts/Failure'
import { ChoiceField, EditForm, LongField, TextField } from '../../parts/Fields'
import { idOf, type Rack } from './layout'

// RackHead names a rack and says what can be done with it.
export function RackHead({ rack, hostN }: { rack: Rack; hostN: number }) {
  const [asked, ask] = useState<'edit' | 'delete'>()
  const not = useMayNot('operator', '') // hosts of several pools may stand in it
  const save = useMutation({ mutationFn: () => download(rack) })
  return (
    <>
      <h2 style={{ fontWeight: 700 }}>{rack.name}</h2>
      <small>
        {hostN} {hostN === 1 ? 'host' : 'hosts'}, {rack.height} units{rack.notes && `, ${rack.notes}`}
      </small>
      <Flex className="rack-off-paper" columnGap={{ default: 'columnGapSm' }}>
        <FlexItem>
          <Button
            variant="link"
            isInline
            isAriaDisabled={!!not}
            title={not}
            onClick={() => not || ask('edit')}
            aria-label={`Edit rack ${rack.name}`}
          >
            Edit
          </Button>
        </FlexItem>
        <FlexItem>
          <Button
            variant="link"
            isInline
            isLoading={save.isPending}
            onClick={() => save.mutate()}
            aria-label={`SVG drawing of rack ${rack.name}`}
          >
            SVG
          </Button>
        </FlexItem>
        {rack.version > 0 && (
          <FlexItem>
            <Button
              variant="link"
              isInline
              isAriaDisabled={!!not}
              title={not}
              onClick={() => not || ask('delete')}
              aria-label={`Forget rack ${rack.name}`}
            >
              Forget
            </Button>
          </FlexItem>
        )}
      </Flex>
      {save.error && <Failure error={save.error} />}
      {asked === 'edit' && <EditRack rack={rack} close={() => ask(undefined)} />}
      {asked === 'delete' && (
        <Ask
          title={`Delete the description of rack ${rack.name}?`}
          verb="Forget"
          foresees={dryOf({ method: 'DELETE', path: `/racks/${encodeURIComponent(rack.id)}`, version: rack.version })}
          call={{ method: 'DELETE', path: `/racks/${encodeURIComponent(rack.id)}`, version: rack.version }}
          cli={`slipway rack delete ${shell(rack.id)}`}
          close={() => ask(undefined)}
        />
      )}
    </>
  )
}

// download fetches the drawing as a file: a plain link would come without the token.
async function download(rack: Rack) {
  const r = await fetch(`/api/v1/racks/${encodeURIComponent(rack.id)}/elevation.svg`, { headers: headers() })
  if (!r.ok) throw await problemOf(r)
  const url = URL.createObjectURL(await r.blob())
  const a = document.createElement('a')
  a.href = url
  a.download = `rack-${rack.name.replaceAll(/[^\w.-]/g, '-')}.svg`
  a.click()
  URL.revokeObjectURL(url)
}

const cableText = (c: NonNullable<Rack['cables']>[number]) =>
  `${c.unit}${c.port ? `:${c.port}` : ''}=${c.switch}:${c.to}`

// cablesOf reads UNIT[:PORT]=SWITCH:PORT, one in a line; undefined when one is not understood.
export function cablesOf(text: string): { cables?: Rack['cables']; wrong?: string } {
  const cables: NonNullable<Rack['cables']> = []
  for (const line of text.split('\n').map((l) => l.trim())) {
    if (!line) continue
    const m = /^(\d+)(?::([^=]+))?=(.+):([^:]+)$/.exec(line)
    if (!m?.[3] || !m[4]) return { wrong: line }
    cables.push({ unit: Number(m[1]), ...(m[2] && { port: m[2] }), switch: m[3], to: m[4] })
  }
  return { cables }
}

// EditRack says how a rack is.
export function EditRack({ rack: now, close }: { rack?: Rack; close: () => void }) {
  const [rack] = useState(now) // as it was seen; a change meanwhile is refused, not overwritten
  const [name, setName] = useState(rack?.name ?? '')
  const [site, setSite] = useState(rack?.site ?? '')
  const [row, setRow] = useState(rack?.row ?? '')
  const [height, setHeight] = useState(String(rack?.height ?? 42))
  const [numbering, setNumbering] = useState<string>(rack?.numbering ?? 'bottom')
  const [notes, setNotes] = useState(rack?.notes ?? '')
  const [cables, setCables] = useState((rack?.cables ?? []).map(cableText).join('\n'))
  const read = cablesOf(cables)
  const id = rack?.id ?? idOf({ site, row }, name)
  return (
    <EditForm
      title={rack ? `Rack ${rack.name}` : 'Describe a rack'}
      verb="Save"
      close={close}
      ready={name !== '' && !read.wrong}
      call={{
        ...(rack ? { method: 'PUT', path: `/racks/${encodeURIComponent(id)}` } : { method: 'POST', path: '/racks' }),
        body: { site, row, name, height: Number(height), numbering, notes, cables: read.cables ?? [] },
        ...(rack && rack.version > 0 && { version: rack.version }),
      }}
      cli={`slipway rack set ${shell(id)}${flags({ height, numbering, notes, cable: cables.split('\n').filter(Boolean) })}`}
    >
      {!rack && (
        <>
          <TextField label="Name" value={name} set={setName} field="name" isRequired />
          <TextField label="Site" value={site} set={setSite} field="site" />
          <TextField label="Row" value={row} set={setRow} field="row" />
        </>
      )}
      <TextField label="Height in units" type="number" value={height} set={setHeight} field="height" help="1 to 100" />
      <ChoiceField
        label="Unit 1 is"
        value={numbering}
        set={setNumbering}
        field="numbering"
        choices={[
          ['bottom', 'at the bottom'],
          ['top', 'at the top'],
        ]}
      />
      <TextField label="Notes" value={notes} set={setNotes} field="notes" />
      <LongField
        label="Planned cables"
        value={cables}
        set={setCables}
        field="cables"
        rows={4}
        help={
          read.wrong
            ? `Not understood: ${read.wrong}`
            : 'One in a line, UNIT:PORT=SWITCH:PORT, such as 7:eno1=leaf-1:Ethernet7. Slipway compares LLDP with them.'
        }
      />
    </EditForm>
  )
}
