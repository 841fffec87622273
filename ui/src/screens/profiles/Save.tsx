import { Alert, Button, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core'
import type { ReactNode } from 'react'
import { type Call, useAct } from '../../api/act'
import { type Impact, Problem } from '../../api/client'
import { Command } from '../../parts/Command'
import { Failure } from '../../parts/Failure'
import { ImpactView } from './Impact'

interface Saved<T> {
  title: string
  call: Call
  cli: string
  impact: Impact | undefined
  children?: ReactNode // what changes
  close: () => void
  done: (answer: T) => void
  behind?: () => void // somebody else was faster
}

// Save shows what a save would do, and saves. A save that somebody else overtook is refused by the server: then it closes,
// and behind shows what they did.
export function Save<T>({ title, call, cli, impact, children, close, done, behind }: Saved<T>) {
  const act = useAct<T>((answer) => {
    close()
    done(answer)
  })
  const save = () =>
    act.mutate(call, {
      onError: (err) => {
        if (err instanceof Problem && err.status === 412 && behind) {
          close()
          behind()
        }
      },
    })
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="save-title">
      <ModalHeader labelId="save-title" title={title} />
      <ModalBody tabIndex={0}>
        {impact && <ImpactView impact={impact} />}
        {children}
        {act.error && <Failure error={act.error} />}
        {act.error instanceof Problem &&
          act.error.findings.slice(0, 20).map((f, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two findings may be the same in all they say
            <p key={i} className="mono">
              {f.source}: {f.severity}: {f.message}
            </p>
          ))}
        <Command cli={cli} call={call} />
      </ModalBody>
      <ModalFooter>
        <Button isDisabled={act.isPending} isLoading={act.isPending} onClick={save}>
          Save
        </Button>
        <Button variant="link" onClick={close}>
          Go on editing
        </Button>
      </ModalFooter>
    </Modal>
  )
}

interface Met {
  what: string
  changes: ReactNode // what they changed
  clashes: string // what both changed; '' when nothing
  both: () => void
  mine: () => void
  theirs: () => void
}

// Meeting is shown when somebody else has saved what is being edited. Nothing is lost until it is chosen.
export function Meeting({ what, changes, clashes, both, mine, theirs }: Met) {
  return (
    <Alert
      variant="warning"
      isInline
      title={`Somebody else has saved ${what} meanwhile. Your text is still here.`}
      actionLinks={
        <>
          <Button variant="link" isInline onClick={both} isDisabled={clashes !== ''}>
            Merge my changes into theirs
          </Button>
          <Button variant="link" isInline onClick={mine}>
            Keep mine, undo theirs
          </Button>
          <Button variant="link" isInline onClick={theirs}>
            Take theirs, drop mine
          </Button>
        </>
      }
    >
      {clashes && <p>Both of you changed {clashes}, so you have to choose one of the two.</p>}
      <p>What they changed:</p>
      {changes}
      <p>Your choice does not save anything yet. You continue to edit.</p>
    </Alert>
  )
}
