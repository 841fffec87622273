import {
  Checkbox,
  Divider,
  Dropdown,
  DropdownGroup,
  DropdownItem,
  DropdownList,
  Form,
  MenuToggle,
} from '@patternfly/react-core'
import { useState } from 'react'
import { useNavigate } from 'react-router'
import type { Call } from '../../api/act'
import type { Host } from '../../api/client'
import { mayNot, useMayNotOn, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Ask } from '../../parts/Ask'
import { flags } from '../../parts/cli'
import { CheckField, ChoiceField, EditForm, TextField, useFields } from '../../parts/Fields'
import type { BulkRequest } from '../hosts/verbs'
import { useBMC } from './BMC'
import { EditHost } from './EditHost'
import { Foreseen, requestOf } from './Foreseen'
import { GoldenForm } from './GoldenForm'
import { Sticker } from './Sticker'
import { type Verb, verbs } from './verbs'

const groups: [Verb['about'], string][] = [
  ['life', 'Life'],
  ['power', 'Power'],
  ['flags', 'Flags'],
  ['more', 'More'],
]

export function Actions({ host }: { host: Host }) {
  const [isOpen, setOpen] = useState(false)
  const [asked, setAsked] = useState<Verb>()
  const go = useNavigate()
  const me = useMe()
  const bmc = useBMC(host.name)
  const all = verbs(host, bmc, useMayNotOn(host.name)('operator'), me && mayNot(me, 'admin', ''))
  const close = () => setAsked(undefined)
  return (
    <>
      <Dropdown
        isOpen={isOpen}
        onOpenChange={setOpen}
        onSelect={() => setOpen(false)}
        isScrollable
        maxMenuHeight="70vh"
        popperProps={{ position: 'right' }}
        toggle={(ref) => (
          <MenuToggle ref={ref} onClick={() => setOpen(!isOpen)} isExpanded={isOpen} variant="primary">
            Actions
          </MenuToggle>
        )}
      >
        {groups.map(([about, title], i) => (
          <div key={about}>
            {i > 0 && <Divider />}
            <DropdownGroup label={title} labelHeadingLevel="h2">
              <DropdownList>
                {all
                  .filter((v) => v.about === about)
                  .map((v) => (
                    <DropdownItem
                      key={v.key}
                      isAriaDisabled={v.not !== undefined}
                      description={v.not}
                      isDanger={v.typed ?? false}
                      onClick={() => v.not === undefined && setAsked(v)}
                    >
                      {v.title}
                    </DropdownItem>
                  ))}
              </DropdownList>
            </DropdownGroup>
          </div>
        ))}
      </Dropdown>
      {asked?.key === 'delete' && <Forget host={host} verb={asked} close={close} done={() => void go('/hosts')} />}
      {asked?.call && asked.key !== 'delete' && (
        <Ask
          title={`${asked.title}: ${host.name}?`}
          verb={asked.title}
          call={asked.call}
          {...(asked.cli && { cli: asked.cli })}
          {...(asked.warns && { warns: asked.warns })}
          {...(asked.typed && { typed: host.name })}
          close={close}
        >
          <Foreseen host={host.name} ask={requestOf(asked)} />
        </Ask>
      )}
      {asked?.key === 'install' && <Install host={host} close={close} />}
      {asked?.key === 'inspect' && <Inspect host={host} close={close} />}
      {asked?.key === 'clean' && <Clean host={host} close={close} />}
      {asked?.key === 'edit' && <EditHost host={host} close={close} />}
      {asked?.key === 'golden' && <GoldenForm host={host} close={close} />}
      {asked?.key === 'sticker' && <Sticker host={host.name} close={close} />}
    </>
  )
}

type CleanMode = NonNullable<BulkRequest['mode']>

interface Form1 {
  host: Host
  close: () => void
}

const post = (h: Host, verb: string, body: unknown): Call => ({
  method: 'POST',
  path: `/hosts/${encodeURIComponent(h.name)}/${verb}`,
  body,
})

function Install({ host, close }: Form1) {
  const [profile, setProfile] = useState('')
  const profiles = useList('profiles')
  return (
    <Ask
      title={`Install ${host.name}?`}
      verb="Install"
      warns="An installer overwrites its disks at the next boot. With a disk image, Slipway restarts the host at once and overwrites a disk."
      typed={host.name}
      call={post(host, 'install', profile ? { profile } : {})}
      cli={`slipway host install ${host.name}${flags({ profile })}`}
      close={close}
    >
      <Foreseen host={host.name} ask={{ verb: 'install', ...(profile && { profile }) }} />
      <Form onSubmit={(e) => e.preventDefault()}>
        <ChoiceField
          label="Profile"
          value={profile}
          set={setProfile}
          help="The profile stays pinned to the host. To let Slipway choose the host, create a machine under Machines."
          choices={[
            ['', `as now${host.profile ? ` (pinned: ${host.profile})` : ' (selectors choose it)'}`],
            ...(profiles.data ?? []).map((p): [string, string] => [p.name, `${p.name} (image ${p.image})`]),
          ]}
        />
      </Form>
    </Ask>
  )
}

