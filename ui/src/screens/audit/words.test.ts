import { expect, test } from 'vitest'
import { isText, outcome, placeOf, plainOf, sinceOf, what } from './words'

test('an entry says what became of it', () => {
  expect(outcome({ status: 200, change: 'update' })).toBe('changed')
  expect(outcome({ status: 201, change: 'create' })).toBe('created')
  expect(outcome({ status: 409, change: 'create' })).toBe('refused')
  expect(outcome({ status: 202 })).toBe('done')
  expect(what('power-host')).toBe('power host')
})

test('what is gone has no page', () => {
  expect(placeOf({ noun: 'host', name: 'a/b', change: 'update', status: 200 })).toBe('/hosts/a%2Fb')
  expect(placeOf({ noun: 'bmc', name: 'r1', status: 409 })).toBe('/hosts/r1')
  expect(placeOf({ noun: 'host', name: 'r1', change: 'delete', status: 204 })).toBe('')
  expect(placeOf({ noun: 'token', name: 'ci', status: 201 })).toBe('')
})

test('values are written as text', () => {
  expect(plainOf(null)).toBe('')
  expect(plainOf(7)).toBe('7')
  expect(plainOf('a')).toBe('a')
  expect(plainOf({ a: ['b', 'c'] })).toBe('{ "a": [ "b", "c" ] }')
  expect(isText('a\nb')).toBe(true)
  expect(isText(['a\nb'])).toBe(false)
})

test('a span begins on a minute', () => {
  expect(sinceOf('hour', Date.UTC(2026, 10, 22, 18, 5, 42))).toBe('2026-11-22T17:05:00Z')
  expect(sinceOf('')).toBe('')
  expect(sinceOf('for ever')).toBe('')
})
