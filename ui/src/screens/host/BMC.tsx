import { Alert, Button, Label, Title } from '@patternfly/react-core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { type Call, send } from '../../api/act'
import { api, ask, type Host, must, Problem, type Schemas } from '../../api/client'
import { useMayNotOn } from '../../api/me'
import { Ask, dryOf } from '../../parts/Ask'
import { Command } from '../../parts/Command'
import { Facts } from '../../parts/Facts'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
import { When } from '../../parts/When'
import { SetBMC, SetBoot, SetMedia, SetUser } from './BMCForms'
import type { Controller } from './verbs'

type Known = Schemas['HostBMC']

// useController asks how a host is powered; null when by hand, as nobody has said.
export function useController(name: string) {
  return useQuery({
    queryKey: ['hosts', name, '/bmc'],
    queryFn: async (): Promise<Known | null> => {
      try {
        return await must(api.GET('/api/v1/hosts/{host}/bmc', { params: { path: { host: name } } }))
      } catch (e) {
        if (e instanceof Problem && e.status === 404) return null
        throw e
      }
    },
  })
}

export function useBMC(name: string): Controller {
  const b = useController(name).data
  return b && { driver: b.driver, ...(b.capabilities && { capabilities: b.capabilities }) }
}

// webLink is where the controller's own pages are, if it has some.
export function webLink(b: Pick<Known, 'driver' | 'address'>): string | undefined {
  if (b.driver === 'redfish' && /^https?:\/\//.test(b.address ?? '')) return b.address
  if (b.driver === 'ipmi' && /^[0-9a-zA-Z.:[\]-]+$/.test(b.address ?? ''))
    return `https://${(b.address ?? '').replace(/:\d+$/, '')}`
  return undefined
}

export function Address({ of: b }: { of: Pick<Known, 'driver' | 'address'> }) {
  const link = webLink(b)
  if (!b.address) return null
  if (!link) return <span className="mono">{b.address}</span>
  return (
    <a href={link} target="_blank" rel="noreferrer noopener" className="mono">
      {b.address}
    </a>
  )
}

type Asked = 'set' | 'rotate' | 'reset' | 'delete' | 'boot' | 'media' | 'user' | 'clear'
const forAdmins: Asked[] = ['set', 'rotate', 'delete', 'user']

// BMC shows a host's controller, and what it can be asked and told.
export function BMC({ host }: { host: Host }) {
  const controller = useController(host.name)
  const [asked, setAsked] = useState<Asked>()
  const mayNot = useMayNotOn(host.name)
  const refused = mayNot('operator')
  const notAdmin = mayNot('admin') // who holds its password holds the machine
  const close = () => setAsked(undefined)
  const at = `/hosts/${encodeURIComponent(host.name)}/bmc`
  return (
    <Loaded query={controller}>
      {(b) => {
        const can = (what: string) => !b?.capabilities || b.capabilities.includes(what)
        const button = (what: Asked, words: string, needs?: string) => {
          const not =
            (forAdmins.includes(what) ? notAdmin : refused) ??
            (needs && !can(needs) ? `its controller (${b?.driver}) cannot` : undefined)
          return (
            <Button
              variant="secondary"
              size="sm"
              isAriaDisabled={not !== undefined}
              {...(not && { title: not })}
              onClick={() => setAsked(what)}
            >
              {words}
            </Button>
          )
        }
        return (
          <>
            {b === null ? (
              <Nothing title="It has no controller">
                You switch its power by hand, and confirm that here. If you add its controller, Slipway switches the
                power itself.
              </Nothing>
            ) : (
              <About of={b} />
            )}
            <p className="host-buttons">
              {button('set', b ? 'Change' : 'Name its controller')}
              {b && (
                <>
                  {button('rotate', 'New password', 'users')}
                  {button('reset', 'Restart the controller', 'reset')}
                  {button('boot', 'Boot override', 'boot')}
                  {button('media', 'Virtual drive', 'media')}
                  {button('user', 'Accounts', 'users')}
                  {button('delete', 'Forget')}
                </>
              )}
            </p>
            {b && (
              <>
                <Check name={host.name} />
                <Asking
                  title="Sensors"
                  path={`${at}/sensors`}
                  name={host.name}
                  not={can('sensors') ? undefined : 'its controller has none'}
                  cli={`slipway bmc sensors ${host.name}`}
                >
                  {(s: Schemas['BMCSensors']) => <Sensors of={s} />}
                </Asking>
                <Asking
                  title="Event log"
                  path={`${at}/log`}
                  name={host.name}
                  not={can('log') ? undefined : 'its controller keeps none'}
                  cli={`slipway bmc log ${host.name}`}
                >
                  {(l: { items: Schemas['LogEntry'][]; leftOut?: string[] }) => (
                    <>
                      <LeftOut of={l.leftOut} />
                      <Entries of={l.items} />
                      {button('clear', 'Clear the log', 'log')}
                    </>
                  )}
                </Asking>
                <Asking
                  title="Accounts"
                  path={`${at}/users`}
                  name={host.name}
                  not={can('users') ? undefined : 'its controller has none'}
                  cli={`slipway bmc users ${host.name}`}
                >
                  {(l: Schemas['ListBMCUser']) => <Accounts of={l.items} own={b.username} />}
                </Asking>
                <Asking
                  title="Boot override"
                  path={`${at}/boot`}
                  name={host.name}
                  not={can('boot') ? undefined : 'its controller cannot choose'}
                  cli={`slipway bmc boot ${host.name}`}
                >
                  {(o: Schemas['BMCBoot']) => (
                    <p>
                      {o.device === 'none'
                        ? 'None: it boots in its own order.'
                        : `${o.device}${o.mode ? ` as ${o.mode}` : ''}, ${o.isPersistent ? 'at every boot' : 'at its next boot'}${o.uri ? `: ${o.uri}` : ''}`}
                    </p>
                  )}
                </Asking>
                <Asking
                  title="Virtual drive"
                  path={`${at}/media`}
                  name={host.name}
                  not={can('media') ? undefined : 'its controller has none'}
                  cli={`slipway bmc media ${host.name}`}
                >
                  {(m: { url: string }) => <p>{m.url ? `It holds ${m.url}` : 'It is empty.'}</p>}
                </Asking>
              </>
            )}
            {asked === 'set' && <SetBMC host={host.name} of={b} close={close} />}
            {asked === 'boot' && <SetBoot host={host.name} close={close} />}
            {asked === 'media' && <SetMedia host={host.name} close={close} />}
            {asked === 'user' && <SetUser host={host.name} close={close} />}
            {asked === 'rotate' && (
              <Ask
                title={`New password for ${b?.username || 'the account'} of ${host.name}'s controller?`}
                verb="Set"
                call={{ method: 'POST', path: `${at}/rotate` }}
                cli={`slipway bmc rotate ${host.name}`}
                close={close}
              >
                The new password is random and sealed. Nobody sees it.
              </Ask>
            )}
            {asked === 'reset' && (
              <Ask
                title={`Restart the controller of ${host.name}?`}
                verb="Restart"
                call={{ method: 'POST', path: `${at}/reset` }}
                cli={`slipway bmc reset ${host.name}`}
                close={close}
              >
                The machine continues to run. Its controller does not answer for some minutes.
              </Ask>
            )}
            {asked === 'clear' && (
              <Ask
                title={`Clear the event log of ${host.name}'s controller?`}
                verb="Clear"
                warns="Its entries are lost."
                call={{ method: 'DELETE', path: `${at}/log` }}
                cli={`slipway bmc log ${host.name} --clear`}
                close={close}
              />
            )}
            {asked === 'delete' && (
              <Ask
                title={`Remove the controller of ${host.name}?`}
                verb="Forget"
                foresees={dryOf({ method: 'DELETE', path: at })}
                call={{ method: 'DELETE', path: at }}
                cli={`slipway host bmc ${host.name} --delete`}
                close={close}
              />
            )}
            <Command cli={`slipway host bmc ${host.name}`} call={{ method: 'GET', path: at }} />
          </>
        )
      }}
    </Loaded>
  )
}

function About({ of: b }: { of: Known }) {
  return (
    <>
      {!b.isReachable && b.reason && b.checkedAt && (
        <Alert isInline variant="warning" title="The controller does not answer" component="h2">
          <p>{b.reason}</p>
          {b.checkedAt && (
            <p>
              Asked <When at={b.checkedAt} />.
            </p>
          )}
        </Alert>
      )}
      <Facts
        rows={[
          ['Driver', b.driver],
          ['Address', b.address && <Address key="address" of={b} />],
          ['System', b.system],
          ['Account', b.username],
          [
            'Power',
            b.power && (
              <span key="power">
                {b.power} {b.powerAt && <When at={b.powerAt} />}
              </span>
            ),
          ],
          ['Controller', [b.vendor, b.model, b.firmware].filter(Boolean).join(' ')],
          [
            'Certificate',
            b.fingerprint ? (
              <span key="print" className="mono">
                {b.fingerprint}
              </span>
            ) : (
              b.insecureSkipVerify && 'any is accepted'
            ),
          ],
          ['It can', (b.capabilities ?? []).join(', ')],
          [
            'Options',
            Object.entries(b.options ?? {})
              .map(([k, v]) => `${k}=${v}`)
              .join(', '),
          ],
          [
            'Asked last',
            b.checkedAt && (
              <span key="asked">
                <When at={b.checkedAt} />: {b.isReachable ? 'it answered' : 'no answer'}
              </span>
            ),
          ],
          [
            'Checked last',
            b.lastCheck && (
              <span key="checked">
                <When at={b.lastCheck.at} /> by {b.lastCheck.by}, {b.lastCheck.isGood ? 'good' : 'not good'}:{' '}
                {b.lastCheck.detail}
              </span>
            ),
          ],
        ]}
      />
    </>
  )
}

function Check({ name }: { name: string }) {
  const call: Call = { method: 'POST', path: `/hosts/${encodeURIComponent(name)}/bmc/check` }
  const queries = useQueryClient()
  const check = useMutation({
    mutationFn: () => send<Schemas['BMCCheck']>(call),
    onSettled: () => queries.invalidateQueries({ queryKey: ['hosts', name] }),
  })
  return (
    <section aria-label="Check">
      <div className="host-events-head">
        <Title headingLevel="h2">Check</Title>
        <Button variant="secondary" size="sm" isLoading={check.isPending} onClick={() => check.mutate()}>
          Check it now
        </Button>
      </div>
      {check.error && <Failure error={check.error} />}
      {check.data?.results.map((r) => (
        <Alert
          key={r.name}
          isInline
          variant={r.isGood ? 'success' : 'danger'}
          title={`${r.name}: ${r.detail}`}
          component="h3"
        >
          {r.hint}
        </Alert>
      ))}
      <Command cli={`slipway bmc check ${name}`} call={call} />
    </section>
  )
}

// Asking asks the controller only when somebody wants to see it: some take a minute to answer.
function Asking<T>({
  title,
  path,
  name,
  cli,
  not,
  children,
}: {
  title: string
  path: string
  name: string
  cli: string
  not: string | undefined
  children: (t: T) => ReactNode
}) {
  const [isOn, setOn] = useState(false)
  const asked = useQuery({
    queryKey: ['bmc', name, path],
    queryFn: () => ask<T>('GET', path),
    enabled: isOn,
    retry: false,
    staleTime: 60_000,
  })
  return (
    <section aria-label={title}>
      <div className="host-events-head">
        <Title headingLevel="h2">{title}</Title>
        {not ? (
          <span>{not}</span>
        ) : (
          <Button
            variant="secondary"
            size="sm"
            isLoading={asked.isFetching}
            onClick={() => (isOn ? void asked.refetch() : setOn(true))}
            aria-label={isOn ? `Read again ${title}` : `Show ${title}`}
          >
            {isOn ? 'Read again' : 'Show'}
          </Button>
        )}
      </div>
      {isOn && (
        <>
          <Loaded query={asked}>{children}</Loaded>
          <Command cli={cli} call={{ method: 'GET', path }} />
        </>
      )}
    </section>
  )
}

const colours: Record<string, 'green' | 'orange' | 'red'> = { ok: 'green', warning: 'orange', critical: 'red' }

/** What an answer of a controller does not have in it. */
function LeftOut({ of }: { of: string[] | undefined }) {
  if (!of?.length) return null
  return (
    <ul aria-label="Left out">
      {of.map((text) => (
        <li key={text}>Left out: {text}</li>
      ))}
    </ul>
  )
}

function Sensors({ of }: { of: Schemas['BMCSensors'] }) {
  return (
    <>
      {of.health && <p>The controller says: {of.health}</p>}
      <LeftOut of={of.leftOut} />
      <Rows
        label="Sensors"
        rows={of.items}
        keyOf={(_, i) => i}
        columns={[
          ['Sensor', (s) => s.name],
          ['Kind', (s) => s.kind],
          ['Reading', (s) => `${s.value} ${s.unit}`],
          [
            'State',
            (s) => (
              <Label isCompact color={colours[s.status] ?? 'grey'}>
                {s.status || 'unknown'}
              </Label>
            ),
          ],
        ]}
      />
    </>
  )
}

function Entries({ of }: { of: Schemas['LogEntry'][] }) {
  if (of.length === 0) return <p>It is empty.</p>
  return (
    <ol className="timeline">
      {of.map((e) => (
        <li key={e.id}>
          <When at={e.at} />
          <span>{e.severity}</span>
          <span className="mono">{e.message}</span>
        </li>
      ))}
    </ol>
  )
}

function Accounts({ of, own }: { of: Schemas['BMCUser'][]; own: string | undefined }) {
  return (
    <Rows
      label="Accounts"
      rows={of}
      keyOf={(u) => u.id}
      columns={[
        [
          'Account',
          (u) => (
            <>
              {u.name}
              {u.name === own && ' (ours)'}
            </>
          ),
        ],
        ['Role', (u) => u.role],
        ['State', (u) => (u.enabled ? 'enabled' : 'disabled')],
      ]}
    />
  )
}
