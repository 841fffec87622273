import { Button, Form, FormGroup, Modal, ModalBody, ModalFooter, ModalHeader, TextInput } from '@patternfly/react-core'
import { type ReactNode, useState } from 'react'
import { type Call, useAct } from '../api/act'
import { Command } from './Command'
import { Failure } from './Failure'

interface Asked {
  title: string // what is asked, such as "Wipe host r1-u4?"
  verb: string // the button's word
  call: Call
  cli?: string
  warns?: ReactNode // what is lost by it
  typed?: string // has to be typed before the button works
  children?: ReactNode
  close: () => void
  done?: (answer: unknown) => void
}

// Ask is the one way to ask before something happens: what, what is lost, the command, and what the server says if it refuses.
export function Ask({ title, verb, call, cli, warns, typed, children, close, done }: Asked) {
  const [text, setText] = useState('')
  const act = useAct((answer) => {
    close()
    done?.(answer)
  })
  return (
    <Modal isOpen variant="small" onClose={close} aria-labelledby="ask-title">
      <ModalHeader labelId="ask-title" title={title} {...(warns && { titleIconVariant: 'warning' as const })} />
      <ModalBody>
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
          variant={warns ? 'danger' : 'primary'}
          isLoading={act.isPending}
          isDisabled={act.isPending || (typed !== undefined && text.trim() !== typed)}
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
