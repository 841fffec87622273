import { Alert, Button, Content, Form } from '@patternfly/react-core'
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { Link } from 'react-router'
import { send } from '../../api/act'
import { mayNot, useMe } from '../../api/me'
import { usePage } from '../../api/page'
import { useList } from '../../api/queries'
import { Act } from '../../parts/Act'
import { Checks, useChecks } from '../../parts/Checks'
import { Command } from '../../parts/Command'
import { flags, shell } from '../../parts/cli'
import { Failure, Loaded } from '../../parts/Failure'
import { EditForm, Refused, TextField, useFields } from '../../parts/Fields'
import { State } from '../../parts/State'
import { ImportForm } from '../images/ImportForm'
import { isEnded, useImports } from '../images/imports'

// ServerStep is the self-check: what commonly stops a boot server, and what to do about it.
export function ServerStep() {
  const checks = useChecks()
  return (
    <>
      <Loaded query={checks}>{(all) => <Checks checks={all} />}</Loaded>
      <Button variant="link" isInline isLoading={checks.isFetching} onClick={() => void checks.refetch()}>
        Check again
      </Button>
      <Command cli="slipway selfcheck" />
    </>
  )
}

// AccountStep makes the first user, who may do everything.
export function AccountStep() {
  const me = useMe()
  const queries = useQueryClient()
  const [{ name, password, again }, of] = useFields({ name: 'admin', password: '', again: '' })
  const [work, setWork] = useState<{ isBusy: boolean; isMade: boolean; error?: unknown }>({
    isBusy: false,
    isMade: false,
  })
  if (me && !me.needsSetup && !work.isMade)
    return (
      <Content component="p">
        You are {me.name}. <Link to="/settings?tab=users">Users</Link> and what they may do are under Settings.
      </Content>
    )
  if (work.isMade)
    return (
      <Alert
        isInline
        variant="success"
        title={`User ${name} exists now. Log in with this name and password from now on.`}
        component="h3"
      />
    )
  const user = { name, grants: [{ role: 'admin' }] }
  const isReady = name !== '' && password.length >= 10 && password === again
  const why = me && mayNot(me, 'admin', '')
  const make = async (e: FormEvent) => {
    e.preventDefault()
    if (!isReady || work.isBusy || why) return
    setWork({ isBusy: true, isMade: false })
    try {
      await send({ method: 'PUT', path: `/users/${encodeURIComponent(name)}`, body: user }) // again after a password that was refused
      await send({ method: 'PUT', path: `/users/${encodeURIComponent(name)}/password`, body: { password } })
      setWork({ isBusy: false, isMade: true })
      await queries.invalidateQueries()
    } catch (error) {
      setWork({ isBusy: false, isMade: false, error })
    }
  }
  return (
    <Refused error={work.error}>
      <Form onSubmit={make}>
        <Content component="p">
          So far there is only the token of the first start. It expires after a day. Create a user for yourself. You can
          add more users under Settings.
        </Content>
        <TextField label="Name" {...of('name')} isRequired />
        <TextField label="Password" type="password" {...of('password')} isRequired help="At least 10 characters" />
        <TextField
          label="Password again"
          type="password"
          {...of('again')}
          isRequired
          help={again !== '' && again !== password ? 'The two passwords differ.' : ''}
        />
        {work.error !== undefined && <Failure error={work.error} />}
        <div>
          <Button
            type="submit"
            isDisabled={!isReady || work.isBusy || why !== undefined}
            isLoading={work.isBusy}
            title={why ?? ''}
          >
            Create the first user
          </Button>
        </div>
      </Form>
      <Command
        cli={`slipway user create ${shell(name || 'NAME')} --role admin`}
        call={{ method: 'PUT', path: `/users/${name}`, body: user }}
      />
    </Refused>
  )
}

