import { useState } from 'react'
import type { Machine } from '../../api/client'
import { useList } from '../../api/queries'
import { CheckField, ChoiceField, EditForm, LongField, same, TextField, useFields } from '../../parts/Fields'
import { cleaning } from './wanted'

// EditMachine changes what a machine should be at its next installation, and how its node is emptied.
export function EditMachine({ machine: m, close }: { machine: Machine; close: () => void }) {
  const [first] = useState(m) // as it was seen; a change meanwhile is refused, not overwritten
  const profiles = useList('profiles')
  const [{ profile, hostname, clean, config, isSkipped, timeout }, of] = useFields({
    profile: m.profile ?? '',
    hostname: m.hostname ?? '',
    clean: m.clean ?? '',
    config: m.config ?? '',
    isSkipped: m.drain?.isSkipped ?? false,
    timeout: m.drain?.timeout ?? '',
  })
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
      <p>Profile, host name and configuration apply from its next installation on. Saving installs nothing.</p>
      <ChoiceField label="Profile" {...of('profile')} choices={same([...new Set([profile, ...names])])} />
      <TextField label="Host name of its system" {...of('hostname')} />
      <ChoiceField label="Disks after the deletion" {...of('clean')} choices={cleaning} />
      <LongField label="Configuration of its own" {...of('config')} rows={6} />
      {first.drain?.target && (
        <>
          <CheckField
            label={`Do not empty its node in ${first.drain.target} before its host is fenced`}
            {...of('isSkipped')}
          />
          <TextField label="At most this long" {...of('timeout')} field="drain.timeout" placeholder="10m" />
        </>
      )}
    </EditForm>
  )
}
