import { Alert, ExpandableSection } from '@patternfly/react-core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { send } from '../../api/act'
import { useList } from '../../api/queries'
import { ChoiceField, FormDialog, LongField, same, TextField } from '../../parts/Fields'
import { bodyOf, cleaning, cliOf, countMax, namesOf, nothingWanted, type Wanted } from './wanted'

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
  const save = async () => {
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
    <FormDialog
      title="Create machines"
      verb={names.length > 1 ? `Create ${left.length} machines` : 'Create'}
      save={save}
      isBusy={work.isBusy}
      error={work.error}
      ready={isReady}
      cli={names
        .map((n) => cliOf(w, n))
        .slice(0, 10)
        .join('\n')}
      call={{ method: 'POST', path: '/machines', body: bodyOf(w, names[0] ?? '') }}
      close={close}
    >
      <Fields w={w} change={(f) => setW({ ...w, ...f })} />
      {names.length > 1 && (
        <p>
          {names.length} machines: {names[0]} to {names.at(-1)}
        </p>
      )}
      {work.made.length > 0 && <Alert isInline variant="info" title={`Created so far: ${work.made.join(', ')}`} />}
      {work.error !== undefined && work.at && names.length > 1 && <p>Slipway refused {work.at}:</p>}
    </FormDialog>
  )
}

function Fields({ w, change }: { w: Wanted; change: (f: Partial<Wanted>) => void }) {
  const profiles = useList('profiles')
  const pools = useList('pools')
  const [isMore, setMore] = useState(false)
  const of = (key: keyof Wanted) => ({ field: key, value: w[key], set: (v: string) => change({ [key]: v }) })
  const poolNames = (pools.data ?? []).map((p) => p.name)
  return (
    <>
      <TextField
        label="Name"
        {...of('name')}
        isRequired
        help="Small letters, digits and dashes. With several machines, # stands for the number. Without #, the number is at the end."
      />
      <TextField label="How many" type="number" {...of('count')} help={`1 to ${countMax}`} />
      <ChoiceField
        label="Profile"
        {...of('profile')}
        isRequired
        choices={[['', 'choose a profile'], ...same((profiles.data ?? []).map((p) => p.name))]}
        help={
          profiles.data?.length === 0
            ? 'There is no profile yet: create one under Profiles first.'
            : 'The image and the configuration to install'
        }
      />
      <ChoiceField
        label="Pool"
        {...of('pool')}
        choices={[['', 'default'], ...same(poolNames.filter((p) => p !== 'default'))]}
        help="Slipway takes a host from this pool"
      />
      <ExpandableSection
        toggleText="Placement, parameters and more"
        isExpanded={isMore}
        onToggle={(_, on) => setMore(on)}
        isIndented
      >
        <TextField
          label="Exactly this host"
          {...of('host')}
          field="placement.host"
          help="Empty: Slipway chooses one."
        />
        <TextField
          label="Hosts that match"
          {...of('selector')}
          field="placement.selector"
          placeholder="rack=r1,product=~R6.*"
          help="A selector: all terms must match, with commas between them"
        />
        <TextField
          label="Failure domain"
          {...of('domain')}
          field="failureDomain"
          help="A site, row or rack. Write prefer: in front of it if it is a wish, not a condition"
        />
        <TextField label="Host name of its system" {...of('hostname')} help="Empty: the name of the machine" />
        <TextField
          label="Revision of the profile"
          type="number"
          {...of('revision')}
          field="profileRevision"
          help="The newest when empty"
        />
        <LongField label="Parameters" {...of('parameters')} rows={3} help="NAME=VALUE, one in a line" />
        <LongField
          label="Configuration of its own"
          {...of('config')}
          rows={4}
          help="A layer for this machine only, in YAML"
        />
        <LongField
          label="Hooks"
          {...of('hooks')}
          rows={2}
          help="STEP:OWNER, one in a line, such as pre-fence:storage. The step waits until the owner acknowledges it"
        />
        <ChoiceField label="Disks after the deletion" {...of('clean')} choices={cleaning} />
      </ExpandableSection>
    </>
  )
}
