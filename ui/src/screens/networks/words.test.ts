import { expect, test } from 'vitest'
import { linesOfOptions, optionsOf, rangesOf, wordsOf } from '../../parts/written'
import { addressKey, hostname, type Lease, stateOf } from './words'

const now = Date.parse('2026-11-22T12:00:00Z')

test.each<[Lease['state'], string, string]>([
  ['bound', '2026-11-22T13:00:00Z', 'leased'],
  ['bound', '2026-11-22T11:00:00Z', 'expired'],
  ['declined', '2026-11-22T13:00:00Z', 'conflict'],
  ['declined', '2026-11-22T11:00:00Z', 'set free'],
  ['released', '2026-11-22T13:00:00Z', 'released'],
])('a lease %s until %s is %s', (state, expiresAt, want) => {
  expect(stateOf({ state, expiresAt }, now)).toBe(want)
})

test('addresses are ordered as numbers, and lists are read as people write them', () => {
  expect(['10.0.0.10', '10.0.0.9', '9.255.0.0'].sort((a, b) => (addressKey(a) < addressKey(b) ? -1 : 1))).toEqual([
    '9.255.0.0',
    '10.0.0.9',
    '10.0.0.10',
  ])
  expect(
    ['fd00::10', 'fd00::9', 'fd00:0:0:1::', '::1'].sort((a, b) => (addressKey(a) < addressKey(b) ? -1 : 1)),
  ).toEqual(['::1', 'fd00::9', 'fd00::10', 'fd00:0:0:1::'])
  expect(wordsOf(' 1.1.1.1,  8.8.8.8\n')).toEqual(['1.1.1.1', '8.8.8.8'])
  expect(rangesOf('10.0.0.1-10.0.0.9\n10.0.0.20')).toEqual([
    { first: '10.0.0.1', last: '10.0.0.9' },
    { first: '10.0.0.20', last: '10.0.0.20' },
  ])
})

test.each([
  ['Web 1.example', 'web-1'],
  ['<img onerror=x>', 'img-onerror-x'],
  ['---', ''],
  [undefined, ''],
  ['a'.repeat(99), 'a'.repeat(63)],
])('the name %j becomes %j', (said, want) => {
  expect(hostname(said)).toBe(want)
})

test('options are written one in a line, and come back', () => {
  const all = [
    { name: 'tftp-server-name', type: 'text', value: 'boot: 1/2=x' },
    { code: 1, space: 'vendor-42623', type: 'hex', value: '01:02', isAlways: true },
  ]
  expect(linesOfOptions(all)).toBe('tftp-server-name/text=boot: 1/2=x\nalways:vendor-42623:1/hex=01:02')
  expect(optionsOf(linesOfOptions(all))).toEqual(all)
  expect(optionsOf('66=a\n\n  224/empty\n')).toEqual([
    { code: 66, value: 'a' },
    { code: 224, type: 'empty', value: '' },
  ])
})
