import {
  Alert,
  Button,
  ClipboardCopy,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextInput,
} from '@patternfly/react-core'
import { useState } from 'react'
import type { Schemas } from '../../api/client'
import { Add } from '../../parts/Act'
import { Ask } from '../../parts/Ask'
import { When } from '../../parts/When'

// Invite makes a command and a code, with which a new machine becomes an instance. Why says why the user, or this database, cannot.
export function Invite({ why }: { why: string | undefined }) {
  const [asks, setAsks] = useState(false)
  const [name, setName] = useState('')
  const [made, setMade] = useState<Schemas['NewInvitation']>()
  const wanted = name.trim()
  return (
    <>
      <Add text="Invite a machine" not={why} act={() => setAsks(true)} />
      {asks && (
        <Ask<Schemas['NewInvitation']>
          title="Invite a machine to become an instance?"
          verb="Invite"
          call={{ method: 'POST', path: '/invitations', body: wanted ? { name: wanted } : {} }}
          cli={`slipway instance invite${wanted && ` --name ${wanted}`}`}
          close={() => setAsks(false)}
          done={setMade}
        >
          <p>
            You get a command for the new machine, and a code that the command asks for. The code works for one machine,
            for 15 minutes. Anybody who has the code gets secret.key and the password of the database.
          </p>
          <Form onSubmit={(e) => e.preventDefault()}>
            <FormGroup label="Name of the new instance (empty: the new machine chooses)" fieldId="invite-name">
              <TextInput id="invite-name" value={name} onChange={(_, v) => setName(v)} autoComplete="off" />
            </FormGroup>
          </Form>
        </Ask>
      )}
      {made && <Made invitation={made} close={() => setMade(undefined)} />}
    </>
  )
}

function Made({ invitation, close }: { invitation: Schemas['NewInvitation']; close: () => void }) {
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="invitation-title">
      <ModalHeader labelId="invitation-title" title="Run this on the new machine" />
      <ModalBody tabIndex={0}>
        <Alert variant="warning" isInline title="This is shown once. Copy it now." />
        <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel="Command for the new machine">
          {invitation.command}
        </ClipboardCopy>
        <p>It asks for this code:</p>
        <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel="Code for the new machine">
          {invitation.code}
        </ClipboardCopy>
        <p>
          It works for one machine, and expires <When at={invitation.expiresAt} />.
        </p>
      </ModalBody>
      <ModalFooter>
        <Button onClick={close}>Done</Button>
      </ModalFooter>
    </Modal>
  )
}
