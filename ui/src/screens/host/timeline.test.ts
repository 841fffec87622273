import { expect, test } from 'vitest'
import { barOf, bootTimeOf, type Group, isOf, isSlow, leftOf, type Step, seconds, tookOf } from './timeline'

const at = (s: number) => new Date(1_700_000_000_000 + s * 1000).toISOString()
const now = 1_700_000_000_000 + 100_000
const step = (from: number, to?: number, more: Partial<Step> = {}): Step => ({
  step: 'x',
  title: 'x',
  state: to === undefined ? 'running' : 'done',
  startedAt: at(from),
  ...(to !== undefined && { endedAt: at(to) }),
  ...more,
})
const group: Group = { kind: 'boot', id: 'a', title: 'boot', state: 'running', startedAt: at(0), steps: [] }

test('a step that goes on has taken the time until now, one ahead none', () => {
  expect(tookOf(step(10, 25), now)).toBe(15)
  expect(tookOf(step(10), now)).toBe(90)
  expect(tookOf({}, now)).toBeUndefined()
})

test('durations are read at a glance', () => {
  expect([0, 0.0002, 0.42, 9.94, 59.4, 61, 3725].map(seconds)).toEqual([
    '0.0 s',
    '1 ms',
    '420 ms',
    '9.9 s',
    '59 s',
    '1 min 1 s',
    '1 h 2 min',
  ])
})

test('what is left is minutes and seconds, and nothing once it is late', () => {
  expect(leftOf(at(165), now)).toBe('1:05')
  expect(leftOf(at(100), now)).toBe('0:00')
  expect(leftOf(at(90), now)).toBe('')
})

test('a bar stands where its step does, never outside of the group', () => {
  expect(barOf(step(25, 75, { usualSeconds: 10, sampleN: 4 }), group, now)).toEqual({ left: 25, width: 50, usual: 35 })
  expect(barOf(step(-5, 200), group, now)).toEqual({ left: 0, width: 100 })
  expect(barOf({ step: 'x', title: 'x', state: 'ahead' }, group, now)).toBeUndefined()
})

test('a boot that waits for hours does not make its steps thin', () => {
  const waits = { ...group, steps: [step(0, 2), step(2, 10)] }
  expect(barOf(step(2, 10), waits, now)).toEqual({ left: 20, width: 80 })
})

test('waiting is no boot time', () => {
  const g = { startedAt: '2026-11-26T10:00:00Z', endedAt: '2026-11-26T11:00:00Z' }
  expect(bootTimeOf(g, 0)).toBe(3600)
  expect(bootTimeOf({ ...g, waitedSeconds: 3540 }, 0)).toBe(60)
  expect(bootTimeOf({ ...g, waitedSeconds: 4000 }, 0)).toBe(0)
})

test('slow is twice as long as usual, once that is known', () => {
  expect(isSlow(step(0, 30, { usualSeconds: 10, sampleN: 3 }), now)).toBe(true)
  expect(isSlow(step(0, 24, { usualSeconds: 10, sampleN: 3 }), now)).toBe(false)
  expect(isSlow(step(0, 90, { usualSeconds: 10, sampleN: 1 }), now)).toBe(false)
})

test('an event belongs to the step during which it happened', () => {
  expect(isOf({ at: at(12) }, step(10, 20))).toBe(true)
  expect(isOf({ at: at(21) }, step(10, 20))).toBe(false)
  expect(isOf({ at: at(500) }, step(10))).toBe(true)
  expect(isOf({ at: at(5) }, {})).toBe(false)
})
