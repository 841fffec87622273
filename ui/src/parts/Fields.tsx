import {
  Button,
  Form,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextArea,
  TextInput,
} from '@patternfly/react-core'
import { createContext, type FormEvent, type ReactNode, useContext, useId } from 'react'
import { type Call, useAct } from '../api/act'
import { Problem } from '../api/client'
import { Command } from './Command'
import { Failure } from './Failure'

const Refusal = createContext<unknown>(undefined)

// Refused tells the fields in it what the server said of them.
export function Refused({ error, children }: { error: unknown; children: ReactNode }) {
  return <Refusal value={error}>{children}</Refusal>
}

// saidOf is what the server said of one field of a body, or of something in it: ranges[0].first is said at ranges.
export function saidOf(error: unknown, field: string): string | undefined {
  if (!(error instanceof Problem) || field === '') return undefined
  const here = `.${field}`
  return error.fields.find(({ location = '' }) => {
    const at = location.indexOf(here)
    return at >= 0 && /^$|^[.[]/.test(location.slice(at + here.length))
  })?.message
}

interface Field {
  label: string
  value: string
  set: (v: string) => void
  help?: ReactNode
  field?: string // its name in the body, for what the server says of it
  isRequired?: boolean
  isDisabled?: boolean
}

function Help({ id, help, said }: { id: string; help: ReactNode; said: string | undefined }) {
  if (!help && !said) return null
  return (
    <FormHelperText>
      <HelperText id={`${id}-help`}>
        <HelperTextItem variant={said ? 'error' : 'default'}>{said ?? help}</HelperTextItem>
      </HelperText>
    </FormHelperText>
  )
}

// TextField is one line of text.
export function TextField(p: Field & { type?: 'text' | 'number' | 'password'; placeholder?: string; list?: string[] }) {
  const id = useId()
  const said = saidOf(useContext(Refusal), p.field ?? '')
  return (
    <FormGroup label={p.label} fieldId={id} isRequired={p.isRequired ?? false}>
      <TextInput
        id={id}
        type={p.type ?? 'text'}
        value={p.value}
        onChange={(_, v) => p.set(v)}
        isRequired={p.isRequired ?? false}
        isDisabled={p.isDisabled ?? false}
        placeholder={p.placeholder ?? ''}
        validated={said ? 'error' : 'default'}
        aria-describedby={p.help || said ? `${id}-help` : undefined}
        autoComplete={p.type === 'password' ? 'new-password' : 'off'}
        {...(p.list && { list: `${id}-list` })}
      />
      {p.list && (
        <datalist id={`${id}-list`}>
          {p.list.map((x) => (
            <option key={x} value={x} />
          ))}
        </datalist>
      )}
      <Help id={id} help={p.help} said={said} />
    </FormGroup>
  )
}

// LongField is several lines of text.
export function LongField(p: Field & { rows?: number }) {
  const id = useId()
  const said = saidOf(useContext(Refusal), p.field ?? '')
  return (
    <FormGroup label={p.label} fieldId={id} isRequired={p.isRequired ?? false}>
      <TextArea
        id={id}
        className="mono"
        rows={p.rows ?? 6}
        value={p.value}
        onChange={(_, v) => p.set(v)}
        isDisabled={p.isDisabled ?? false}
        validated={said ? 'error' : 'default'}
        aria-describedby={p.help || said ? `${id}-help` : undefined}
        spellCheck={false}
        resizeOrientation="vertical"
      />
      <Help id={id} help={p.help} said={said} />
    </FormGroup>
  )
}

// ChoiceField is one of a few values.
export function ChoiceField(p: Field & { choices: [value: string, label: string][] }) {
  const id = useId()
  const said = saidOf(useContext(Refusal), p.field ?? '')
  return (
    <FormGroup label={p.label} fieldId={id} isRequired={p.isRequired ?? false}>
      <FormSelect
        id={id}
        value={p.value}
        onChange={(_, v) => p.set(v)}
        isDisabled={p.isDisabled ?? false}
        aria-describedby={p.help || said ? `${id}-help` : undefined}
      >
        {p.choices.map(([value, label]) => (
          <FormSelectOption key={value} value={value} label={label} />
        ))}
      </FormSelect>
      <Help id={id} help={p.help} said={said} />
    </FormGroup>
  )
}

interface Edited {
  title: string
  verb: string
  call: Call
  shown?: unknown // the body as the command shows it, where that must not show all of it
  cli?: string
  ready?: boolean // enough is filled in
  close: () => void
  done?: (answer: unknown) => void
  children: ReactNode
}

// EditForm is a form whose contents are one call; what the server says of a field stands at that field.
export function EditForm({ title, verb, call, shown, cli, ready = true, close, done, children }: Edited) {
  const id = useId()
  const act = useAct((answer) => {
    close()
    done?.(answer)
  })
  const save = (e: FormEvent) => {
    e.preventDefault()
    if (ready && !act.isPending) act.mutate(call)
  }
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby={`${id}-title`}>
      <ModalHeader title={title} labelId={`${id}-title`} />
      <ModalBody>
        <Refusal value={act.error}>
          <Form id={`${id}-form`} onSubmit={save}>
            {children}
            {act.error && <Failure error={act.error} />}
          </Form>
        </Refusal>
        <Command {...(cli && { cli })} call={shown === undefined ? call : { ...call, body: shown }} />
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={`${id}-form`} isLoading={act.isPending} isDisabled={!ready || act.isPending}>
          {verb}
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  )
}
