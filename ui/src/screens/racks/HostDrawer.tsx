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
import { ChoiceField, Refused, TextField, useFields } from '../../parts/Fields'
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
          <Link to={`/hosts/${host.name}`}>Its actions and its timeline</Link>
        </p>
        <PlaceForm host={host} racks={racks} hosts={hosts} />
      </DrawerPanelBody>
    </DrawerPanelContent>
  )
}

function PlaceForm({ host, racks, hosts }: Omit<Props, 'close'>) {
  const p = host.place
  const [{ site, row, rack, unit, height, face }, of] = useFields({
    site: p.site ?? '',
    row: p.row ?? '',
    rack: p.rack ?? '',
    unit: String(p.unit ?? 0),
    height: String(heightOf(host)),
    face: p.face ?? '',
  })
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
        <TextField label="Site" {...of('site')} />
        <TextField label="Row" {...of('row')} />
        <TextField label="Rack" {...of('rack')} list={[...new Set(racks.map((r) => r.name))]} />
        <TextField
          label="Lowest unit"
          type="number"
          {...of('unit')}
          help={
            told?.why
              ? `⚠ ${told.why}. Slipway stores it anyway, and shows a conflict.`
              : told?.shares
                ? `Shares its units with ${told.shares.join(', ')}.`
                : '0: unknown'
          }
        />
        <TextField label="Height in units" type="number" {...of('height')} />
        <ChoiceField
          label="Depth"
          {...of('face')}
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
