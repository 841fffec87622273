import { expect, test } from 'vitest'
import type { Finding } from '../../api/client'
import { blank, changed, commandOf, draftOf, marksOf, merged, sentOf } from './draft'

const profile = {
  name: 'web',
  image: 'debian',
  selector: 'rack=r1',
  priority: 5,
  kernelArgs: ['console=ttyS0', 'quiet'],
  parameters: { disk: '/dev/sda', a: 'x=y' },
  accepts: ['/storage/lvm'],
  isolated: true,
  document: { format: 'butane' as const, text: 'variant: fcos\n' },
  config: 'users: []\n',
}

test('a profile is sent as it was read when nothing is edited', () => {
  expect(sentOf('web', draftOf(profile))).toEqual(profile)
  expect(sentOf('web', { ...blank, image: 'debian', config: '' })).toEqual({
    name: 'web',
    image: 'debian',
    priority: 0,
  })
})

test('edits of different fields meet without a clash', () => {
  const base = draftOf(profile)
  const { draft, clashes } = merged(base, { ...base, config: 'mine\n' }, { ...base, selector: 'rack=r2' })
  expect(clashes).toEqual([])
  expect(changed(base, draft)).toEqual(['selector', 'config'])
})

test('edits of one field clash, unless both say the same', () => {
  const base = draftOf(profile)
  expect(merged(base, { ...base, config: 'mine\n' }, { ...base, config: 'theirs\n' }).clashes).toEqual(['config'])
  expect(merged(base, { ...base, config: 'same\n' }, { ...base, config: 'same\n' }).clashes).toEqual([])
})

test('a finding goes to the line of the text that it names', () => {
  const finding = (source: string): Finding => ({ severity: 'error', code: 'x', message: 'm', path: '/p', source })
  const { here, elsewhere } = marksOf(
    [finding('profile web:12:3'), finding('layer rack/r1:4:1'), finding('')],
    'profile web',
  )
  expect(here.map((m) => [m.line, m.about])).toEqual([[12, '/p']])
  expect(elsewhere.map((m) => m.about)).toEqual(['layer rack/r1:4:1 /p', '/p'])
})

test('a profile whose name begins like another has its own findings', () => {
  const f: Finding = { severity: 'error', code: 'x', message: 'm', source: 'profile web-2:1:1' }
  expect(marksOf([f], 'profile web').here).toEqual([])
})

test('the command says what is changed, and no more', () => {
  const base = draftOf(profile)
  expect(commandOf('web', base, { ...base, selector: "it's=x", isolated: 'no', config: '' })).toBe(
    `slipway profile set web --selector 'it'\\''s=x' --no-isolated --config ''`,
  )
  expect(commandOf('new', undefined, { ...blank, image: 'debian' })).toBe(
    'slipway profile create new --image debian --config new.yaml',
  )
})
