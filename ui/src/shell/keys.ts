import type { Place } from './places'
import { linkOf } from './places'

// Doing is what a key asks for.
export type Doing = { go: string } | 'search' | 'help' | 'wait' | undefined

// doingOf says what a key means, after the one before it: g and a screen's letter go there.
export function doingOf(key: string, before: string, places: Pick<Place, 'path' | 'key'>[]): Doing {
  if (before === 'g') {
    const place = places.find((p) => p.key === key)
    if (place) return { go: linkOf(place) || '/' }
  }
  if (key === 'g') return 'wait'
  if (key === '/') return 'search'
  if (key === '?') return 'help'
  return undefined
}

// isTyping says whether keys are text where they were pressed.
export function isTyping(at: EventTarget | null): boolean {
  if (!(at instanceof HTMLElement)) return false
  return (
    at.isContentEditable ||
    ['INPUT', 'TEXTAREA', 'SELECT'].includes(at.tagName) ||
    at.closest('[role="dialog"]') !== null
  )
}
