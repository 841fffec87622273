import type { ReactNode } from 'react'

type Colour = 'grey' | 'blue' | 'green' | 'orange' | 'red' | 'purple' | 'teal'

// A state has a colour and a glyph, so that it is told apart without colours too.
const looks: Record<string, [Colour, string]> = {
  discovered: ['grey', '○'],
  inspecting: ['blue', '◔'],
  available: ['teal', '◇'],
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

// Tag looks like PatternFly's compact Label and is nothing but text: a Label listens to the whole document and measures
// itself, which tables of hosts cannot pay for each row. The tray brings the style sheet.
export function Tag({ color, children }: { color: Colour; children: ReactNode }) {
  return (
    <span className={`pf-v6-c-label pf-m-filled pf-m-compact${color === 'grey' ? '' : ` pf-m-${color}`}`}>
      <span className="pf-v6-c-label__content">
        <span className="pf-v6-c-label__text">{children}</span>
      </span>
    </span>
  )
}

export function State({ state }: { state: string }) {
  const [color, glyph] = stateLook(state)
  return (
    <Tag color={color}>
      <span aria-hidden>{glyph}</span> {state}
    </Tag>
  )
}
