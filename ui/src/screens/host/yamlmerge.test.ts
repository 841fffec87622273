// @vitest-environment happy-dom
import { expect, test } from 'vitest'
import { merge } from './Yaml'

test('changes to different fields are both kept', () => {
  const base = { name: 'a', profile: 'x', labels: { r: '1' } }
  const { merged, both } = merge(base, { ...base, profile: 'y' }, { ...base, labels: { r: '2' } })
  expect(merged).toEqual({ name: 'a', profile: 'y', labels: { r: '2' } })
  expect(both).toEqual([])
})

test('a field that both changed is named, and is mine', () => {
  const { merged, both } = merge({ profile: 'x' }, { profile: 'y' }, { profile: 'z', serial: 's' })
  expect(merged).toEqual({ profile: 'y', serial: 's' })
  expect(both).toEqual(['profile'])
})

test('what I took away stays away', () => {
  expect(merge({ serial: 's', a: 1 }, { a: 1 }, { serial: 's', a: 2 }).merged).toEqual({ a: 2 })
})
