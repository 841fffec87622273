import { expect, test } from 'vitest'
import { keyOf, Terminal } from './ansi'

const shown = (...pieces: string[]) => {
  const t = new Terminal(100)
  for (const p of pieces) t.write(p)
  return t.text()
}

test('colours are left out, lines stay', () => {
  expect(shown('\x1b[1;32mok\x1b[0m boot\r\nnext')).toBe('ok boot\nnext')
})

test('a line that is written over shows what was written last', () => {
  expect(shown('loading  1%\rloading 99%')).toBe('loading 99%')
  expect(shown('abc\b\bX')).toBe('aXc')
  expect(shown('abcdef\x1b[3D\x1b[K')).toBe('abc')
})

test('a menu that is drawn by places is read as it stood there', () => {
  expect(shown('before\r\n\x1b[2J\x1b[1;1HGRUB\x1b[3;5HDebian')).toBe('before\n\nGRUB\n\n    Debian')
})

test('a code that comes in pieces is not shown', () => {
  expect(shown('a\x1b', '[3', '1mb')).toBe('ab')
  expect(shown('a\x1b]0;a title', ' of a window\x07b')).toBe('ab')
})

test('what a machine sends cannot grow without bounds', () => {
  const t = new Terminal(100)
  t.write('x\n'.repeat(10_000))
  expect(t.text().split('\n').length).toBeLessThanOrEqual(100)
  t.write(`\x1b[${'9'.repeat(40)}B`)
  t.write(`\x1b]${'z'.repeat(10_000)}`)
  t.write('\x1b[99999999;99999999H\rend')
  expect(t.text().length).toBeLessThan(100 * 250)
  expect(t.text()).toContain('end')
})

test('keys type what terminals send', () => {
  const key = (k: string, more = {}) => keyOf({ key: k, ctrlKey: false, altKey: false, metaKey: false, ...more })
  expect([
    key('a'),
    key('Enter'),
    key('ArrowUp'),
    key('c', { ctrlKey: true }),
    key('Shift'),
    key('r', { metaKey: true }),
  ]).toEqual(['a', '\r', '\x1b[A', '\x03', undefined, undefined])
})
