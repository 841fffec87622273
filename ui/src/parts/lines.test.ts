import { expect, test } from 'vitest'
import { around, diffLines, unified } from './lines'

const said = (before: string, after: string) => diffLines(before, after).map((l) => l.sort + l.text)

test('what is the same stays, what goes comes before what is new', () => {
  expect(said('a\nb\nc\n', 'a\nx\nc\nd\n')).toEqual([' a', '-b', '+x', ' c', '+d'])
})

test('a text against nothing is all new', () => {
  expect(said('', 'a\n')).toEqual(['+a'])
  expect(said('a', '')).toEqual(['-a'])
  expect(said('', '')).toEqual([])
})

test('texts too large to compare line by line are shown as a block', () => {
  const many = (word: string) => Array.from({ length: 3000 }, (_, i) => `${word}${i}`).join('\n')
  expect(diffLines(many('a'), many('b'))).toHaveLength(6000)
})

test('far from what changed, lines are left out and that is said', () => {
  const all = Array.from({ length: 20 }, (_, i) => `${i}`).join('\n')
  const near = around(diffLines(all, all.replace('\n10\n', '\nten\n')))
  expect(near.map((l) => l.sort + l.text)).toEqual(['@…', ' 7', ' 8', ' 9', '-10', '+ten', ' 11', ' 12', ' 13', '@…'])
})

test('a unified diff keeps its signs and the names of files', () => {
  expect(
    unified('--- a (before)\n+++ user-data (after)\n@@ -1 +1 @@\n-a\n+b\n c\n').map((l) => l.sort + l.text),
  ).toEqual(['@user-data', '@@@ -1 +1 @@', '-a', '+b', ' c'])
})
