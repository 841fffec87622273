import { expect, test } from 'vitest'
import { yamlOf } from './yaml'

test('a thing is written as people write YAML', () => {
  expect(
    yamlOf({
      name: 'r1-u4',
      place: { rack: 'r1', unit: 4 },
      nics: [{ mac: '52:54:00:aa:00:01', isBoot: true }, 'x'],
      labels: {},
      taints: [],
    }),
  ).toBe(`name: r1-u4
place:
  rack: r1
  unit: 4
nics:
  - mac: "52:54:00:aa:00:01"
    isBoot: true
  - x
labels: {}
taints: []
`)
})

test('texts that YAML would read as something else are quoted', () => {
  for (const v of [
    'true',
    'No',
    '12',
    '1e3',
    '',
    ' a',
    'a: b',
    '- x',
    '# c',
    'null',
    'a\nb',
    '~',
    '*a',
    '"q"',
    '2026-01-01',
  ])
    expect(yamlOf(v)).toBe(`${JSON.stringify(v)}\n`)
})
