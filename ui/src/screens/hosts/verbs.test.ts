import { expect, test } from 'vitest'
import type { HostRow } from '../../api/rows'
import { csvOf } from './columns'
import { type BulkItem, byReason, commandOf, foreseen, inChunks, labelsOf, verbs } from './verbs'

const verb = (key: string) => verbs.find((v) => v.key === key) as (typeof verbs)[number]

test('the command says what the request does', () => {
  expect(commandOf(verb('accept'), {}, ['a', 'b'])).toBe('slipway host bulk accept a b')
  expect(commandOf(verb('protect-off'), {}, [], 'rack=R3')).toBe('slipway host bulk protect --selector rack=R3 --off')
  expect(commandOf(verb('labels'), { labels: 'tier=web old-' }, ['a'])).toBe(
    'slipway host bulk set a --label tier=web --label old-',
  )
  expect(commandOf(verb('place'), { rack: "R3'; reboot" }, ['a'])).toBe(
    `slipway host bulk set a --rack 'R3'\\''; reboot'`,
  )
  expect(verb('labels').body({ labels: 'tier=web old-' })).toEqual({
    verb: 'set',
    set: { labels: { tier: 'web', old: null } },
  })
})

test('labels that are none are named', () => {
  expect(labelsOf('a=b nonsense').fault).toContain('nonsense')
  expect(labelsOf('a=b, c-')).toEqual({ labels: { a: 'b', c: null } })
})

test('all that is destructive warns', () => {
  for (const key of ['install', 'clean', 'release', 'power-off', 'power-cycle', 'delete', 'protect-off'])
    expect(verb(key).warns, key).toBeTruthy()
})

test('hosts skipped for the same reason stand together', () => {
  const items = [
    { host: 'a', acts: true },
    { host: 'b', acts: false, reason: 'host b is protected' },
    { host: 'c', acts: false, reason: 'host c is protected' },
    { host: 'd', acts: false, reason: 'there is no host "d"' },
  ] as BulkItem[]
  expect(byReason(items).map(([r, some]) => [r, some.length])).toEqual([
    ['is protected', 2],
    ['there is no host "…"', 1],
  ])
})

test('what will happen is said once, with how many hosts', () => {
  const items = [
    { host: 'a', acts: true, does: 'boots, inspects and powers off {hosts}' },
    { host: 'b', acts: true, does: 'boots, inspects and powers off {hosts}' },
    { host: 'c', acts: false, reason: 'host c is protected', does: 'boots {hosts}' },
    { host: 'd', acts: true, does: 'inspects {hosts}, as soon as somebody starts a boot from the network by hand' },
  ] as BulkItem[]
  expect(foreseen(items)).toEqual([
    'Boots, inspects and powers off 2 hosts',
    'Inspects 1 host, as soon as somebody starts a boot from the network by hand',
  ])
  expect(foreseen(items.slice(0, 1), 'r1-u4')).toEqual(['Boots, inspects and powers off r1-u4'])
})

test('parts go one after the other and can be stopped', async () => {
  const sent: string[][] = []
  let isStopped = false
  const send = async (part: string[]) => {
    sent.push(part)
    return { isDryRun: false, actsN: part.length, skipsN: 0, items: part.map((host) => ({ host, acts: true })) }
  }
  const items = await inChunks(
    ['a', 'b', 'c', 'd', 'e'],
    2,
    send,
    (n) => {
      isStopped = n >= 4
    },
    () => isStopped,
  )
  expect(sent).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ])
  expect(items.length).toBe(4)
})

test('an export keeps hostile texts harmless', () => {
  const h = { name: 'a', serial: '=cmd|x', place: {}, labels: { t: 'a"b,c\nd' } } as unknown as HostRow
  expect(csvOf([h], ['name', 'serial', 'label:t'])).toBe('name,serial,label:t\r\na,\'=cmd|x,"a""b,c\nd"\r\n')
})
