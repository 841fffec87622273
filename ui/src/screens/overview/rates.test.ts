import { expect, test } from 'vitest'
import { bytesText, perMinute, perSecond } from './rates'

test('rates are said with the unit that fits', () => {
  expect(bytesText(0)).toBe('0 B/s')
  expect(bytesText(999)).toBe('999 B/s')
  expect(bytesText(1500)).toBe('1.5 kB/s')
  expect(bytesText(112_345_678)).toBe('112 MB/s')
  expect(bytesText(1.25e9)).toBe('1.25 GB/s')
  expect(perSecond(12.345)).toBe('12.3/s')
  expect(perMinute(0.2)).toBe('0.2/min')
})
