import {
  Button,
  Content,
  FormSelect,
  FormSelectOption,
  SearchInput,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useState } from 'react'
import { Link, useNavigate, useSearchParams } from 'react-router'
import type { Machine } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useHostNames } from '../../api/names'
import { useList } from '../../api/queries'
import { Command } from '../../parts/Command'
import { flags } from '../../parts/cli'
import { Loaded, Nothing } from '../../parts/Failure'
import { Screen } from '../../parts/Screen'
import { State } from '../../parts/State'
import { AdoptForm } from './AdoptForm'
import { CreateForm } from './CreateForm'

const phases = ['pending', 'provisioning', 'running', 'deleting', 'failed']
const page = 200

export function MachineList() {
  const [params, setParams] = useSearchParams()
  const [shown, setShown] = useState(page)
  const me = useMe()
  const go = useNavigate()
  const get = (key: string) => params.get(key) ?? ''
  const set = (key: string, value: string) =>
    setParams(
      (p) => {
        if (value) p.set(key, value)
        else p.delete(key)
        return p
      },
      { replace: true },
    )
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
          <Button isAriaDisabled={why !== undefined} title={why ?? ''} onClick={() => !why && set('do', 'create')}>
            Create a machine
          </Button>{' '}
          <Button
            variant="secondary"
            isAriaDisabled={why !== undefined}
            title={why ?? ''}
            onClick={() => !why && set('do', 'adopt')}
          >
            Adopt a server
          </Button>
        </div>
      }
    >
      <Toolbar>
        <ToolbarContent>
          <ToolbarItem>
            <SearchInput
              aria-label="Search machines"
              placeholder="part of a name"
              value={get('q')}
              onChange={(_, v) => set('q', v)}
              onClear={() => set('q', '')}
            />
          </ToolbarItem>
          <ToolbarItem>
            <FormSelect aria-label="Phase" value={get('phase')} onChange={(_, v) => set('phase', v)}>
              <FormSelectOption value="" label="every phase" />
              {phases.map((p) => (
                <FormSelectOption key={p} value={p} label={p} />
              ))}
            </FormSelect>
          </ToolbarItem>
          {['pool', 'profile'].map(
            (k) =>
              get(k) && (
                <ToolbarItem key={k}>
                  <Button variant="tertiary" onClick={() => set(k, '')}>
                    {k} {get(k)} ✕
                  </Button>
                </ToolbarItem>
              ),
          )}
        </ToolbarContent>
      </Toolbar>
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
  if (isFiltered) return <Nothing title="No machine is like that" />
  return (
    <Nothing title="Nobody wants a machine yet">
      <Content component="p">
        A machine is a server that somebody wants: an accepted host is chosen for it, installed from its profile, and
        wiped when it goes. It needs a <Link to="/profiles">profile</Link> that names an <Link to="/images">image</Link>
        .
      </Content>
      <code>slipway machine create web-1 --profile PROFILE</code>
    </Nothing>
  )
}

export function MachineTable({ machines }: { machines: Machine[] }) {
  const named = useHostNames(machines.map((m) => m.hostID))
  return (
    <Table aria-label="Machines" variant="compact">
      <Thead>
        <Tr>
          <Th>Name</Th>
          <Th>Phase</Th>
          <Th>Profile</Th>
          <Th>Pool</Th>
          <Th>Host</Th>
          <Th width={30}>What it waits for</Th>
        </Tr>
      </Thead>
      <Tbody>
        {machines.map((m) => (
          <Tr key={m.uid}>
            <Td dataLabel="Name">
              <Link to={`/machines/${encodeURIComponent(m.name)}`}>{m.name}</Link>
            </Td>
            <Td dataLabel="Phase">
              <State state={m.phase} />
            </Td>
            <Td dataLabel="Profile">
              <Link to={`/profiles/${encodeURIComponent(m.profile ?? '')}`}>{m.profile}</Link>
            </Td>
            <Td dataLabel="Pool">
              <Link to={`/pools/${encodeURIComponent(m.pool || 'default')}`}>{m.pool || 'default'}</Link>
            </Td>
            <Td dataLabel="Host">
              {m.hostID && <Link to={`/hosts/${encodeURIComponent(named(m.hostID))}`}>{named(m.hostID)}</Link>}
            </Td>
            <Td dataLabel="What it waits for">
              {m.reason} {m.hint && <small>{m.hint}</small>}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  )
}
