import { expect, test } from 'vitest'
import type { Host } from '../../api/client'
import { matches, numberOf, parse } from './filter'

const host = {
  name: 'r1-u04',
  state: 'available',
  place: { rack: 'R3', site: 'lab' },
  labels: { gpu: 'a100', team: '' },
  memoryMiB: 512 * 1024,
  manufacturer: 'ACME',
  nics: [{ mac: '52:54:00:aa:00:01' }],
} as unknown as Host

test.each([
  ['', true],
  ['r1', true],
  ['R1 acme', true],
  ['r2', false],
  ['!r2', true],
  ['rack=R3', true],
  ['rack=r3', true],
  ['rack!=R3', false],
  ['rack=R3 memory>256G', true],
  ['memory>512G', false],
  ['memory<1T', true],
  ['label:gpu', true],
  ['label:team', true],
  ['label:tpu', false],
  ['!label:gpu', false],
  ['gpu=a100', true],
  ['state:available', true],
  ['mac=52:54:00', true],
  ['"rack=R3"', true],
  ['memory>lots', false],
])('search %j matches: %s', (search, want) => {
  expect(matches(host, parse(search))).toBe(want)
})

test('sizes are read as people write them', () => {
  expect(numberOf('1.5G')).toBe(1.5 * 2 ** 30)
  expect(numberOf('64GiB')).toBe(64 * 2 ** 30)
  expect(numberOf('many')).toBeNaN()
})
