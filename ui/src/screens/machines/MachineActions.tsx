import { Dropdown, DropdownItem, DropdownList, MenuToggle, Radio } from '@patternfly/react-core'
import { useState } from 'react'
import { useNavigate } from 'react-router'
import type { Call } from '../../api/act'
import type { Machine } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { Ask, dryOf } from '../../parts/Ask'
import { flags, shell } from '../../parts/cli'
import { CheckField, TextField } from '../../parts/Fields'
import { EditMachine } from './EditMachine'

type Verb = 'reinstall' | 'remediate' | 'retry' | 'edit' | 'delete'

// notNow says why a verb does nothing for a machine as it is; undefined when it does.
export function notNow(m: Pick<Machine, 'phase' | 'hostID' | 'deletedAt'>, verb: Verb): string | undefined {
  const isGoing = m.phase === 'deleting' || !!m.deletedAt
  if (isGoing) return verb === 'delete' ? undefined : 'it is being deleted'
  switch (verb) {
    case 'reinstall':
      return m.hostID ? undefined : 'it has no host yet'
    case 'remediate':
      return m.hostID ? undefined : 'it has no host yet'
    case 'retry':
      return m.phase === 'failed' || m.phase === 'pending' ? undefined : `it is ${m.phase}, not failed`
    default:
      return undefined
  }
}

const words: [Verb, string][] = [
  ['edit', 'Edit'],
  ['retry', 'Look for a host again'],
  ['remediate', 'Remediate'],
  ['reinstall', 'Reinstall'],
  ['delete', 'Delete'],
]

export function MachineActions({ machine: m }: { machine: Machine }) {
  const me = useMe()
  const [isOpen, setOpen] = useState(false)
  const [asked, setAsked] = useState<Verb>()
  const role = me && mayNot(me, 'operator', m.pool || 'default')
  const close = () => setAsked(undefined)
  return (
    <>
      <Dropdown
        isOpen={isOpen}
        onOpenChange={setOpen}
        onSelect={() => setOpen(false)}
        popperProps={{ position: 'right' }}
        toggle={(ref) => (
          <MenuToggle ref={ref} onClick={() => setOpen(!isOpen)} isExpanded={isOpen} variant="primary">
            Actions
          </MenuToggle>
        )}
      >
        <DropdownList>
          {words.map(([verb, word]) => {
            const why = role ?? notNow(m, verb)
            return (
              <DropdownItem
                key={verb}
                isAriaDisabled={why !== undefined}
                description={why}
                isDanger={verb === 'delete' || verb === 'reinstall'}
                onClick={() => why === undefined && setAsked(verb)}
              >
                {word}
              </DropdownItem>
            )
          })}
        </DropdownList>
      </Dropdown>
      {asked === 'edit' && <EditMachine machine={m} close={close} />}
      {asked === 'retry' && (
        <Ask
          title={`Look for a host for ${m.name} again?`}
          verb="Look again"
          call={{ method: 'POST', path: `/machines/${encodeURIComponent(m.name)}/retry` }}
          cli={`slipway machine retry ${m.name}`}
          close={close}
        />
      )}
      {asked === 'reinstall' && (
        <Ask
          title={`Reinstall ${m.name}?`}
          verb="Reinstall"
          foresees={foresightOf(m.name, 'reinstall')}
          typed={m.name}
          call={{ method: 'POST', path: `/machines/${encodeURIComponent(m.name)}/reinstall` }}
          cli={`slipway machine reinstall ${m.name}`}
          close={close}
        />
      )}
      {asked === 'remediate' && <Remediate machine={m} close={close} />}
      {asked === 'delete' && <Delete machine={m} close={close} />}
    </>
  )
}

// foresightOf asks what a verb without a dry run would do to a machine.
const foresightOf = (name: string, verb: string): Call => ({
  method: 'GET',
  path: `/machines/${encodeURIComponent(name)}/foresight?verb=${verb}`,
})

