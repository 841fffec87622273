import { expect, test } from 'vitest'
import { type Controller, verbs } from './verbs'

const host = {
  name: 'r1-u4',
  state: 'available' as const,
  isProtected: false,
  inMaintenance: false,
  isCordoned: false,
  isRetained: false,
  isAdopted: false,
}
const of = (key: string, more: object = {}, bmc: Controller = null) => {
  const v = verbs({ ...host, ...more }, bmc).find((x) => x.key === key)
  if (!v) throw new Error(`no verb ${key}`)
  return v
}

test('what cannot be done says why', () => {
  expect(of('accept').not).toBe('it is accepted already')
  expect(of('inspect', { state: 'active' }).not).toBe('it is active')
  expect(of('clean', { isProtected: true }).not).toBe('it is protected')
  expect(of('install', { machine: 'web-1' }).not).toBe('machine web-1 has it')
  expect(of('delete', { machine: 'web-1' }).not).toBe('machine web-1 has it')
  expect(of('locate').not).toBe('it has no controller')
  expect(of('locate', {}, { driver: 'ipmi', capabilities: ['locate'] }).not).toBeUndefined()
  expect(of('confirm-off', {}, { driver: 'redfish' }).not).toMatch(/redfish/)
  expect(of('confirm-off', {}, { driver: 'manual' }).not).toBeUndefined()
})

test('a flag that is set is offered to be taken away, by command too', () => {
  expect(of('protect').call?.body).toEqual({ on: true })
  const lift = of('protect', { isProtected: true })
  expect(lift.call?.body).toEqual({ on: false })
  expect(lift.cli).toBe('slipway host protect r1-u4 --off')
  expect(lift.warns).toBeTruthy()
})

test('whatever destroys asks for the name', () => {
  for (const v of verbs({ ...host, machine: 'web-1' }, null)) {
    if (/wipe|reinstall|forget/i.test(v.title) && !v.title.includes('machine goes')) expect(v.typed, v.title).toBe(true)
  }
})

test('who may not act is told so at every action', () => {
  const all = verbs(host, null, 'needs role operator; you are viewer')
  expect(all.filter((v) => v.not === undefined).map((v) => v.key)).toEqual(['sticker'])
  const some = verbs(host, null, undefined, 'needs role admin everywhere; you are operator')
  expect(some.find((v) => v.key === 'golden')?.not).toMatch(/admin/)
  expect(some.find((v) => v.key === 'inspect')?.not).toBeUndefined()
})
