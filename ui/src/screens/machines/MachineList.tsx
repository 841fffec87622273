import { Button, Content, SearchInput } from '@patternfly/react-core'
import { useState } from 'react'
import { Link, useNavigate } from 'react-router'
import type { Machine } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useHostNames } from '../../api/names'
import { useList } from '../../api/queries'
import { Act } from '../../parts/Act'
import { Command } from '../../parts/Command'
import { flags } from '../../parts/cli'
import { Loaded, Nothing } from '../../parts/Failure'
import { ChoiceFilter, Filters, useAddress } from '../../parts/Filters'
import { Rows } from '../../parts/Rows'
import { Screen } from '../../parts/Screen'
import { State } from '../../parts/State'
import { AdoptForm } from './AdoptForm'
import { CreateForm } from './CreateForm'

const phases = ['pending', 'provisioning', 'running', 'deleting', 'failed']
const page = 200

export function MachineList() {
  const [shown, setShown] = useState(page)
  const me = useMe()
  const go = useNavigate()
  const { get, set } = useAddress()
  const query = Object.fromEntries(['phase', 'pool', 'profile'].flatMap((k) => (get(k) ? [[k, get(k)]] : [])))
  const machines = useList('machines', query)
  const part = get('q').toLowerCase()
  const why = me && mayNot(me, 'operator')
  const doing = get('do')
  return (
    <Screen
      title="Machines"
      about="Machines: servers to install, each with its host."
      actions={
        <div>
          <Act text="Create a machine" variant="primary" not={why} act={() => set('do', 'create')} />{' '}
          <Act text="Adopt a server" variant="secondary" not={why} act={() => set('do', 'adopt')} />
        </div>
      }
    >
      <Filters>
        <SearchInput
          aria-label="Search machines"
          placeholder="part of a name"
          value={get('q')}
          onChange={(_, v) => set('q', v)}
          onClear={() => set('q', '')}
        />
        <ChoiceFilter
          label="Phase"
          value={get('phase')}
          set={(v) => set('phase', v)}
          choices={[['', 'every phase'], ...phases.map((p): [string, string] => [p, p])]}
        />
        {['pool', 'profile'].map(
          (k) =>
            get(k) && (
              <Button key={k} variant="tertiary" onClick={() => set(k, '')}>
                {k} {get(k)} ✕
              </Button>
            ),
        )}
      </Filters>
      <Loaded query={machines}>
        {(all) => {
          const found = all.filter((m) => m.name.toLowerCase().includes(part))
          if (found.length === 0) return <Empty isFiltered={all.length > 0 || Object.keys(query).length > 0} />
          return (
            <>
              <MachineTable machines={found.slice(0, shown)} />
              <p>
                {Math.min(shown, found.length)} of {found.length} machines{' '}
                {found.length > shown && (
                  <Button variant="link" isInline onClick={() => setShown(shown + page)}>
                    Show more
                  </Button>
                )}
              </p>
            </>
          )
        }}
      </Loaded>
      <Command cli={`slipway machine list${flags(query)}`} />
      {doing === 'create' && (
        <CreateForm
          close={() => set('do', '')}
          done={(names) => names.length === 1 && go(`/machines/${encodeURIComponent(names[0] ?? '')}`)}
        />
      )}
      {doing === 'adopt' && <AdoptForm close={() => set('do', '')} />}
    </Screen>
  )
}

function Empty({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Nothing title="No machine matches" />
  return (
    <Nothing title="No machine yet">
      <Content component="p">
        Slipway chooses an accepted host for a machine, installs it from a profile, and wipes it when the machine is
        deleted. A machine needs a <Link to="/profiles">profile</Link> that names an <Link to="/images">image</Link>.
      </Content>
      <code>slipway machine create web-1 --profile PROFILE</code>
    </Nothing>
  )
}

export function MachineTable({ machines }: { machines: Machine[] }) {
  const named = useHostNames(machines.map((m) => m.hostID))
  return (
    <Rows
      label="Machines"
      rows={machines}
      keyOf={(m) => m.uid}
      columns={[
        ['Name', (m) => <Link to={`/machines/${encodeURIComponent(m.name)}`}>{m.name}</Link>],
        ['Phase', (m) => <State state={m.phase} />],
        ['Profile', (m) => <Link to={`/profiles/${encodeURIComponent(m.profile ?? '')}`}>{m.profile}</Link>],
        ['Pool', (m) => <Link to={`/pools/${encodeURIComponent(m.pool || 'default')}`}>{m.pool || 'default'}</Link>],
        [
          'Host',
          (m) => m.hostID && <Link to={`/hosts/${encodeURIComponent(named(m.hostID))}`}>{named(m.hostID)}</Link>,
        ],
        [
          'Reason',
          (m) => (
            <>
              {m.reason} {m.hint && <small>{m.hint}</small>}
            </>
          ),
          { width: 30 },
        ],
      ]}
    />
  )
}
