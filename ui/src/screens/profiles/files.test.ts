// @vitest-environment happy-dom
import { expect, test } from 'vitest'
import { besides, nameOf, sizeOf } from './Files'

test('a chosen file has the name that a document gives it', () => {
  expect(nameOf({ name: 'motd', webkitRelativePath: '' })).toBe('motd')
  expect(nameOf({ name: 'a.service', webkitRelativePath: 'web/units/a.service' })).toBe('units/a.service')
})

test('files go with a Butane document only', () => {
  const files = { motd: 'aGVsbG8=' }
  const butane = { name: 'x', document: { format: 'butane', text: '' } }
  expect(besides(butane, files)).toEqual({ name: 'x', document: { format: 'butane', text: '', files } })
  expect(besides(butane, {})).toBe(butane)
  const other = { document: { format: 'ignition', text: '' } }
  expect(besides(other, files)).toBe(other)
  expect(besides({}, files)).toEqual({})
})

test('the size of a file is that of its bytes', () => {
  expect(sizeOf(btoa('hello'))).toBe(5)
  expect(sizeOf('')).toBe(0)
})
