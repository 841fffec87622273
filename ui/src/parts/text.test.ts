import { expect, test } from 'vitest'
import { afterTab, lineStart, nextHit } from './text'

const text = 'users:\n- name: a\n\n- name: b\n'

test('a line begins behind the line end before it', () => {
  expect([1, 2, 3, 4].map((n) => lineStart(text, n))).toEqual([0, 7, 17, 18])
  expect(lineStart(text, 99)).toBe(text.length + 1)
})

test('Tab puts an indent at the caret', () => {
  expect(afterTab(text, 7, 7, false, '  ')).toEqual({ from: 7, to: 7, text: '  ', select: [9, 9] })
})

test('Tab indents every selected line, but not empty ones', () => {
  expect(afterTab(text, 8, 27, false, '  ')?.text).toBe('  - name: a\n\n  - name: b')
})

test('Shift+Tab takes one indent back and leaves the caret in its line', () => {
  expect(afterTab('a:\n    b: 1\n', 8, 8, true, '  ')).toEqual({ from: 3, to: 11, text: '  b: 1', select: [6, 6] })
  expect(afterTab('a:\n', 1, 1, true, '  ')).toBeUndefined()
})

test('a search goes on at the beginning, in any case', () => {
  expect(nextHit(text, 'NAME', 10)).toBe(20)
  expect(nextHit(text, 'name', 25)).toBe(9)
  expect(nextHit(text, 'nothing', 0)).toBe(-1)
  expect(nextHit(text, '', 0)).toBe(-1)
})
