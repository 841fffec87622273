import { useState } from 'react'
import type { Target } from '../../api/client'
import { useList } from '../../api/queries'
import { flags, shell } from '../../parts/cli'
import { ChoiceField, EditForm, LongField, TextField } from '../../parts/Fields'

// TargetForm adds a join target, or changes one as it was seen.
export function TargetForm({ target, close }: { target?: Target; close: () => void }) {
  const [first] = useState(target)
  const secrets = useList('secrets')
  const [t, setT] = useState({
    name: first?.name ?? '',
    endpoint: first?.endpoint ?? '',
    kubernetes: first?.kubernetes ?? '',
    ca: first?.ca ?? '',
    kubeconfig: first?.kubeconfig ?? '',
    token: first?.token ?? '',
    pki: first?.pki ?? '',
    tokenFor: (first?.tokenFor ?? '') as string,
  })
  const set = (key: keyof typeof t) => (v: string) => setT({ ...t, [key]: v })
  const known = (secrets.data ?? []).map((s): [string, string] => [s.name, s.name])
  const choices = (is: string): [string, string][] => [
    ['', 'none'],
    ...(is && !known.some(([k]) => k === is) ? ([[is, is]] as [string, string][]) : []),
    ...known,
  ]
  const body = { ...first, ...t, tokenFor: t.tokenFor || undefined }
  return (
    <EditForm
      title={first ? `Edit target ${first.name}` : 'Add a join target'}
      verb={first ? 'Save' : 'Add'}
      ready={t.name !== '' && t.endpoint !== ''}
      call={
        first
          ? { method: 'PUT', path: `/targets/${encodeURIComponent(first.name)}`, body, version: first.version }
          : { method: 'POST', path: '/targets', body }
      }
      cli={`slipway target ${first ? 'set' : 'add'} ${shell(t.name || 'NAME')}${flags({
        endpoint: t.endpoint,
        kubernetes: t.kubernetes,
        ca: t.ca ? 'ca.crt' : '',
        kubeconfig: t.kubeconfig,
        token: t.token,
        pki: t.pki,
        'token-for': t.tokenFor,
      })}`}
      close={close}
    >
      <TextField label="Name" field="name" value={t.name} set={set('name')} isRequired isDisabled={!!first} />
      <TextField
        label="Endpoint"
        field="endpoint"
        value={t.endpoint}
        set={set('endpoint')}
        isRequired
        placeholder="10.0.0.9:6443"
        help="The API server as nodes reach it"
      />
      <TextField
        label="Kubernetes"
        field="kubernetes"
        value={t.kubernetes}
        set={set('kubernetes')}
        placeholder="1.35.0"
        help="The version that nodes get"
      />
      <LongField
        label="Certificate authority"
        field="ca"
        value={t.ca}
        set={set('ca')}
        rows={4}
        help="The text of /etc/kubernetes/pki/ca.crt"
      />
      <ChoiceField
        label="Kubeconfig of Slipway's account"
        field="kubeconfig"
        value={t.kubeconfig}
        set={set('kubeconfig')}
        choices={choices(t.kubeconfig)}
        help="A secret, under Settings. With it, a token is minted for each host."
      />
      <ChoiceField
        label="Or a token made elsewhere"
        field="token"
        value={t.token}
        set={set('token')}
        choices={choices(t.token)}
        isDisabled={t.kubeconfig !== ''}
      />
      <ChoiceField
        label="Certificate authorities for control planes"
        field="pki"
        value={t.pki}
        set={set('pki')}
        choices={choices(t.pki)}
      />
      <TextField
        label="How long a minted token lives"
        field="tokenFor"
        value={t.tokenFor}
        set={set('tokenFor')}
        placeholder="30m"
      />
    </EditForm>
  )
}