// ImageStep gets something that machines can boot.
export function ImageStep() {
  const images = useList('images')
  const imports = useImports()
  const me = useMe()
  const why = me && mayNot(me, 'operator', '')
  const [isAsked, setAsked] = useState(false)
  const running = (imports.data ?? []).filter((j) => !isEnded(j))
  return (
    <>
      <Content component="p">
        An image is an operating system. Machines boot it, or Slipway installs it on them. A profile names the image and
        its configuration. An accepted host without a profile waits, with the reason on its screen.
      </Content>
      <Loaded query={images}>
        {(all) => (
          <p>
            {all.length === 0
              ? 'There is none yet. '
              : `${all.length === 1 ? 'There is one image' : `There are ${all.length} images`}: ${all
                  .slice(0, 8)
                  .map((i) => i.name)
                  .join(', ')}. `}
            <Link to="/images">All images</Link>, <Link to="/profiles">profiles</Link>
          </p>
        )}
      </Loaded>
      {running.map((j) => (
        <p key={j.id}>
          Slipway imports {j.image}: <Link to="/images">progress</Link>
        </p>
      ))}
      <Act text="Import an image" variant="primary" not={why} act={() => setAsked(true)} />
      {isAsked && <ImportForm close={() => setAsked(false)} />}
      <Command cli="slipway image import debian-12 --os debian --release 12" />
    </>
  )
}

// AcceptStep says which machines Slipway may do something with.
export function AcceptStep() {
  const rules = useList('acceptrules')
  const me = useMe()
  const why = me && mayNot(me, 'admin', '')
  const [isAsked, setAsked] = useState(false)
  return (
    <>
      <Content component="p">
        Slipway lists every machine that sends a packet, and runs at most a boot loader on it. You accept a machine by
        hand under <Link to="/hosts?q=state=discovered">Hosts</Link>, or by a rule. Slipway never writes to an
        unaccepted machine.
      </Content>
      <Loaded query={rules}>
        {(all) => (
          <p>
            {all.length === 0
              ? 'There is no rule: every machine waits until a person accepts it. '
              : all.length === 1
                ? 'There is one rule. '
                : `There are ${all.length} rules. `}
            <Link to="/settings?tab=acceptrules">Accept rules</Link>
          </p>
        )}
      </Loaded>
      <Act text="Add a rule" variant="primary" not={why} act={() => setAsked(true)} />
      {isAsked && <RuleForm close={() => setAsked(false)} />}
      <Command cli="slipway host accept NAME" />
    </>
  )
}

function RuleForm({ close }: { close: () => void }) {
  const [{ name, selector }, of] = useFields({ name: '', selector: '' })
  return (
    <EditForm
      title="Accept machines by a rule"
      verb="Add"
      ready={name !== '' && selector !== ''}
      call={{ method: 'POST', path: '/acceptrules', body: { name, selector } }}
      cli={`slipway acceptrule create ${shell(name || 'NAME')}${flags({ selector })}`}
      close={close}
    >
      <Alert
        isInline
        variant="warning"
        title="If a machine matches, Slipway accepts it the next time that it asks for its boot. From then on, Slipway may install and wipe it."
        component="h3"
      />
      <TextField label="Name" {...of('name')} isRequired />
      <TextField
        label="Machines that match"
        {...of('selector')}
        isRequired
        placeholder="manufacturer=ACME,rack=r1"
        help="A selector; mac accepts every machine that sends a packet"
      />
    </EditForm>
  )
}

// MachinesStep is where the first machines show themselves, real or simulated.
export function MachinesStep() {
  const hosts = usePage('hosts', {}, 20)
  return (
    <>
      <Content component="p">
        Switch a machine on with network boot first in its boot order. It appears here as soon as it asks for an
        address.
      </Content>
      <Loaded query={hosts}>
        {({ items }) =>
          items.length === 0 ? (
            <Content component="p" aria-live="polite">
              No machine has sent a packet yet.
            </Content>
          ) : (
            <ul className="members" aria-live="polite">
              {items.map((h) => (
                <li key={h.id}>
                  <Link to={`/hosts/${encodeURIComponent(h.name)}`}>{h.name}</Link> <State state={h.state} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      <h3 className="pf-v6-c-title pf-m-lg">Without machines</h3>
      <Content component="p">
        You can try Slipway with simulated machines. They boot, and Slipway inspects, installs and wipes them like real
        ones. This server cannot start them, because they never share a network with real machines. This command starts
        another server with a simulated rack, in network namespaces of its own. It removes everything at the end:
      </Content>
      <Command cli="sudo slipway try --hosts 12" />
    </>
  )
}
