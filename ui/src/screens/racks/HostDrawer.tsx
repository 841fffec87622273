import {
  Button,
  DrawerActions,
  DrawerCloseButton,
  DrawerHead,
  DrawerPanelBody,
  DrawerPanelContent,
  Form,
  Title,
} from '@patternfly/react-core'
import { type FormEvent, useState } from 'react'
import { Link } from 'react-router'
import { type Call, useAct } from '../../api/act'
import { useMayNotOn } from '../../api/me'
import { Command } from '../../parts/Command'
import { flags, shell } from '../../parts/cli'
import { Facts } from '../../parts/Facts'
import { Failure } from '../../parts/Failure'
import { ChoiceField, Refused, TextField } from '../../parts/Fields'
import { State } from '../../parts/State'
import { When } from '../../parts/When'
import { drop, type Host, heightOf, idOf, type Rack, rackOf } from './layout'

interface Props {
  host: Host
  racks: Rack[]
  hosts: readonly Host[]
  close: () => void
}

// HostDrawer shows a host of the racks, and moves it by a form.
export function HostDrawer({ host, racks, hosts, close }: Props) {
  return (
    <DrawerPanelContent className="rack-off-paper" minSize="20rem">
      <DrawerHead>
        <Title headingLevel="h2">{host.name}</Title>
        <DrawerActions>
          <DrawerCloseButton onClick={close} aria-label="Close" />
        </DrawerActions>
      </DrawerHead>
      <DrawerPanelBody>
        <Facts
          rows={[
            ['State', <State key="s" state={host.state} />],
            ['Why', host.stateReason],
            ['Machine', host.machine && <Link to={`/machines/${host.machine}`}>{host.machine}</Link>],
            ['Model', [host.manufacturer, host.product].filter(Boolean).join(' ')],
            ['Serial', host.serial],
            ['MAC', host.macs?.[0]],
            ['Address', host.address],
            ['Power', host.power],
            ['Flags', (host.flags ?? []).join(', ')],
            ['Issues', (host.issues ?? []).join(', ')],
            ['Last seen', <When key="w" at={host.lastSeenAt} />],
          ]}
        />
        <p style={{ marginBlock: '1rem' }}>
          <Link to={`/hosts/${host.name}`}>What can be done with it, and its timeline</Link>
        </p>
        <PlaceForm host={host} racks={racks} hosts={hosts} />
      </DrawerPanelBody>
    </DrawerPanelContent>
  )
}

function PlaceForm({ host, racks, hosts }: Omit<Props, 'close'>) {
  const p = host.place
  const [site, setSite] = useState(p.site ?? '')
  const [row, setRow] = useState(p.row ?? '')
  const [rack, setRack] = useState(p.rack ?? '')
  const [unit, setUnit] = useState(String(p.unit ?? 0))
  const [height, setHeight] = useState(String(heightOf(host)))
  const [face, setFace] = useState<string>(p.face ?? '')
  const [seen, setSeen] = useState(host.version)
  const act = useAct<{ version: number }>((h) => setSeen(h.version))
  const not = useMayNotOn(host.name)('operator')
  // A height that nobody has said is 0, and stays so when nobody says another.
  const high = Number(height) === heightOf(host) ? (p.height ?? 0) : Number(height)
  const place = { site, row, rack, unit: Number(unit), height: high, face }
  const call: Call = { method: 'PATCH', path: `/hosts/${encodeURIComponent(host.id)}`, body: { place }, version: seen }
  const to = racks.find((r) => r.id === idOf(place, rack))
  const told =
    to && place.unit > 0
      ? drop(
          to,
          hosts.filter((h) => rackOf(h) === to.id),
          { ...host, place: { ...place } },
          place.unit,
        )
      : undefined
  const save = (e: FormEvent) => {
    e.preventDefault()
    if (!not) act.mutate(call)
  }
  return (
    <Refused error={act.error}>
      <Form onSubmit={save} aria-label="Place">
        <TextField label="Site" value={site} set={setSite} field="site" />
        <TextField label="Row" value={row} set={setRow} field="row" />
        <TextField label="Rack" value={rack} set={setRack} field="rack" list={[...new Set(racks.map((r) => r.name))]} />
        <TextField
          label="Lowest unit"
          type="number"
          value={unit}
          set={setUnit}
          field="unit"
          help={
            told?.why
              ? `⚠ ${told.why}. It is stored all the same, and shown as a conflict.`
              : told?.shares
                ? `Shares its units with ${told.shares.join(', ')}.`
                : '0 is not known'
          }
        />
        <TextField label="Height in units" type="number" value={height} set={setHeight} field="height" />
        <ChoiceField
          label="Depth"
          value={face}
          set={setFace}
          field="face"
          choices={[
            ['', 'the whole rack'],
            ['front', 'front only'],
            ['rear', 'rear only'],
          ]}
        />
        {act.error && <Failure error={act.error} again={() => setSeen(host.version)} />}
        <Button type="submit" isLoading={act.isPending} isAriaDisabled={!!not} title={not}>
          Place
        </Button>
      </Form>
      <Command cli={`slipway host place ${shell(host.name)}${flags({ ...place, face })}`} call={call} />
    </Refused>
  )
}
