import { Checkbox } from '@patternfly/react-core'
import { useState } from 'react'
import type { Machine } from '../../api/client'
import { useList } from '../../api/queries'
import { ChoiceField, EditForm, LongField, TextField } from '../../parts/Fields'

// EditMachine changes what a machine should be at its next installation, and how its node is emptied.
export function EditMachine({ machine: m, close }: { machine: Machine; close: () => void }) {
  const [first] = useState(m) // as it was seen; a change meanwhile is refused, not overwritten
  const profiles = useList('profiles')
  const [profile, setProfile] = useState(m.profile ?? '')
  const [hostname, setHostname] = useState(m.hostname ?? '')
  const [clean, setClean] = useState<string>(m.clean ?? '')
  const [config, setConfig] = useState(m.config ?? '')
  const [timeout, setTimeout] = useState<string>(m.drain?.timeout ?? '')
  const [isSkipped, setSkipped] = useState(m.drain?.isSkipped ?? false)
  const names = (profiles.data ?? []).map((p) => p.name)
  const drain = { ...first.drain, isSkipped, ...(timeout ? { timeout } : { timeout: undefined }) }
  const body = {
    ...first,
    profile,
    ...(profile !== first.profile && { profileRevision: 0 }),
    hostname,
    clean: clean || undefined,
    config,
    ...(first.drain?.target && { drain }),
  }
  return (
    <EditForm
      title={`Edit ${m.name}`}
      verb="Save"
      call={{ method: 'PUT', path: `/machines/${encodeURIComponent(m.name)}`, body, version: first.version }}
      close={close}
    >
      <p>Profile, host name and configuration count from its next installation on. Nothing is installed by saving.</p>
      <ChoiceField
        label="Profile"
        field="profile"
        value={profile}
        set={setProfile}
        choices={[...new Set([profile, ...names])].map((n): [string, string] => [n, n])}
      />
      <TextField label="Host name of its system" field="hostname" value={hostname} set={setHostname} />
      <ChoiceField
        label="Disks when it goes"
        field="clean"
        value={clean}
        set={setClean}
        choices={[
          ['', 'as the pool says'],
          ['none', 'leave them'],
          ['quick', 'quick wipe'],
          ['full', 'full wipe'],
          ['secure', 'secure erase'],
        ]}
      />
      <LongField label="Configuration of its own" field="config" value={config} set={setConfig} rows={6} />
      {first.drain?.target && (
        <>
          <Checkbox
            id="skip-drain"
            label={`Do not empty its node in ${first.drain.target} before its host is fenced`}
            isChecked={isSkipped}
            onChange={(_, on) => setSkipped(on)}
          />
          <TextField
            label="Longest time for emptying it"
            field="drain.timeout"
            value={timeout}
            set={setTimeout}
            placeholder="10m"
          />
        </>
      )}
    </EditForm>
  )
}
