import { Button, Tooltip } from '@patternfly/react-core'

export interface Action {
  text: string
  of?: string // whose action it is, for screen readers
  not?: string | undefined // why it cannot be done now
  act: () => void
  variant?: 'primary' | 'secondary' | 'link'
  isDanger?: boolean
}

// Act is a button that says why it does nothing.
export function Act({ text, of, not, act, variant = 'link', isDanger = false }: Action) {
  const button = (
    <Button
      variant={variant}
      isDanger={isDanger}
      isInline={variant === 'link'}
      {...(of && { 'aria-label': `${text} ${of}` })}
      isAriaDisabled={not !== undefined}
      onClick={() => not === undefined && act()}
    >
      {text}
    </Button>
  )
  return not ? <Tooltip content={not}>{button}</Tooltip> : button
}

// Add is the button above a list that opens the form of a new one.
export function Add(p: Pick<Action, 'text' | 'not' | 'act' | 'variant'>) {
  return (
    <p style={{ marginBlock: '0.5rem' }}>
      <Act variant="primary" {...p} />
    </p>
  )
}
