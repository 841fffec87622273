import { expect, test } from 'vitest'
import { fromText, mayChange, setOf } from './words'

test.each([
  [{ address: '10.0.0.5', subnet: 'r1', from: 'subnet' as const }, 'lowest free one of r1', true],
  [{ address: '10.0.0.5', subnet: 'r1', from: 'person' as const }, 'chosen by a person, of r1', true],
  [
    { address: '10.0.0.5', from: 'configuration' as const, source: 'profile web:4' },
    'configuration: profile web:4',
    false,
  ],
  [
    { address: '10.0.0.5', subnet: 'r1', from: 'left' as const, source: 'left by machine web' },
    'left by machine web',
    false,
  ],
])('%o comes from: %s', (a, text, may) => {
  expect(fromText(a)).toBe(text)
  expect(mayChange(a)).toBe(may)
})

test('another address is asked for by machine, or by host where there is none', () => {
  expect(setOf({ address: '10.0.0.5', machine: 'web', host: 'h', from: 'subnet' }, ' 10.0.0.9 ')).toEqual({
    call: { method: 'PUT', path: '/addresses/10.0.0.9', body: { machine: 'web' } },
    cli: 'slipway address set 10.0.0.9 --machine web',
  })
  expect(setOf({ address: 'fd00::5', host: 'h', from: 'subnet' }, 'fd00::9')).toEqual({
    call: { method: 'PUT', path: '/addresses/fd00%3A%3A9', body: { host: 'h' } },
    cli: 'slipway address set fd00::9 --host h',
  })
})
