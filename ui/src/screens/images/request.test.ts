import { expect, test } from 'vitest'
import { bytesOf, restOf } from '../../parts/bytes'
import { commandOf, lacking, nameFor, nothing, requestOf } from './request'

test('a known system is asked for by name, from where it is chosen', () => {
  const w = { ...nothing, name: 'debian-12', os: 'debian', release: '12' }
  expect(lacking(w)).toBe('')
  expect(requestOf(w)).toEqual({ name: 'debian-12', arch: 'x86_64', os: 'debian', release: '12' })
  expect(commandOf(requestOf({ ...w, place: 'package', arch: 'arm64' }))).toBe(
    'slipway image import debian-12 --os debian --release 12 --arch arm64 --from package',
  )
  expect(lacking({ ...w, place: 'mirror' })).toBe('the mirror has no address')
})

test('an uploaded disk image is named by its digest, with the sum that it should have', () => {
  const at = `sha256:${'a'.repeat(64)}`
  const r = requestOf({
    ...nothing,
    kind: 'disk',
    name: 'd',
    disk: { at, name: 'd.qcow2' },
    sha256: 'ff',
    format: 'cloud-init',
    formatVersion: '24.1',
  })
  expect(r.files).toEqual([{ role: 'disk', source: at, name: 'd.qcow2', sha256: 'ff' }])
  expect(r.configs).toEqual([{ format: 'cloud-init', version: '24.1' }])
})

test('what was filled in for another kind is not sent', () => {
  const r = requestOf({
    ...nothing,
    kind: 'oci',
    name: 'x',
    remote: 'oci://r/x@sha256:1',
    args: 'quiet',
    os: 'debian',
    kernel: { at: 'http://x' },
  })
  expect(r).toEqual({ name: 'x', arch: 'x86_64', remote: 'oci://r/x@sha256:1' })
})

test('the command survives hostile text', () => {
  expect(
    commandOf(requestOf({ ...nothing, kind: 'kernel', name: 'k', kernel: { at: "http://h/';rm -rf /" } })),
  ).toContain(`--kernel 'http://h/'\\'';rm -rf /'`)
})

test('a name is proposed that the server takes', () => {
  expect(nameFor('ubuntu', '24.04')).toBe('ubuntu-24-04')
  expect(nameFor('Debian 12_generic', '')).toBe('debian-12-generic')
})

test('sizes and times are said as people say them', () => {
  expect([0, 1023, 1536, 200 * 2 ** 30].map(bytesOf)).toEqual(['0 bytes', '1023 bytes', '1.5 KiB', '200 GiB'])
  expect(restOf(0, 100, 0)).toBe('')
  expect([restOf(0, 100, 10), restOf(0, 1000, 10), restOf(0, 72000, 10)]).toEqual([
    '10 s left',
    '2 min left',
    '2 h 0 min left',
  ])
})
