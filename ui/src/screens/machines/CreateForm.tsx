import {
  Alert,
  Button,
  ExpandableSection,
  Form,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from '@patternfly/react-core'
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { send } from '../../api/act'
import { useList } from '../../api/queries'
import { Command } from '../../parts/Command'
import { Failure } from '../../parts/Failure'
import { ChoiceField, LongField, Refused, TextField } from '../../parts/Fields'
import { bodyOf, cliOf, countMax, namesOf, nothingWanted, type Wanted } from './wanted'

// CreateForm asks for one or several machines. Each is checked by the server before the first is made.
export function CreateForm({ close, done }: { close: () => void; done: (names: string[]) => void }) {
  const [w, setW] = useState<Wanted>(nothingWanted)
  const queries = useQueryClient()
  const [work, setWork] = useState<{ isBusy: boolean; made: string[]; error?: unknown; at?: string }>({
    isBusy: false,
    made: [],
  })
  const names = namesOf(w)
  const isReady = w.name.trim() !== '' && w.profile !== ''
  const left = names.filter((n) => !work.made.includes(n))
  const save = async (e: FormEvent) => {
    e.preventDefault()
    if (!isReady || work.isBusy) return
    const made = [...work.made]
    let at = ''
    setWork({ isBusy: true, made })
    try {
      for (at of left) await send({ method: 'POST', path: '/machines?dryRun=true', body: bodyOf(w, at) })
      for (at of left) {
        await send({ method: 'POST', path: '/machines', body: bodyOf(w, at) })
        made.push(at)
      }
      await queries.invalidateQueries()
      close()
      done(names)
    } catch (error) {
      await queries.invalidateQueries()
      setWork({ isBusy: false, made, error, at })
    }
  }
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="create-title">
      <ModalHeader title="Create machines" labelId="create-title" />
      <ModalBody>
        <Refused error={work.error}>
          <Form id="create-form" onSubmit={save}>
            <Fields w={w} change={(f) => setW({ ...w, ...f })} />
            {names.length > 1 && (
              <p>
                {names.length} machines: {names[0]} to {names.at(-1)}
              </p>
            )}
            {work.made.length > 0 && <Alert isInline variant="info" title={`Made so far: ${work.made.join(', ')}`} />}
            {work.error !== undefined && (
              <>
                {work.at && names.length > 1 && <p>{work.at} was refused:</p>}
                <Failure error={work.error} />
              </>
            )}
          </Form>
        </Refused>
        <Command
          cli={names
            .map((n) => cliOf(w, n))
            .slice(0, 10)
            .join('\n')}
          call={{ method: 'POST', path: '/machines', body: bodyOf(w, names[0] ?? '') }}
        />
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form="create-form" isLoading={work.isBusy} isDisabled={!isReady || work.isBusy}>
          {names.length > 1 ? `Create ${left.length} machines` : 'Create'}
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  )
}

function Fields({ w, change }: { w: Wanted; change: (f: Partial<Wanted>) => void }) {
  const profiles = useList('profiles')
  const pools = useList('pools')
  const [isMore, setMore] = useState(false)
  const set = (key: keyof Wanted) => (v: string) => change({ [key]: v })
  const poolNames = (pools.data ?? []).map((p) => p.name)
  return (
    <>
      <TextField
        label="Name"
        field="name"
        value={w.name}
        set={set('name')}
        isRequired
        help="Small letters, digits and dashes. With several machines, # is the number; at the end without it."
      />
      <TextField label="How many" type="number" value={w.count} set={set('count')} help={`1 to ${countMax}`} />
      <ChoiceField
        label="Profile"
        field="profile"
        value={w.profile}
        set={set('profile')}
        isRequired
        choices={[['', 'choose a profile'], ...(profiles.data ?? []).map((p): [string, string] => [p.name, p.name])]}
        help={profiles.data?.length === 0 ? 'There is none yet: make one under Profiles first.' : 'What is installed'}
      />
      <ChoiceField
        label="Pool"
        field="pool"
        value={w.pool}
        set={set('pool')}
        choices={[['', 'default'], ...poolNames.filter((p) => p !== 'default').map((p): [string, string] => [p, p])]}
        help="The hosts that one is taken from"
      />
      <ExpandableSection
        toggleText="Placement, parameters and more"
        isExpanded={isMore}
        onToggle={(_, on) => setMore(on)}
        isIndented
      >
        <TextField
          label="Exactly this host"
          field="placement.host"
          value={w.host}
          set={set('host')}
          help="Leave empty to have one chosen."
        />
        <TextField
          label="Hosts that match"
          field="placement.selector"
          value={w.selector}
          set={set('selector')}
          placeholder="rack=r1,product=~R6.*"
          help="A selector: terms with commas between, all of which must hold"
        />
        <TextField
          label="Failure domain"
          field="failureDomain"
          value={w.domain}
          set={set('domain')}
          help="A site, row or rack; with prefer: before it, if possible"
        />
        <TextField
          label="Host name of its system"
          field="hostname"
          value={w.hostname}
          set={set('hostname')}
          help="Its own name when empty"
        />
        <TextField
          label="Revision of the profile"
          field="profileRevision"
          type="number"
          value={w.revision}
          set={set('revision')}
          help="The newest when empty"
        />
        <LongField
          label="Parameters"
          field="parameters"
          value={w.parameters}
          set={set('parameters')}
          rows={3}
          help="NAME=VALUE, one a line"
        />
        <LongField
          label="Configuration of its own"
          field="config"
          value={w.config}
          set={set('config')}
          rows={4}
          help="The narrowest layer, in YAML as layers are"
        />
        <LongField
          label="Hooks"
          field="hooks"
          value={w.hooks}
          set={set('hooks')}
          rows={2}
          help="STEP:OWNER, one a line, such as pre-fence:storage: the step waits until its owner acknowledges it"
        />
        <ChoiceField
          label="Disks when it goes"
          field="clean"
          value={w.clean}
          set={set('clean')}
          choices={[
            ['', 'as the pool says'],
            ['none', 'leave them'],
            ['quick', 'quick wipe'],
            ['full', 'full wipe'],
            ['secure', 'secure erase'],
          ]}
        />
      </ExpandableSection>
    </>
  )
}
