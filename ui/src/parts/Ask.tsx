import { Button, Form, FormGroup, Modal, ModalBody, ModalFooter, ModalHeader, TextInput } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { type Call, send, useAct } from '../api/act'
import { Command } from './Command'
import { Failure } from './Failure'

interface Asked<T> {
  title: string // what is asked, such as "Wipe host r1-u4?"
  verb: string // the button's word
  call: Call
  cli?: string
  warns?: ReactNode // what is lost by it, where the server does not say that
  foresees?: Call | undefined // asks the server what it will do; dryOf(call) for what has a dry run
  typed?: string // has to be typed before the button works
  children?: ReactNode
  close: () => void
  done?: (answer: T) => void
}

// dryOf is a call that changes nothing and says what the call itself would do. Only calls that have a dry run may be given.
export function dryOf(c: Call): Call {
  return { ...c, path: `${c.path}${c.path.includes('?') ? '&' : '?'}dryRun=true` }
}

// sentence is what the server says without a capital and a full stop.
export function sentence(does: string): string {
  return does && `${does.charAt(0).toUpperCase()}${does.slice(1)}.`
}

// useForesight asks what will happen. The words are the server's, so that all dialogs and the command line have the same.
function useForesight(call: Call | undefined) {
  return useQuery({
    queryKey: ['foresight', call],
    enabled: call !== undefined,
    retry: false,
    gcTime: 0,
    queryFn: async () => (call && (await send<{ does?: string }>(call)).does) ?? '',
  })
}

// Ask is the one way to ask before something happens: what, what is lost, the command, and what the server says if it refuses.
export function Ask<T = unknown>(p: Asked<T>) {
  const { title, verb, call, cli, warns, foresees, typed, children, close, done } = p
  const [text, setText] = useState('')
  const will = useForesight(foresees)
  const isDanger = Boolean(warns || foresees)
  const act = useAct<T>((answer) => {
    close()
    done?.(answer)
  })
  return (
    <Modal isOpen variant="small" onClose={close} aria-labelledby="ask-title">
      <ModalHeader labelId="ask-title" title={title} {...(isDanger && { titleIconVariant: 'warning' as const })} />
      <ModalBody>
        {will.data && <p className="sw-foreseen">{sentence(will.data)}</p>}
        {will.error && <Failure error={will.error} />}
        {warns && <p>{warns}</p>}
        {children}
        {typed && (
          <Form onSubmit={(e) => e.preventDefault()}>
            <FormGroup label={`Type ${typed} to go on`} fieldId="ask-typed">
              <TextInput id="ask-typed" value={text} onChange={(_, v) => setText(v)} autoComplete="off" />
            </FormGroup>
          </Form>
        )}
        {act.error && <Failure error={act.error} />}
        <Command {...(cli && { cli })} call={call} />
      </ModalBody>
      <ModalFooter>
        <Button
          variant={isDanger ? 'danger' : 'primary'}
          isLoading={act.isPending}
          isDisabled={act.isPending || will.isLoading || will.isError || (typed !== undefined && text.trim() !== typed)}
          onClick={() => act.mutate(call)}
        >
          {verb}
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  )
}
