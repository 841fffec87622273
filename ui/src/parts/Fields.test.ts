// @vitest-environment happy-dom
import { expect, test } from 'vitest'
import { Problem } from '../api/client'
import { saidOf } from './Fields'

const refused = (location: string) => new Problem(422, 'Invalid', 'no', '', '', [{ location, message: 'wrong' }])

test.each([
  ['body.cidr', 'cidr', 'wrong'],
  ['body.place.unit', 'unit', 'wrong'],
  ['body.ranges[0].first', 'ranges', 'wrong'],
  ['body.ranges[0].first', 'ranges[0].first', 'wrong'],
  ['body.labels.rack', 'labels', 'wrong'],
  ['body.cidrs', 'cidr', undefined],
  ['body.acidr', 'cidr', undefined],
  ['path.cidr', 'mode', undefined],
  ['body.cidr', '', undefined],
])('what is wrong with %s is said at %j: %j', (location, field, said) => {
  expect(saidOf(refused(location), field)).toBe(said)
})

test('what is no refusal says nothing of a field', () => expect(saidOf(new Error('x'), 'cidr')).toBeUndefined())
