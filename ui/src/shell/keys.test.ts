import { expect, test } from 'vitest'
import { doingOf } from './keys'

const places = [
  { path: '/', key: 'o' },
  { path: '/hosts', key: 'h' },
  { path: '/racks/*', key: 'r' },
]

test('g and a letter go to a screen', () => {
  expect(doingOf('g', '', places)).toBe('wait')
  expect(doingOf('h', 'g', places)).toEqual({ go: '/hosts' })
  expect(doingOf('r', 'g', places)).toEqual({ go: '/racks' })
  expect(doingOf('o', 'g', places)).toEqual({ go: '/' })
  expect(doingOf('h', '', places)).toBeUndefined()
  expect(doingOf('q', 'g', places)).toBeUndefined()
})

test('a slash searches and a question mark helps', () => {
  expect(doingOf('/', '', places)).toBe('search')
  expect(doingOf('?', 'g', places)).toBe('help')
})
