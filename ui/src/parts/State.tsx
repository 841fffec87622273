import { Label } from '@patternfly/react-core'

type Colour = 'grey' | 'blue' | 'green' | 'orange' | 'red' | 'purple' | 'teal'

// A state has a colour and a glyph, so that it is told apart without colours too.
const looks: Record<string, [Colour, string]> = {
  discovered: ['grey', '○'],
  inspecting: ['blue', '◔'],
  available: ['green', '◇'],
  installing: ['purple', '◑'],
  active: ['green', '●'],
  releasing: ['orange', '◒'],
  cleaning: ['orange', '◓'],
  failed: ['red', '✕'],
  pending: ['grey', '○'],
  provisioning: ['purple', '◑'],
  running: ['green', '●'],
  deleting: ['orange', '◒'],
}

export const stateLook = (state: string): [Colour, string] => looks[state] ?? ['grey', '·']

export function State({ state }: { state: string }) {
  const [color, glyph] = stateLook(state)
  return (
    <Label color={color} isCompact>
      <span aria-hidden>{glyph}</span> {state}
    </Label>
  )
}
