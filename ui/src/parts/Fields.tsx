import {
  Alert,
  Button,
  Checkbox,
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
import { createContext, type FormEvent, type ReactNode, useContext, useId, useState } from 'react'
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
  said?: string | undefined // what is wrong with it
  isRequired?: boolean
  isDisabled?: boolean
}

// useSaid is what is wrong with a field.
function useSaid(p: Pick<Field, 'field' | 'said'>): string | undefined {
  const error = useContext(Refusal)
  return p.said ?? saidOf(error, p.field ?? '')
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
  p: Field & {
    type?: 'text' | 'number' | 'password'
    placeholder?: string
    min?: number
    max?: number
    list?: string[]
    complete?: string // for the browser
  },
) {
  const id = useId()
  const said = useSaid(p)
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
        {...(p.max !== undefined && { maxLength: p.max })}
        validated={said ? 'error' : 'default'}
        aria-describedby={p.help || said ? `${id}-help` : undefined}
        autoComplete={p.complete ?? (p.type === 'password' ? 'new-password' : 'off')}
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
export function LongField(p: Field & { rows?: number; placeholder?: string }) {
  const id = useId()
  const said = useSaid(p)
  return (
    <FormGroup label={p.label} fieldId={id} isRequired={p.isRequired ?? false}>
      <TextArea
        id={id}
        className="mono"
        rows={p.rows ?? 6}
        value={p.value}
        onChange={(_, v) => p.set(v)}
        isDisabled={p.isDisabled ?? false}
        placeholder={p.placeholder ?? ''}
        validated={said ? 'error' : 'default'}
        aria-describedby={p.help || said ? `${id}-help` : undefined}
        spellCheck={false}
        resizeOrientation="vertical"
      />
      <Help id={id} help={p.help} said={said} />
    </FormGroup>
  )
}

// same are choices that are called as they are.
export const same = (words: string[]) => words.map((w): [string, string] => [w, w])

// ChoiceField is one of a few values.
export function ChoiceField<V extends string>(
  p: Omit<Field, 'value' | 'set'> & { value: V; set: (v: V) => void; choices: [value: V, label: string][] },
) {
  const id = useId()
  const said = useSaid(p)
  return (
    <FormGroup label={p.label} fieldId={id} isRequired={p.isRequired ?? false}>
      <FormSelect
        id={id}
        value={p.value}
        onChange={(_, v) => {
          const chosen = p.choices.find(([value]) => value === v)
          if (chosen) p.set(chosen[0])
        }}
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

// CheckField is yes or no.
export function CheckField(p: Omit<Field, 'value' | 'set'> & { value: boolean; set: (v: boolean) => void }) {
  return (
    <Checkbox
      id={useId()}
      label={p.label}
      description={p.help}
      isChecked={p.value}
      isDisabled={p.isDisabled ?? false}
      onChange={(_, v) => p.set(v)}
    />
  )
}

// OptionsField holds DHCP options.
export function OptionsField(p: Field) {
  return (
    <LongField
      {...p}
      rows={3}
      help="One in a line: tftp-server-name=boot.lab, 224/uint16=5, vendor:1=TEXT inside option 43; with always: in front, Slipway sends it to every client"
    />
  )
}

type Held = Record<string, string | boolean>
type Wide<T extends Held> = { [K in keyof T]: T[K] extends boolean ? boolean : string }

// useFields holds what a form has; of(name) is what the field of that name takes.
export function useFields<T extends Held>(first: T) {
  const [all, setAll] = useState<Wide<T>>(first as Wide<T>)
  const of = <K extends keyof T & string>(name: K) => ({
    value: all[name],
    set: (v: Wide<T>[K]) => setAll((old) => ({ ...old, [name]: v })),
    field: name,
  })
  return [all, of, setAll] as const
}

interface Dialog {
  title: string
  about?: string // below the title
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
      <ModalHeader title={p.title} labelId={`${id}-title`} {...(p.about && { description: p.about })} />
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

// After is a second call, and what to say when only the first was made.
export interface After {
  call: Call
  half: string
}

interface Edited<T> extends Omit<Dialog, 'save' | 'isBusy' | 'error'> {
  call: Call
  shown?: unknown // the body as the command shows it, where that must not show all of it
  after?: After | undefined
  done?: (answer: T) => void
}

// EditForm is a form whose contents are one call, or two; what the server says of a field stands at that field.
export function EditForm<T = unknown>({ call, shown, after, done, children, ...p }: Edited<T>) {
  const [path, setPath] = useState<string>() // of the second call, once the first was made
  const end = (answer: T) => {
    p.close()
    done?.(answer)
  }
  const second = useAct<T>(end)
  const first = useAct<T>((answer) => {
    if (!after) return end(answer)
    setPath(after.call.path)
    second.mutate(after.call)
  })
  return (
    <FormDialog
      {...p}
      save={() => (after && path ? second.mutate({ ...after.call, path }) : first.mutate(call))}
      isBusy={first.isPending || second.isPending}
      error={second.error ?? first.error}
      call={shown === undefined ? call : { ...call, body: shown }}
    >
      {children}
      {second.isError && after && <Alert variant="info" isInline title={after.half} />}
    </FormDialog>
  )
}
