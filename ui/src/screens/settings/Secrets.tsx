import {
  Button,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextArea,
  TextInput,
  Tooltip,
} from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useState } from 'react'
import { Link, useSearchParams } from 'react-router'
import { type Call, useAct } from '../../api/act'
import type { Schemas, Secret } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useList, useOne } from '../../api/queries'
import { Ask, dryOf } from '../../parts/Ask'
import { Command } from '../../parts/Command'
import { flags } from '../../parts/cli'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { When } from '../../parts/When'
import { consumersOf, consumersText } from './consumers'
import './settings-catalogue.css'

const most = 1 << 20

// Secrets lists what is kept sealed: names and ages, never values.
export function Secrets() {
  const secrets = useList('secrets')
  const [params, setParams] = useSearchParams()
  const [goes, setGoes] = useState<Secret>()
  const not = mayNot(useMe(), 'admin', '')
  const set = params.get('secret')
  const open = (name: string | undefined) => {
    const next = new URLSearchParams(params)
    if (name === undefined) next.delete('secret')
    else next.set('secret', name)
    setParams(next)
  }
  const button = (
    label: string,
    why: string | undefined,
    act: () => void,
    variant: 'primary' | 'link' = 'link',
    name = label,
  ) => {
    const b = (
      <Button
        variant={variant}
        isInline={variant === 'link'}
        isAriaDisabled={why !== undefined}
        onClick={() => why === undefined && act()}
        aria-label={name}
      >
        {label}
      </Button>
    )
    return why ? <Tooltip content={why}>{b}</Tooltip> : b
  }
  return (
    <>
      <p>
        A value goes in and never comes out again, but to the machines that are given it. Configurations name it as{' '}
        <code>secret://NAME</code>, texts as <code>{'{{ secret "NAME" }}'}</code>.
      </p>
      <p className="settings-do">{button('Store a secret', not, () => open(''), 'primary')}</p>
      <Loaded query={secrets}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="No secret is stored yet">
              Password hashes, join tokens, disk keys: what a machine needs and nobody should read.
            </Nothing>
          ) : (
            <Table aria-label="Secrets" variant="compact">
              <Thead>
                <Tr>
                  <Th>Name</Th>
                  <Th>About</Th>
                  <Th>For</Th>
                  <Th>Used by</Th>
                  <Th>Set</Th>
                  <Th screenReaderText="Actions" />
                </Tr>
              </Thead>
              <Tbody>
                {all.map((s) => (
                  <Row
                    key={s.name}
                    secret={s}
                    not={not}
                    button={button}
                    replace={() => open(s.name)}
                    remove={() => setGoes(s)}
                  />
                ))}
              </Tbody>
            </Table>
          )
        }
      </Loaded>
      {set !== null && !not && (
        <SetSecret
          name={set}
          consumers={secrets.data?.find((s) => s.name === set)?.consumers}
          known={(secrets.data ?? []).map((s) => s.name)}
          close={() => open(undefined)}
        />
      )}
      {goes && (
        <Ask
          title={`Delete secret ${goes.name}?`}
          verb="Delete"
          foresees={dryOf({
            method: 'DELETE',
            path: `/secrets/${encodeURIComponent(goes.name)}`,
            version: goes.version,
          })}
          cli={`slipway secret delete ${goes.name}`}
          call={{ method: 'DELETE', path: `/secrets/${encodeURIComponent(goes.name)}`, version: goes.version }}
          close={() => setGoes(undefined)}
        />
      )}
    </>
  )
}

interface Line {
  secret: Secret
  not: string | undefined
  button: (
    label: string,
    why: string | undefined,
    act: () => void,
    variant?: 'primary' | 'link',
    name?: string,
  ) => React.ReactNode
  replace: () => void
  remove: () => void
}

function Row({ secret: s, not, button, replace, remove }: Line) {
  const uses = useOne('secrets', s.name, '/uses')
  const users = uses.data?.usedBy ?? []
  const kept = not ?? (users.length > 0 ? `used by ${users.join(', ')}: change that first` : undefined)
  return (
    <Tr>
      <Td dataLabel="Name">{s.name}</Td>
      <Td dataLabel="About">
        <div>
          {s.about} {s.owner && <small>kept for {s.owner}</small>}
        </div>
      </Td>
      <Td dataLabel="For">
        <div>{consumersText(s.consumers) || <small>what admins have saved</small>}</div>
      </Td>
      <Td dataLabel="Used by">
        <div>
          {users.length === 0 ? uses.data && 'nothing' : users.slice(0, 5).map((u) => <User key={u} of={u} />)}
          {users.length > 5 && ` and ${users.length - 5} more`}
        </div>
      </Td>
      <Td dataLabel="Set">
        <When at={s.updatedAt} />
      </Td>
      <Td dataLabel="Actions">
        <div>
          {button('Change', not, replace, 'link', `Change ${s.name}`)}{' '}
          {button('Delete', kept, remove, 'link', `Delete ${s.name}`)}
        </div>
      </Td>
    </Tr>
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
  const [name, setName] = useState(old)
  const before = consumersText(consumers)
  const [forWhom, setForWhom] = useState(before)
  const wanted = consumersOf(forWhom)
  const [value, setValue] = useState('')
  const [about, setAbout] = useState('')
  const [refused, setRefused] = useState('')
  const act = useAct(close)
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
          : `${file.name} is not text: encode it first, as what reads it expects (base64, hex, PEM)`,
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
    <Modal isOpen variant="small" onClose={close} aria-labelledby="secret-title">
      <ModalHeader labelId="secret-title" title={old ? `Change secret ${old}` : 'Store a secret'} />
      <ModalBody tabIndex={0}>
        <Form
          autoComplete="off"
          onSubmit={(e) => {
            e.preventDefault()
            if (!lacks && !act.isPending) act.mutate(call(value))
          }}
        >
          {!old && (
            <FormGroup label="Name" fieldId="secret-name" isRequired>
              <TextInput id="secret-name" value={name} onChange={(_, v) => setName(v)} autoComplete="off" />
            </FormGroup>
          )}
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
          <FormGroup label="What it is for" fieldId="secret-about">
            <TextInput
              id="secret-about"
              value={about}
              onChange={(_, v) => setAbout(v)}
              placeholder={old ? 'stays as it is' : ''}
            />
          </FormGroup>
          <FormGroup label="Who may name it" fieldId="secret-for">
            <TextInput
              id="secret-for"
              value={forWhom}
              onChange={(_, v) => setForWhom(v)}
              placeholder="pool:web profile:debian target:prod"
            />
            <small>
              Pools, profiles and join targets whose configurations may name it. Left empty, only what an admin has
              saved may.
            </small>
          </FormGroup>
        </Form>
        {old && value && <p>Machines that have the old value keep it until they are installed again.</p>}
        {act.error && <Failure error={act.error} />}
        <Command
          cli={
            old && !value
              ? `slipway secret for ${old} ${forWhom.trim() || '--admins'}`
              : `slipway secret set ${name.trim() || 'NAME'} --file FILE${flags({ for: forWhom.split(/[\s,]+/).filter(Boolean) })}`
          }
          call={call(value && '…')}
        />
      </ModalBody>
      <ModalFooter>
        <Button
          isDisabled={lacks !== '' || act.isPending}
          isLoading={act.isPending}
          onClick={() => act.mutate(call(value))}
        >
          {old ? 'Change' : 'Store'}
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
        {lacks && <small>Not yet: {lacks}.</small>}
      </ModalFooter>
    </Modal>
  )
}
