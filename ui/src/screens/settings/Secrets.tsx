import { FormGroup, TextArea } from '@patternfly/react-core'
import { useQueries } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'react-router'
import type { Call } from '../../api/act'
import { api, must, type Schemas } from '../../api/client'
import { nouns } from '../../api/nouns'
import { useList } from '../../api/queries'
import { flags } from '../../parts/cli'
import { EditForm, TextField, useFields } from '../../parts/Fields'
import { NounList } from '../../parts/NounList'
import { wordsOf } from '../../parts/written'
import { consumersOf, consumersText } from './consumers'
import './settings-catalogue.css'

const most = 1 << 20

// useUses asks what each secret is used by; undefined until the server has said it.
function useUses(names: string[]): (name: string) => string[] | undefined {
  const uses = useQueries({
    queries: names.map((name) => ({
      queryKey: ['secrets', name, '/uses'],
      queryFn: () => must(api.GET('/api/v1/secrets/{name}/uses', { params: { path: { name } } })),
    })),
  })
  return (name) => uses[names.indexOf(name)]?.data?.usedBy
}

// Secrets lists what is kept sealed: names and ages, never values.
export function Secrets() {
  const names = (useList('secrets').data ?? []).map((s) => s.name)
  const usersOf = useUses(names)
  return (
    <NounList
      d={nouns.secrets}
      columns={{
        About: {
          cell: (s) => (
            <>
              {s.about} {s.owner && <small>kept for {s.owner}</small>}
            </>
          ),
        },
        For: { cell: (s) => consumersText(s.consumers) || <small>configurations that an admin saved</small> },
        'Used by': { cell: (s) => <UsedBy users={usersOf(s.name)} /> },
      }}
      notGone={({ name }) => {
        const users = usersOf(name) ?? []
        return users.length > 0 ? `used by ${users.join(', ')}: change that first` : undefined
      }}
      form={(s, close) => <SetSecret name={s?.name ?? ''} consumers={s?.consumers} known={names} close={close} />}
    />
  )
}

function UsedBy({ users }: { users: string[] | undefined }) {
  if (!users?.length) return users && 'nothing'
  return (
    <>
      {users.slice(0, 5).map((u) => (
        <User key={u} of={u} />
      ))}
      {users.length > 5 && ` and ${users.length - 5} more`}
    </>
  )
}

function User({ of }: { of: string }) {
  const at = of.indexOf(' ')
  const noun = of.slice(0, at)
  const name = of.slice(at + 1)
  const to =
    noun === 'profile'
      ? `/profiles/${name}`
      : noun === 'layer'
        ? `/profiles?tab=layers&layer=${encodeURIComponent(name)}`
        : noun === 'machine'
          ? `/machines/${encodeURIComponent(name)}`
          : '/clusters'
  return (
    <div>
      {noun} <Link to={to}>{name}</Link>
    </div>
  )
}

// SetSecret takes a value and forgets it: it is in no address, no storage of the browser, and no command that is shown.
function SetSecret({
  name: old,
  consumers,
  known,
  close,
}: {
  name: string
  consumers: Schemas['Consumers'] | undefined
  known: string[]
  close: () => void
}) {
  const before = consumersText(consumers)
  const [value, setValue] = useState('')
  const [form, of] = useFields({ name: old, about: '', forWhom: before })
  const wanted = consumersOf(form.forWhom)
  const { name, about, forWhom } = form
  const [refused, setRefused] = useState('')
  const call = (v: string): Call => ({
    method: 'PUT',
    path: `/secrets/${encodeURIComponent(name.trim())}`,
    body: {
      ...(v && { value: v }),
      ...(about && { about }),
      ...(forWhom.trim() !== before && { consumers: wanted }),
    },
  })
  const load = async (file: File | undefined) => {
    if (!file) return
    const text = file.size <= most ? await file.text() : undefined
    const isText = text !== undefined && !text.includes('\u0000') && !text.includes('\uFFFD')
    setRefused(
      text === undefined
        ? `${file.name} is larger than 1 MiB`
        : isText
          ? ''
          : `${file.name} is not text: encode it first, in the form that the machine expects (base64, hex, PEM)`,
    )
    // Of a value of one line, the line end is not part.
    if (isText) setValue(/^[^\n]*\r?\n$/.test(text) ? text.trimEnd() : text)
  }
  const lacks = !name.trim()
    ? 'it has no name'
    : !old && known.includes(name.trim())
      ? 'there is a secret of that name: change it in its row'
      : !old && !value
        ? 'it has no value'
        : wanted === undefined
          ? 'write pool:NAME, profile:NAME or target:NAME'
          : old && !value && !about && forWhom.trim() === before
            ? 'nothing is changed'
            : ''
  return (
    <EditForm
      title={old ? `Change secret ${old}` : 'Store a secret'}
      verb={old ? 'Change' : 'Store'}
      isSmall
      call={call(value)}
      shown={call(value && '…').body}
      cli={
        old && !value
          ? `slipway secret for ${old} ${forWhom.trim() || '--admins'}`
          : `slipway secret set ${name.trim() || 'NAME'} --file FILE${flags({ for: wordsOf(forWhom) })}`
      }
      lacks={lacks}
      close={close}
    >
      {!old && <TextField label="Name" {...of('name')} isRequired />}
      <FormGroup label={old ? 'New value' : 'Value'} fieldId="secret-value" isRequired={!old}>
        <TextArea
          id="secret-value"
          className="secret-value"
          value={value}
          rows={4}
          placeholder={old ? 'stays as it is' : ''}
          spellCheck={false}
          autoComplete="off"
          onChange={(_, v) => setValue(v)}
        />
        <input type="file" aria-label="Value from a file" onChange={(e) => void load(e.target.files?.[0])} />
        {refused && <p role="alert">{refused}</p>}
      </FormGroup>
      <TextField label="What it is for" {...of('about')} placeholder={old ? 'stays as it is' : ''} />
      <TextField
        label="Who may name it"
        {...of('forWhom')}
        placeholder="pool:web profile:debian target:prod"
        help="The configurations of these pools, profiles and join targets may name it. Empty: only those that an admin saved."
      />
      {old && value && <p>Machines that have the old value keep it until they are installed again.</p>}
    </EditForm>
  )
}
