import { expect, it } from 'vitest'
import { standbyText } from './standby'

it('a standby says how it follows, and unknown is not good', () => {
  const s = { name: 'b', address: '10.0.0.2', state: 'streaming', sync: 'sync', lagBytes: 0, lagSeconds: 0 }
  expect(standbyText(s)).toBe('b 10.0.0.2: streaming, sync, no lag')
  expect(standbyText({ ...s, lagBytes: 2048, lagSeconds: 1.5 })).toBe(
    'b 10.0.0.2: streaming, sync, 2.0 KiB behind, 1.500 s',
  )
  expect(standbyText({ name: 'b', lagBytes: 0, lagSeconds: 0 })).toBe('b: not known')
})
