import { expect, test } from 'vitest'
import { consumersOf, consumersText } from './consumers'

test.each([
  ['', { pools: [], profiles: [], targets: [] }],
  ['pool:web', { pools: ['web'], profiles: [], targets: [] }],
  ['target:prod, pool:web  profile:a', { pools: ['web'], profiles: ['a'], targets: ['prod'] }],
  ['web', undefined],
  ['pool:', undefined],
  ['machine:a', undefined],
])('%s', (text, want) => {
  expect(consumersOf(text)).toEqual(want)
  if (want) expect(consumersOf(consumersText(want))).toEqual(want)
})
