import { expect, test } from 'vitest'
import { bodyOf, cliOf, type Form, filledOf, lacksOf, saidOf, shownOf } from './kinds'

const form: Form = {
  one: 'golden',
  many: 'goldens',
  needs: 'admin',
  own: ['createdAt', 'version'],
  add: 'Add one',
  verb: 'Add',
  cmds: ['create', ''],
  fields: [
    { name: 'name', label: 'Name', isMust: true },
    { name: 'selector', label: 'Selector', kind: 'selector', isMust: true, flag: 'selector' },
    { name: 'diskN', label: 'Disks', kind: 'number', says: '{} disks', flag: 'disks' },
    { name: 'requirements.memoryBytes', label: 'Memory', kind: 'gib', flag: 'require memory={}G' },
    { name: 'requirements.expression', label: 'Expression', flag: 'require expression={}' },
    { name: 'firmware', label: 'Firmware', kind: 'pairs', flag: 'firmware' },
    { name: 'ranges', label: 'Ranges', kind: 'ranges' },
    { name: 'isStrict', label: 'Strict', kind: 'flag', flag: 'strict' },
    { name: 'mode', label: 'Mode', first: 'full' },
    { name: 'router', label: 'Router', when: (f) => f.mode === 'six' },
  ],
}
const stored = {
  name: 'r650',
  selector: 'product=R650',
  diskN: 2,
  requirements: { memoryBytes: 2 ** 36, portMbps: 25_000 },
  firmware: { bios: '2.1' },
  ranges: [{ first: '10.0.0.1', last: '10.0.0.9' }],
  isStrict: true,
  mode: 'off',
  router: 'old',
  createdAt: '2026-11-27T12:00:00Z',
  version: 3,
}

test('a form keeps what it does not show, and sends nothing that the server fills in', () => {
  const filled = filledOf(form, stored)
  expect(filled).toMatchObject({ diskN: '2', firmware: 'bios=2.1', isStrict: 'yes', ranges: '10.0.0.1-10.0.0.9' })
  expect(filled['requirements.memoryBytes']).toBe('64')
  const { createdAt: _, version: __, router: ___, ...same } = stored
  expect(bodyOf(form, stored, filled)).toEqual(same)
  expect(bodyOf(form, stored, { ...filled, 'requirements.memoryBytes': '', isStrict: '', diskN: ' ' })).toEqual({
    name: 'r650',
    selector: 'product=R650',
    requirements: { portMbps: 25_000 },
    firmware: { bios: '2.1' },
    ranges: stored.ranges,
    mode: 'off',
  })
  expect(stored.requirements.memoryBytes).toBe(2 ** 36) // what is on the screen is not changed
})

test('a new one begins with what is usual, and says what it lacks', () => {
  const filled = filledOf(form, undefined)
  expect(filled.mode).toBe('full')
  expect(lacksOf(form, filled)).toBe('it has no name')
  expect(lacksOf(form, { ...filled, name: 'x', selector: 'mac' })).toBe('')
  expect(bodyOf(form, undefined, { ...filled, name: ' x ', 'requirements.expression': 'true' })).toEqual({
    name: 'x',
    requirements: { expression: 'true' },
    mode: 'full',
  })
  expect(shownOf(form, true, filled).map((f) => f.name)).not.toContain('router')
  expect(shownOf(form, true, { ...filled, mode: 'six' }).map((f) => f.name)).toContain('router')
  expect(shownOf(form, false, filled).map((f) => f.name)).not.toContain('name')
})

test('the same is a command, where there is one', () => {
  const filled = filledOf(form, { ...stored, requirements: { memoryBytes: 2 ** 36, expression: 'a b' } })
  expect(cliOf(form, true, filled)).toBe(
    "slipway golden create r650 --selector product=R650 --disks 2 --require memory=64G --require 'expression=a b' --firmware bios=2.1 --strict",
  )
  expect(cliOf(form, false, filled)).toBe('')
})

test('a column says its fields in words', () => {
  const said = (name: string) => saidOf(form, stored, name)
  expect([said('diskN'), said('requirements.memoryBytes'), said('firmware'), said('requirements.expression')]).toEqual([
    ['2 disks'],
    ['64.0 GiB'],
    ['bios 2.1'],
    [],
  ])
})

test('one may have another key, roles, fields of the form only, and a field that is wrong', () => {
  const d: Form = {
    ...form,
    key: 'address',
    fields: [
      { name: 'address', label: 'Address', isMust: true },
      { name: 'by', label: 'By', kind: 'choice', first: 'mac', isAside: true },
      { name: 'mac', label: 'MAC', isMust: true, when: (f) => f.by === 'mac', flag: 'mac' },
      { name: 'port', label: 'Port', when: (f) => f.by === 'port', flag: 'port' },
      { name: 'expiresAt', label: 'Valid for', kind: 'expiry', flag: 'expires-in {}h' },
      { name: 'grants', label: 'Roles', kind: 'roles', wrong: (is) => (is === 'viewer' ? 'too little' : undefined) },
    ],
  }
  const given = { subnet: 's', grants: [{ role: 'operator', pool: 'web' }, { role: 'viewer' }] }
  const filled = filledOf(d, given)
  expect(filled).toMatchObject({ by: 'mac', grants: 'operator@web viewer' })
  expect(lacksOf(d, { ...filled, address: '10.0.0.1' })).toBe('it has no MAC')
  expect(lacksOf(d, { ...filled, address: '10.0.0.1', mac: 'm', grants: 'viewer' })).toBe('the roles: too little')
  expect(shownOf(d, false, filled).map((f) => f.name)).toEqual(['by', 'mac', 'expiresAt', 'grants'])
  expect(bodyOf(d, given, { ...filled, address: '10.0.0.1', mac: 'm', port: 'p' })).toEqual({
    ...given,
    address: '10.0.0.1',
    mac: 'm',
  })
  const soon = bodyOf(d, undefined, { ...filled, expiresAt: '24' }).expiresAt
  expect(Date.parse(String(soon)) - Date.now()).toBeGreaterThan(86_000_000)
  expect(cliOf(d, true, { ...filled, mac: 'm', expiresAt: '24' })).toBe(
    'slipway golden create ADDRESS --mac m --expires-in 24h --role operator --pool web',
  )
})
