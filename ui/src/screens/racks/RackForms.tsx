import { Button, Flex, FlexItem } from '@patternfly/react-core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { headers, problemOf } from '../../api/client'
import { useMayNot } from '../../api/me'
import { Act } from '../../parts/Act'
import { Ask, dryOf } from '../../parts/Ask'
import { flags, shell } from '../../parts/cli'
import { Failure } from '../../parts/Failure'
import { ChoiceField, EditForm, LongField, TextField, useFields } from '../../parts/Fields'
import { linesOf } from '../../parts/written'
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
          <Act text="Edit" of={`rack ${rack.name}`} not={not} act={() => ask('edit')} />
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
            <Act text="Delete" of={`rack ${rack.name}`} not={not} act={() => ask('delete')} />
          </FlexItem>
        )}
      </Flex>
      {save.error && <Failure error={save.error} />}
      {asked === 'edit' && <EditRack rack={rack} close={() => ask(undefined)} />}
      {asked === 'delete' && (
        <Ask
          title={`Delete the description of rack ${rack.name}?`}
          verb="Delete"
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
  for (const line of linesOf(text)) {
    const m = /^(\d+)(?::([^=]+))?=(.+):([^:]+)$/.exec(line)
    if (!m?.[3] || !m[4]) return { wrong: line }
    cables.push({ unit: Number(m[1]), ...(m[2] && { port: m[2] }), switch: m[3], to: m[4] })
  }
  return { cables }
}

// EditRack says how a rack is.
export function EditRack({ rack: now, close }: { rack?: Rack; close: () => void }) {
  const [rack] = useState(now) // as it was seen; a change meanwhile is refused, not overwritten
  const [{ name, site, row, height, numbering, notes, cables }, of] = useFields({
    name: rack?.name ?? '',
    site: rack?.site ?? '',
    row: rack?.row ?? '',
    height: String(rack?.height ?? 42),
    numbering: rack?.numbering ?? 'bottom',
    notes: rack?.notes ?? '',
    cables: (rack?.cables ?? []).map(cableText).join('\n'),
  })
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
      cli={`slipway rack set ${shell(id)}${flags({ height, numbering, notes, cable: linesOf(cables) })}`}
    >
      {!rack && (
        <>
          <TextField label="Name" {...of('name')} isRequired />
          <TextField label="Site" {...of('site')} />
          <TextField label="Row" {...of('row')} />
        </>
      )}
      <TextField label="Height in units" type="number" {...of('height')} help="1 to 100" />
      <ChoiceField
        label="Unit 1 is"
        {...of('numbering')}
        choices={[
          ['bottom', 'at the bottom'],
          ['top', 'at the top'],
        ]}
      />
      <TextField label="Notes" {...of('notes')} />
      <LongField
        label="Planned cables"
        {...of('cables')}
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
