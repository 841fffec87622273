import { useList } from '../../api/queries'
import { flags, shell } from '../../parts/cli'
import { ChoiceField, EditForm, same, TextField, useFields } from '../../parts/Fields'

// AdoptForm makes a machine of a server that runs already.
export function AdoptForm({ close }: { close: () => void }) {
  const [{ name, host, profile }, of] = useFields({ name: '', host: '', profile: '' })
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
      <p>
        Slipway starts nothing on it, neither now nor when you delete the machine. First adopt its host, on the host's
        page.
      </p>
      <TextField label="Name of the machine" {...of('name')} isRequired />
      <TextField label="Host that it runs on" {...of('host')} isRequired help="Its name, id or MAC" />
      <ChoiceField
        label="Profile for its next installation"
        {...of('profile')}
        isRequired
        choices={[['', 'choose a profile'], ...same((profiles.data ?? []).map((p) => p.name))]}
      />
    </EditForm>
  )
}
