import { expect, test } from 'vitest'
import { bodyOf, cliOf, namesOf, nothingWanted } from './wanted'

test('several machines are numbered', () => {
  expect(namesOf({ name: 'web', count: '1' })).toEqual(['web'])
  expect(namesOf({ name: 'web', count: '3' })).toEqual(['web-1', 'web-2', 'web-3'])
  expect(namesOf({ name: 'r#-web', count: '2' })).toEqual(['r1-web', 'r2-web'])
  expect(namesOf({ name: 'web', count: '0' })).toEqual(['web'])
  expect(namesOf({ name: 'web', count: 'x' })).toEqual(['web'])
  expect(namesOf({ name: 'web', count: '5000' })).toHaveLength(100)
})

test('what is left out is not sent', () => {
  expect(bodyOf({ ...nothingWanted, profile: 'p' }, 'web')).toEqual({ name: 'web', profile: 'p' })
})

test('a form becomes a machine and the same command', () => {
  const w = {
    ...nothingWanted,
    profile: 'debian',
    pool: 'a',
    selector: 'rack=r1',
    domain: 'prefer:r2',
    parameters: 'zone=a\n\nkey = b=c',
    hooks: 'pre-fence:storage',
  }
  expect(bodyOf(w, 'web')).toEqual({
    name: 'web',
    profile: 'debian',
    pool: 'a',
    placement: { selector: 'rack=r1', failureDomain: 'r2', isDomainPreferred: true },
    parameters: { zone: 'a', key: 'b=c' },
    hooks: [{ step: 'pre-fence', owner: 'storage' }],
  })
  expect(cliOf(w, 'web')).toBe(
    "slipway machine create web --profile debian --pool a --selector rack=r1 --failure-domain prefer:r2 --set zone=a --set 'key = b=c' --hook pre-fence:storage",
  )
})
