import type { Schemas } from '../../api/client'
import { linesOf } from '../../parts/written'

export type ImportRequest = Schemas['ImportRequest']
export type Kind = 'catalogue' | 'kernel' | 'disk' | 'oci'

// Source is where a file comes from: an address, or an artefact that was uploaded, with the name of the file.
export interface Source {
  at: string
  name?: string
}

// Wanted is the import as it is filled in.
export interface Wanted {
  kind: Kind
  name: string
  os: string
  release: string
  arch: string
  place: 'publisher' | 'package' | 'mirror'
  mirror: string
  sums: string
  signatureKey: string
  kernel: Source
  initrd: Source
  disk: Source
  sha256: string
  remote: string
  diskFormat: string
  format: string
  formatVersion: string
  args: string
  isInstaller: boolean
  memoryMiB: string
}

export const nothing: Wanted = {
  kind: 'catalogue',
  name: '',
  os: '',
  release: '',
  arch: 'x86_64',
  place: 'publisher',
  mirror: '',
  sums: '',
  signatureKey: '',
  kernel: { at: '' },
  initrd: { at: '' },
  disk: { at: '' },
  sha256: '',
  remote: '',
  diskFormat: '',
  format: '',
  formatVersion: '',
  args: '',
  isInstaller: false,
  memoryMiB: '',
}

// nameFor proposes a name, such as debian-12.
export function nameFor(os: string, release: string): string {
  return [os, release]
    .filter(Boolean)
    .join('-')
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 63)
}

// lacking says what is missing before it can be sent; '' for nothing. What is wrong, the server says.
export function lacking(w: Wanted): string {
  if (!w.name) return 'it has no name'
  if (w.kind === 'catalogue' && !w.os) return 'no system is chosen'
  if (w.kind === 'catalogue' && !w.release) return 'no release is chosen'
  if (w.kind === 'catalogue' && w.place === 'mirror' && !w.mirror) return 'the mirror has no address'
  if (w.kind === 'kernel' && !w.kernel.at) return 'there is no kernel'
  if (w.kind === 'disk' && !w.disk.at) return 'there is no disk image'
  if (w.kind === 'oci' && !w.remote) return 'the registry is not named'
  return ''
}

const fileOf = (role: string, s: Source, sha256 = '') => ({
  role,
  source: s.at.trim(),
  ...(s.name && { name: s.name }),
  ...(sha256.trim() && { sha256: sha256.trim() }),
})

// requestOf is what is sent.
export function requestOf(w: Wanted): ImportRequest {
  const r: ImportRequest = { name: w.name.trim(), arch: w.arch }
  const args = linesOf(w.args)
  if (w.kind === 'catalogue') {
    r.os = w.os
    r.release = w.release.trim()
    if (w.place === 'package') r.from = 'package'
    if (w.place === 'mirror') r.from = w.mirror.trim()
  }
  if (w.sums.trim() && w.kind !== 'oci') r.sums = w.sums.trim()
  if (w.signatureKey.trim() && w.kind !== 'oci') r.signatureKey = w.signatureKey.trim()
  if (w.kind === 'kernel') {
    r.files = [fileOf('kernel', w.kernel), ...(w.initrd.at.trim() ? [fileOf('initrd', w.initrd)] : [])]
    r.isInstaller = w.isInstaller
    if (Number(w.memoryMiB) > 0) r.memoryMiB = Number(w.memoryMiB)
  }
  if (w.kind === 'disk') r.files = [fileOf('disk', w.disk, w.sha256)]
  if (w.kind === 'oci') r.remote = w.remote.trim()
  if (w.kind === 'disk' || w.kind === 'oci') {
    if (w.diskFormat) r.diskFormat = w.diskFormat
  } else if (args.length > 0) {
    r.kernelArgs = args
  }
  if (w.format && w.kind !== 'catalogue') r.configs = [{ format: w.format, version: w.formatVersion.trim() }]
  return r
}

const quoted = (s: string) => (/^[A-Za-z0-9._:/@=%+-]+$/.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`)

// commandOf is the same as a command. The sum of one file can be given by the API only.
export function commandOf(r: ImportRequest): string {
  const parts = ['slipway', 'image', 'import', quoted(r.name || 'NAME')]
  const flag = (name: string, value: string | number | undefined) =>
    value && parts.push(`--${name}`, quoted(String(value)))
  flag('os', r.os)
  flag('release', r.release)
  if (r.arch !== 'x86_64') flag('arch', r.arch)
  flag('from', r.from)
  flag('sums', r.sums)
  flag('signature-key', r.signatureKey && 'FILE')
  for (const f of r.files ?? []) flag(f.role, f.source)
  flag('remote', r.remote)
  flag('disk-format', r.diskFormat)
  for (const c of r.configs ?? []) flag('config', `${c.format}=${c.version}`)
  for (const a of r.kernelArgs ?? []) flag('arg', a)
  flag('memory-mib', r.memoryMiB)
  if (r.isInstaller) parts.push('--installer')
  return parts.join(' ')
}
