import { useState } from 'react'
import { useList } from '../../api/queries'
import { flags, shell } from '../../parts/cli'
import { ChoiceField, EditForm, TextField } from '../../parts/Fields'

// AdoptForm makes a machine of a server that runs already.
export function AdoptForm({ close }: { close: () => void }) {
  const [name, setName] = useState('')
  const [host, setHost] = useState('')
  const [profile, setProfile] = useState('')
  const profiles = useList('profiles')
  return (
    <EditForm
      title="Adopt a server that runs"
      verb="Adopt"
      ready={name !== '' && host !== '' && profile !== ''}
      call={{ method: 'POST', path: '/machines/adopt', body: { name, host, profile } }}
      cli={`slipway machine adopt ${shell(name || 'NAME')}${flags({ host, profile })}`}
      close={close}
    >
      <p>Nothing is started on it, now or when the machine goes. Its host is adopted first, on the host's page.</p>
      <TextField label="Name of the machine" field="name" value={name} set={setName} isRequired />
      <TextField
        label="Host that it runs on"
        field="host"
        value={host}
        set={setHost}
        isRequired
        help="Its name, id or MAC"
      />
      <ChoiceField
        label="Profile that it would be made of"
        field="profile"
        value={profile}
        set={setProfile}
        isRequired
        choices={[['', 'choose a profile'], ...(profiles.data ?? []).map((p): [string, string] => [p.name, p.name])]}
      />
    </EditForm>
  )
}