const rungs: [string, string][] = [
  ['power-cycle', 'switch it off and on'],
  ['reinstall', 'install it again, and overwrite its disk'],
  ['replace', 'wipe its host, and give it another one'],
]

function Remediate({ machine: m, close }: { machine: Machine; close: () => void }) {
  const [steps, setSteps] = useState<string[]>(['power-cycle'])
  const all = rungs.map(([s]) => s).filter((s) => steps.includes(s))
  const turn = (s: string, on: boolean) => setSteps(on ? [...steps, s] : steps.filter((x) => x !== s))
  return (
    <Ask
      title={`Remediate ${m.name}?`}
      verb="Remediate"
      foresees={foresightOf(m.name, all[0] ?? 'power-cycle')}
      call={{ method: 'POST', path: `/machines/${encodeURIComponent(m.name)}/remediate`, body: { steps: all } }}
      cli={`slipway machine remediate ${m.name}${flags({ step: all })}`}
      close={close}
    >
      <p>Slipway takes the chosen steps in this order. It takes a step only if the one before it has failed.</p>
      {rungs.map(([step, word]) => (
        <CheckField key={step} label={`${step}: ${word}`} value={steps.includes(step)} set={(on) => turn(step, on)} />
      ))}
      {all.length === 0 && (
        <p>If you choose no step, Slipway may take all three, and the data on the disks may be lost.</p>
      )}
    </Ask>
  )
}

function Delete({ machine: m, close }: { machine: Machine; close: () => void }) {
  const [isForced, setForced] = useState(false)
  const go = useNavigate()
  const call: Call = {
    method: 'DELETE',
    path: `/machines/${encodeURIComponent(m.name)}${isForced ? '?force=true' : ''}`,
    version: m.version,
  }
  return (
    <Ask
      title={`Delete ${m.name}?`}
      verb={isForced ? 'Delete by force' : 'Delete'}
      foresees={dryOf(call)}
      typed={m.name}
      call={call}
      cli={`slipway machine delete ${m.name}${flags({ force: isForced })}`}
      close={close}
      done={(left) => left === undefined && go('/machines')}
    >
      <Radio
        id="delete-clean"
        name="how"
        label="Fence and wipe its host"
        isChecked={!isForced}
        onChange={() => setForced(false)}
      />
      <Radio
        id="delete-force"
        name="how"
        label="By force: no fence and no wipe. Slipway quarantines the host, and the old system may still run."
        isChecked={isForced}
        onChange={() => setForced(true)}
      />
    </Ask>
  )
}

// HookOf is a hook of a machine, and how to be done with it.
interface HookOf {
  machine: string
  hook: { step: string; owner: string }
  close: () => void
}

// HoldHook says on the machine why a hook is not acknowledged yet.
export function HoldHook({ machine, hook, close }: HookOf) {
  const [reason, setReason] = useState('')
  return (
    <Ask
      title={`Reason why ${hook.step} of ${machine} waits`}
      verb="Save"
      call={{ method: 'POST', path: `/machines/${encodeURIComponent(machine)}/hold`, body: { ...hook, reason } }}
      cli={`slipway machine hold ${machine} ${hook.step} ${hook.owner} ${shell(reason)}`}
      close={close}
    >
      <p>
        The machine, its operation and its timeline show this text until the owner acknowledges the hook. An empty text
        removes it.
      </p>
      <TextField label="Why it is not acknowledged yet" value={reason} set={setReason} max={300} />
    </Ask>
  )
}

// AckHook lets the step go on that waits for an owner.
export function AckHook({ machine, hook, close }: HookOf) {
  return (
    <Ask
      title={`Acknowledge ${hook.step} of ${machine}?`}
      verb="Acknowledge"
      call={{ method: 'POST', path: `/machines/${encodeURIComponent(machine)}/ack`, body: hook }}
      cli={`slipway machine ack ${machine} ${hook.step} ${hook.owner}`}
      close={close}
    >
      <p>The step waits for {hook.owner}. It continues when all its hooks are acknowledged. You cannot undo this.</p>
    </Ask>
  )
}
