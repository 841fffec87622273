import { Alert, Button, ClipboardCopy, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core'
import { useState } from 'react'
import type { Schemas } from '../../api/client'
import { may, roleOf, useMe } from '../../api/me'
import { nouns } from '../../api/nouns'
import { NounForm } from '../../parts/NounForm'
import { NounList } from '../../parts/NounList'

// Tokens let programs in. Admins see all, everybody else their own.
export function Tokens() {
  const me = useMe()
  const [made, setMade] = useState<Schemas['NewToken']>()
  const role = may(me, 'operator') ? 'operator' : 'viewer'
  const grants = roleOf(me, '') ? [{ role }] : (me?.grants ?? []).slice(0, 1)
  return (
    <>
      <NounList
        d={nouns.tokens}
        form={(_, close) => <NounForm d={nouns.tokens} given={{ grants }} done={setMade} close={close} />}
      />
      {made && <Made token={made} close={() => setMade(undefined)} />}
    </>
  )
}

function Made({ token, close }: { token: Schemas['NewToken']; close: () => void }) {
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="token-title">
      <ModalHeader labelId="token-title" title={`Token ${token.name} is made`} />
      <ModalBody tabIndex={0}>
        <Alert variant="warning" isInline title="This is shown once. Copy it now." />
        <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel="Secret of the token">
          {token.secret}
        </ClipboardCopy>
        <p>
          Send it as <code>Authorization: Bearer SECRET</code>, or set <code>SLIPWAY_TOKEN</code> for the command line.
        </p>
      </ModalBody>
      <ModalFooter>
        <Button onClick={close}>Done</Button>
      </ModalFooter>
    </Modal>
  )
}
