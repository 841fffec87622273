import { Alert, Button } from '@patternfly/react-core'
import { When } from './When'

// Unsaved says that what is shown was typed earlier and is not saved.
export function Unsaved({ since, forget }: { since: string; forget: () => void }) {
  return (
    <Alert
      variant="info"
      isInline
      title="These changes are not saved"
      actionLinks={
        <Button variant="link" isInline onClick={forget}>
          Discard them
        </Button>
      }
    >
      This tab kept them, from <When at={since} />, until you log out.
    </Alert>
  )
}
