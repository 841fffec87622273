import { expect, test } from 'vitest'
import type { HostRow } from '../../api/rows'
import { completions, has, matches, numberOf, parse, secondsOf, selectorOf, turned, valuesOf } from './filter'

const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString()

const host = {
  id: '1',
  name: 'r1-u04',
  state: 'available',
  stateSinceAt: ago(3 * 86400),
  place: { rack: 'R3', site: 'lab', unit: 4 },
  labels: { gpu: 'a100', team: '' },
  memoryMiB: 512 * 1024,
  manufacturer: 'ACME',
  product: 'Big Box',
  macs: ['52:54:00:aa:00:01', '52:54:00:aa:00:02'],
  flags: ['protected'],
  issues: ['identity-conflict'],
  lastSeenAt: ago(7200),
  address: '10.0.0.7',
} as unknown as HostRow

const finds = (search: string) => matches(host, parse(search))

test.each([
  ['', true],
  ['r1', true],
  ['R1 acme', true],
  ['r2', false],
  ['!r2', true],
  ['rack=R3', true],
  ['rack=r3', true],
  ['rack:R3', true],
  ['rack!=R3', false],
  ['!rack=R3', false],
  ['!rack!=R3', true],
  ['rack=', false],
  ['row=', true],
  ['rack=R3 memory>256G', true],
  ['memory>512G', false],
  ['memory=512G', true],
  ['memory<1T', true],
  ['unit=4', true],
  ['unit>3 unit<5', true],
  ['label:gpu', true],
  ['label:team', true],
  ['label:tpu', false],
  ['!label:gpu', false],
  ['label:gpu=a100', true],
  ['label:gpu!=a100', false],
  ['label:gpu~^a', true],
  ['state:available', true],
  ['mac=52:54:00', true],
  ['mac=52-54-00-AA-00-02', true],
  ['52:54:00:aa:00:02', true],
  ['mac=54:00', false],
  ['model="big box"', true],
  ['product="Big Box"', true],
  ['name~^r[0-9]-u', true],
  ['name~^web', false],
  ['!name~^web', true],
  ['lastSeen>1h', true],
  ['lastSeen>3h', false],
  ['lastseen<1d', true],
  ['stateFor>2d', true],
  ['issue:any', true],
  ['issue=identity-conflict', true],
  ['!issue:any', false],
  ['flag=protected', true],
  ['flag=cordoned', false],
  ['ip~^10[.]0', true],
  ['rack=R9 or rack=R3', true],
  ['rack=R9 or rack=R8', false],
  ['r1 state=failed or r1 state=available', true],
  ['"rack=R3"', false], // quotes make words of it, which stand nowhere
  ['"big box"', true],
])('search %j matches: %s', (search, want) => {
  expect(parse(search).faults).toEqual([])
  expect(finds(search)).toBe(want)
})

test.each([
  ['colour=red', 'colour'],
  ['memory>lots', 'lots'],
  ['memory=lots', 'lots'],
  ['lastSeen>soon', 'soon'],
  ['lastSeen=1h', 'lastSeen>1h'],
  ['name>5', 'name='],
  ['name~(', 'regular expression'],
  ['label:', 'label:gpu'],
  ['or rack=R3', 'between'],
  ['rack=R3 or', 'between'],
  ['"open', 'close it'],
])('search %j says what is not understood: %s', (search, want) => {
  expect(parse(search).faults.join()).toContain(want)
})

test('what is not understood does not hide what the rest finds', () => {
  expect(finds('colour=red r1')).toBe(true)
  expect(finds('colour=red r2')).toBe(false)
})

test('sizes and times are read as people write them', () => {
  expect(numberOf('1.5G')).toBe(1.5 * 2 ** 30)
  expect(numberOf('64GiB')).toBe(64 * 2 ** 30)
  expect(numberOf('many')).toBeNaN()
  expect(secondsOf('15m')).toBe(900)
  expect(secondsOf('1.5h')).toBe(5400)
  expect(secondsOf('15')).toBeNaN()
})

test('a value is put into a search and taken out again', () => {
  expect(turned('web', 'rack', 'R3')).toBe('web rack=R3')
  expect(turned('web rack=R3', 'rack', 'R4')).toBe('web rack=R4')
  expect(turned('web rack=R4', 'rack', 'R4')).toBe('web')
  expect(turned('', 'model', 'Big Box')).toBe('model="Big Box"')
  expect(turned('model="Big Box" x', 'model', 'Big Box')).toBe('x')
  expect(has('model="Big Box" x', 'model', 'Big Box')).toBe(true)
  expect(turned('', 'label:gpu', 'a100')).toBe('label:gpu=a100')
  expect(matches(host, parse(turned('', 'label:gpu', 'a100')))).toBe(true)
})

test('the last word is completed', () => {
  expect(completions('mem', [host])).toContain('memory>')
  expect(completions('web ra', [host])).toEqual(['web rack='])
  expect(completions('rack=', [host])).toEqual(['rack=R3 '])
  expect(completions('!rack=r', [host])).toEqual(['!rack=R3 '])
  expect(completions('model=b', [host])).toEqual(['model="Big Box" '])
  expect(completions('lab', [host])).toEqual(['label:gpu', 'label:team'])
  expect(completions('label:gpu=', [host])).toEqual(['label:gpu=a100 '])
})

test('a search is a selector where there is an equal one', () => {
  expect(selectorOf('rack=R3 label:gpu', [host])).toBe('rack=R3,label:gpu')
  expect(selectorOf('!label:gpu model!="Big Box"', [host])).toBe('!label:gpu,product!=Big Box')
  expect(selectorOf('label:gpu=a100', [host])).toBe('label:gpu=a100')
  for (const none of [
    '',
    'web',
    'memory>1G',
    'rack=r3',
    'rack=R3 or rack=R4',
    'rack="a,b"',
    'rack~R',
    'colour=red',
    'pool=x',
    '"rack=R3"',
  ])
    expect(selectorOf(none, [host]), none).toBeUndefined()
})

test('values of lists and labels are counted one by one', () => {
  expect(valuesOf(host, 'flag')).toEqual(['protected'])
  expect(valuesOf(host, 'label:gpu')).toEqual(['a100'])
  expect(valuesOf(host, 'pool')).toEqual([''])
})

test('names of the language itself are no keys of objects', () => {
  expect(parse('constructor=x').faults).not.toEqual([])
  expect(parse('__proto__=x').faults).not.toEqual([])
})