function Forget({ host, verb, close, done }: Form1 & { verb: Verb; done: () => void }) {
  const [force, setForce] = useState(false)
  return (
    <Ask
      title={`Forget ${host.name}?`}
      verb="Forget"
      warns={verb.warns}
      typed={host.name}
      call={{ method: 'DELETE', path: `/hosts/${encodeURIComponent(host.name)}${force ? '?force=true' : ''}` }}
      cli={`slipway host delete ${host.name}${flags({ force })}`}
      close={close}
      done={done}
    >
      <Foreseen host={host.name} ask={{ verb: 'delete', ...(force && { force }) }} />
      <Checkbox
        id="forget-force"
        label="Also while an operation runs on it"
        description="Slipway cancels the operation first. Without this, Slipway refuses to forget the host."
        isChecked={force}
        onChange={(_, on) => setForce(on)}
      />
    </Ask>
  )
}

function Inspect({ host, close }: Form1) {
  const [mayWrite, setWrite] = useState(false)
  const [{ mayRestart, burnInFor: burnIn, bmcUser, bmcNetwork }, of] = useFields({
    mayRestart: false,
    burnInFor: '',
    bmcUser: '',
    bmcNetwork: '',
  })
  return (
    <EditForm
      title={`Inspect ${host.name}`}
      verb="Inspect"
      call={post(host, 'inspect', {
        ...(mayRestart && { mayRestart }),
        ...(burnIn && { burnInFor: burnIn }),
        ...(burnIn && mayWrite && { mayWrite }),
        ...(bmcUser && { bmcUser }),
        ...(bmcUser && bmcNetwork && { bmcNetwork }),
      })}
      cli={`slipway host inspect ${host.name}${flags({ restart: mayRestart, 'burn-in': burnIn, 'may-write': burnIn !== '' && mayWrite, 'bmc-user': bmcUser, 'bmc-network': bmcUser && bmcNetwork })}`}
      close={close}
    >
      <Foreseen
        host={host.name}
        ask={{ verb: 'inspect', inspect: { mayRestart, ...(/^\d+[smh]$/.test(burnIn) && { burnInFor: burnIn }) } }}
      />
      <p>
        Our agent boots on the host and reports its hardware. It changes nothing on the disks, unless you allow that
        below.
      </p>
      <CheckField
        label="Restart it if it runs"
        help="Without a restart, the agent inspects it at its next boot. A restart stops all programs on it."
        {...of('mayRestart')}
      />
      <TextField
        label="Burn it in for"
        {...of('burnInFor')}
        placeholder="10m"
        help="A load test of CPU, memory, disks and network. Empty: no burn-in."
      />
      <Checkbox
        id="inspect-write"
        label="The burn-in may overwrite its disks: all data on them is lost"
        isDisabled={burnIn === ''}
        {...(burnIn === '' && { description: 'only with a burn-in' })}
        isChecked={burnIn !== '' && mayWrite}
        onChange={(_, on) => setWrite(on)}
      />
      <TextField
        label="Account to make on its controller"
        {...of('bmcUser')}
        placeholder="slipway"
        help="The agent makes this account with a random password that nobody sees. From then on, Slipway switches the power with it. Empty: no account."
      />
      <TextField
        label="Address or network of that controller"
        {...of('bmcNetwork')}
        placeholder="10.1.0.0/16"
        help="Slipway accepts only a controller in this network. Empty: only the present controller of this host, or without one the address in the last inspection."
      />
    </EditForm>
  )
}

function Clean({ host, close }: Form1) {
  const [mode, setMode] = useState<CleanMode>('quick')
  return (
    <Ask
      title={`Wipe ${host.name}?`}
      verb="Wipe"
      warns={
        mode === 'none'
          ? 'It counts as clean, whatever is on its disks.'
          : 'All data on its disks is lost, except on the disks to keep.'
      }
      typed={host.name}
      call={post(host, 'clean', { mode })}
      cli={`slipway host clean ${host.name} --mode ${mode}`}
      close={close}
    >
      <Foreseen host={host.name} ask={{ verb: 'clean', mode }} />
      <Form onSubmit={(e) => e.preventDefault()}>
        <ChoiceField
          label="Mode"
          value={mode}
          set={setMode}
          choices={[
            ['quick', 'quick: the ends of disks and partitions, in seconds; most data stays readable'],
            ['full', 'full: every block, in hours'],
            ['secure', "secure: the disks' own erase"],
            ['none', 'none: only mark it as clean'],
          ]}
        />
      </Form>
    </Ask>
  )
}
