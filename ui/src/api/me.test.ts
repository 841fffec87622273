import { expect, test } from 'vitest'
import { type Me, mayNot, mayNotOn } from './me'

const who = (...grants: Me['grants']): Me => ({ name: 'user ben', via: 'login', grants, needsSetup: false })

test('a role in one pool is none in another', () => {
  const ben = who({ role: 'viewer' }, { role: 'operator', pool: 'a' })
  expect(mayNot(ben, 'operator', 'a')).toBeUndefined()
  expect(mayNot(ben, 'operator', 'b')).toBe('needs role operator in pool b; you are viewer')
  expect(mayNot(ben, 'operator', '')).toBe('needs role operator everywhere; you are viewer')
})

test('what may be done with a host is for the pool that has it', () => {
  const ben = who({ role: 'viewer' }, { role: 'operator', pool: 'a' })
  expect(mayNotOn(ben, 'operator', 'operator')).toBeUndefined()
  expect(mayNotOn(ben, 'operator', 'viewer')).toBe('needs role operator in the pool of this host; you are viewer there')
  expect(mayNotOn(ben, 'operator', undefined)).toMatch(/has not answered yet/)
  expect(mayNotOn(ben, 'admin', 'operator')).toBe('needs role admin; you are operator')
  expect(mayNotOn(who({ role: 'operator' }), 'operator', undefined)).toBeUndefined()
  expect(mayNotOn(who({ role: 'viewer' }), 'operator', undefined)).toBe('needs role operator; you are viewer')
})
