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
export function TextField(
  p: Field & { type?: 'text' | 'number' | 'password'; placeholder?: string; min?: number; list?: string[] },
) {
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
        {...(p.min !== undefined && { min: p.min })}
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

interface Dialog {
  title: string
  verb: string
  save: () => void
  isBusy: boolean
  error?: unknown
  lacks?: string // what is not filled in yet; '' when all is
  ready?: boolean // for forms that do not say what is missing
  isSmall?: boolean
  call?: Call // as the command shows it
  cli?: string
  close: () => void
  children: ReactNode
}

// FormDialog is a form in a dialog, with what is missing, what the server said, and the same as a command.
export function FormDialog(p: Dialog) {
  const id = useId()
  const isOff = p.isBusy || Boolean(p.lacks) || p.ready === false
  const submit = (e: FormEvent) => {
    e.preventDefault()
    if (!isOff) p.save()
  }
  return (
    <Modal isOpen variant={p.isSmall ? 'small' : 'medium'} onClose={p.close} aria-labelledby={`${id}-title`}>
      <ModalHeader title={p.title} labelId={`${id}-title`} />
      <ModalBody>
        <Refusal value={p.error}>
          <Form id={`${id}-form`} onSubmit={submit} autoComplete="off">
            {p.children}
            {Boolean(p.error) && <Failure error={p.error} />}
          </Form>
        </Refusal>
        <Command {...(p.cli && { cli: p.cli })} {...(p.call && { call: p.call })} />
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={`${id}-form`} isLoading={p.isBusy} isDisabled={isOff}>
          {p.verb}
        </Button>
        <Button variant="link" onClick={p.close}>
          Cancel
        </Button>
        {p.lacks && <small>Not yet: {p.lacks}.</small>}
      </ModalFooter>
    </Modal>
  )
}

interface Edited<T> extends Omit<Dialog, 'save' | 'isBusy' | 'error'> {
  call: Call
  shown?: unknown // the body as the command shows it, where that must not show all of it
  done?: (answer: T) => void
}

// EditForm is a form whose contents are one call; what the server says of a field stands at that field.
export function EditForm<T = unknown>({ call, shown, done, ...p }: Edited<T>) {
  const act = useAct<T>((answer) => {
    p.close()
    done?.(answer)
  })
  return (
    <FormDialog
      {...p}
      save={() => act.mutate(call)}
      isBusy={act.isPending}
      error={act.error}
      call={shown === undefined ? call : { ...call, body: shown }}
    />
  )
}
