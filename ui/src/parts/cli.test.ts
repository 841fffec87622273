import { expect, test } from 'vitest'
import { flags, shell } from './cli'

test('words are quoted where a shell would read them otherwise', () => {
  expect(shell('r1-u04')).toBe('r1-u04')
  expect(shell('rack=r1,model=~R6.*')).toBe("'rack=r1,model=~R6.*'")
  expect(shell("it's; rm -rf /")).toBe("'it'\\''s; rm -rf /'")
  expect(shell('')).toBe("''")
})

test('flags without a value are left out', () => {
  expect(
    flags({ pool: 'a', host: '', hook: ['pre-boot:x', 'pre-fence:y'], force: true, none: undefined, no: false }),
  ).toBe(' --pool a --hook pre-boot:x --hook pre-fence:y --force')
})
