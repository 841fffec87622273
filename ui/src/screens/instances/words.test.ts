import { describe, expect, it } from 'vitest'
import { deleteNot, drainNot, dutiesOf, type Instance, inviteNot, isAlone, placesOf, signOf } from './words'

const one = (name: string, more: Partial<Instance> = {}) =>
  ({ name, life: 'alive', isDrained: false, isThis: false, isLeader: false, duties: [], ...more }) as Instance
const duty = (name: string) => ({ name, epoch: 1, sinceAt: '2026-11-28T04:00:00Z', reason: 'nobody had it' })

describe('instances', () => {
  it('are drained only while another lives that takes over', () => {
    const a = one('a')
    expect(drainNot(a, [a])).toMatch(/no other/)
    expect(drainNot(a, [a, one('b')])).toBeUndefined()
    expect(drainNot(a, [a, one('b', { isDrained: true })])).toMatch(/no other/)
    expect(drainNot(a, [a, one('b', { life: 'unknown' })])).toMatch(/no other/)
    const silent = one('b', { life: 'silent' })
    expect(drainNot(silent, [silent])).toBeUndefined()
  })
  it('are deleted only when they are gone', () => {
    expect(deleteNot(one('a', { isThis: true, life: 'unknown' }))).toMatch(/runs/)
    expect(deleteNot(one('a'))).toMatch(/runs/)
    expect(deleteNot(one('a', { life: 'unknown' }))).toMatch(/nobody knows/)
    expect(deleteNot(one('a', { life: 'silent' }))).toBeUndefined()
    expect(deleteNot(one('a', { life: 'stopped' }))).toBeUndefined()
  })
  it('are invited where the database can have several', () => {
    expect(inviteNot('sqlite')).toMatch(/one instance/)
    expect(inviteNot('postgresql')).toBeUndefined()
    expect(inviteNot(undefined)).toBeUndefined() // the server says it otherwise
  })
  it('say how old their last sign of life is, and unknown is not never', () => {
    expect(signOf(one('a', { isThis: true }))).toBe('now')
    expect(signOf(one('a', { quietSeconds: 1.4 }))).toBe('now')
    expect(signOf(one('a', { quietSeconds: 11.9 }))).toBe('11 s ago')
    expect(signOf(one('a', { quietSeconds: 600 }))).toBe('10 min ago')
    expect(signOf(one('a', { quietSeconds: 9000 }))).toBe('2 h ago')
    expect(signOf(one('a'))).toBe('none seen yet')
  })
  it('are where people reach them', () => {
    expect(placesOf(one('a', { addresses: ['10.0.0.1', 'fe80::1', 'fd00::1'] }))).toBe('10.0.0.1, fd00::1')
  })
  it('have duties, which are listed by name', () => {
    const all = dutiesOf([one('b', { duties: [duty('network/x')] }), one('a', { duties: [duty('engine')] })])
    expect(all.map((d) => [d.name, d.instance])).toEqual([
      ['engine', 'a'],
      ['network/x', 'b'],
    ])
    expect(isAlone([one('a')], 'sqlite')).toBe(true)
    expect(isAlone([one('a')], 'postgresql')).toBe(false)
    expect(isAlone([one('a')], undefined)).toBe(false)
  })
})
