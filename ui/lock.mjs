// Completes package-lock.json: npm leaves out the packages of other platforms that a registry does not have, and
// "npm ci" then refuses the lock. Run it after every "npm install".
import { readFileSync, writeFileSync } from 'node:fs'

const path = new URL('./package-lock.json', import.meta.url)
const lock = JSON.parse(readFileSync(path, 'utf8'))
const systems = {
  android: 'android',
  darwin: 'darwin',
  freebsd: 'freebsd',
  linux: 'linux',
  netbsd: 'netbsd',
  openbsd: 'openbsd',
  openharmony: 'openharmony',
  sunos: 'sunos',
  win32: 'win32',
  aix: 'aix',
}
const processors = {
  arm64: 'arm64',
  x64: 'x64',
  ia32: 'ia32',
  arm: 'arm',
  loong64: 'loong64',
  ppc64: 'ppc64',
  riscv64: 'riscv64',
  s390x: 's390x',
  wasm32: 'wasm32',
}
const find = (table, name) =>
  name
    .split(/[-/]/)
    .map((part) => table[part])
    .find(Boolean)

let added = 0
for (const [at, entry] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const known = [`${at}/node_modules/${name}`, `node_modules/${name}`]
    if (at === '' || known.some((k) => lock.packages[k])) continue
    const os = find(systems, name)
    const cpu = find(processors, name)
    lock.packages[`node_modules/${name}`] = {
      version: version.replace(/^[~^]/, ''),
      optional: true,
      ...(entry.dev && { dev: true }),
      ...(os && { os: [os] }),
      ...(cpu && { cpu: [cpu] }),
    }
    added++
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)
console.log(`${added} packages of other platforms added`)
