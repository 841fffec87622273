import { expect, test } from 'vitest'
import { allRacks, drop, elevate, faultsOf, idOf, lineOf, type Placed, type Rack, unitAt } from './layout'

const rack: Rack = { id: 'r1', site: '', row: '', name: 'r1', height: 10, numbering: 'bottom', version: 1 }
const host = (name: string, unit: number, height = 1, face = ''): Placed => ({
  id: name,
  name,
  state: 'active',
  place: { rack: 'r1', unit, height, face },
})

test('a rack is named as the server names it', () => {
  expect(idOf({}, 'R3')).toBe('R3')
  expect(idOf({ site: 'fra' }, 'R3')).toBe('fra//R3')
  expect(idOf({ site: 'fra', row: 'a/b' }, '50%')).toBe('fra/a%2Fb/50%25')
  expect(idOf({ site: 'fra' }, '')).toBe('')
})

test('racks that only hosts name are there, in the order people count', () => {
  const racks = allRacks(
    [rack],
    [{ ...host('a', 1), place: { rack: 'r10' } }, { ...host('b', 1), place: { rack: 'r2' } }, host('c', 1)],
  )
  expect(racks.map((r) => [r.id, r.height, r.version])).toEqual([
    ['r1', 10, 1],
    ['r2', 42, 0],
    ['r10', 42, 0],
  ])
})

test('hosts that share their units stand side by side, and the next one alone', () => {
  const all = elevate([host('b', 1, 2), host('a', 1, 2), host('c', 3), host('d', 2, 1, 'rear'), host('e', 0)], 'front')
  expect(all.map((m) => [m.host.name, m.low, m.high, m.lane, m.lanes])).toEqual([
    ['a', 1, 2, 0, 2],
    ['b', 1, 2, 1, 2],
    ['c', 3, 3, 0, 1],
  ])
})

test.each([
  ['free', host('x', 0, 2), 4, {}],
  ['above the rack', host('x', 0, 2), 10, { why: 'U10-U11 is outside of the rack (U1-U10)' }],
  ['below the rack', host('x', 0), 0, { why: 'U0 is outside of the rack (U1-U10)' }],
  ['on another', host('x', 0, 3), 1, { why: 'U1-U3 is taken: a is there' }],
  ['as a node of a chassis', host('x', 0, 2), 2, { shares: ['a'] }],
  ['behind a shallow one', host('x', 0, 1, 'rear'), 6, {}],
  ['where it stands', host('a', 2, 2), 3, {}],
])('a host dropped %s', (_, h, unit, want) => {
  expect(drop(rack, [host('a', 2, 2), host('s', 6, 1, 'front')], h, unit)).toEqual(want)
})

test('what overlaps or stands out is a fault, what shares or stands behind is none', () => {
  const all = [
    host('a', 2, 2),
    host('b', 3),
    host('c', 10, 2),
    host('d', 5, 1, 'front'),
    host('e', 5, 1, 'rear'),
    host('f', 7),
    host('g', 7),
  ]
  expect(faultsOf(rack, all).map((f) => f.hosts)).toEqual([['a', 'b'], ['c']])
})

test('a rack numbered from the top is drawn so', () => {
  const top: Rack = { ...rack, numbering: 'top' }
  expect([lineOf(rack, 1, 2), lineOf(top, 1, 2), unitAt(rack, 1), unitAt(top, 1)]).toEqual([9, 1, 10, 1])
})
