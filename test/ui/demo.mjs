// A rack as a small company has it: forty hosts with names, places and controllers, most of them installed, some not, and a
// few in trouble. For the pictures of docs and for the stories that look at every screen. The machines are simulated, and
// everything that is seen of them has happened.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Rack } from './rack.mjs'

const outlets = '127.0.0.1:8991'
const makers = ['18:66:da', '94:40:c9', '0c:c4:7a', '08:94:ef'] // as the simulator deals them out
const macOf = (i, seed = 1) => [makers[i % makers.length], ...[seed, i >> 8, i & 0xff].map((n) => n.toString(16).padStart(2, '0'))].join(':')

// Names with how many there are, what runs on them, and the rack of the first.
const fleet = [
  { role: 'web', n: 12, rack: 'a1', profile: 'debian-web', pool: 'web' },
  { role: 'db', n: 4, rack: 'a2', profile: 'debian-db', height: 2 },
  { role: 'cp', n: 3, rack: 'a2', profile: 'k8s-node' },
  { role: 'node', n: 13, rack: 'a3', profile: 'k8s-node', pool: 'kubernetes' },
  { role: 'spare', n: 8, rack: 'a4' },
]
const two = (n) => String(n).padStart(2, '0')

// hosts are all of them, in the order of the simulated machines.
function hosts() {
  const unit = {}
  const all = []
  for (const { role, n, rack, profile, pool, height = 1 } of fleet)
    for (let k = 1; k <= n; k++) {
      const at = (unit[rack] ??= 3)
      unit[rack] += height + (k % 4 === 0 ? 1 : 0)
      all.push({ name: `${role}-${two(k)}`, role, rack, unit: at, height, profile, pool, mac: macOf(all.length) })
    }
  return all
}

function yaml(all) {
  const lines = ['hosts:']
  for (const h of all)
    lines.push(`  - {name: ${h.name}, macs: ['${h.mac}'], site: fra1, row: a, rack: ${h.rack}, unit: ${h.unit}, height: ${h.height}, labels: {role: ${h.role}, env: ${h.role === 'spare' ? 'none' : 'prod'}}, accepted: true}`)
  lines.push('bmcs:')
  const options = `{on.path: '/{{.System}}/on', off.path: '/{{.System}}/off', cycle.path: '/{{.System}}/cycle', status.path: '/{{.System}}/power', status.pointer: /power, timeout: 5s, pause: 100ms}`
  for (const h of all) lines.push(`  - {host: ${h.name}, driver: webhook, address: 'http://${outlets}', system: '${h.mac}', options: ${options}}`)
  lines.push(
    'subnets:',
    '  - {name: storage, cidr: 10.20.4.0/24, mode: full, gateway: 10.20.4.1, ranges: [10.20.4.100-10.20.4.199]}',
    '  - {name: office-lab, cidr: 10.20.8.0/24, mode: reservations, gateway: 10.20.8.1}',
  )
  return lines.join('\n')
}

export const until = async (what, is, within = 300_000) => {
  for (const end = Date.now() + within; Date.now() < end; ) {
    const v = await is()
    if (v) return v
    await new Promise((r) => setTimeout(r, 300))
  }
  throw new Error(`it did not come to that: ${what}`)
}

// demo starts the rack and returns it with everything in it. small leaves out most of the machines.
export async function demo(name, { small = false } = {}) {
  const config = join(await mkdtemp(join(tmpdir(), 'slipway-demo-')), 'slipway.yaml')
  await writeFile(config, 'deadlines: {boot.decided: 2h}\n') // strangers that wait to be accepted ask again only while they are simulated
  const rack = await Rack.start(name, '--range', '10.77.1.10-10.77.1.90', '--config', config)
  await rm(dirname(config), { recursive: true })
  await fill(rack, small).catch(async (err) => {
    await rack.end()
    throw err
  })
  return rack
}

const list = async (rack, noun, ...more) => {
  const all = JSON.parse(await rack.cli(noun, 'list', ...more, '-o', 'json'))
  return all.items ?? all
}

// told says on standard error how far it is, for those who wait.
const told = (what) => process.env.SLIPWAY_DEMO_TELLS && console.error(new Date().toISOString().slice(11, 19), what)

async function fill(rack, small) {
  const all = hosts()
  await catalogue(rack)
  told('images and profiles')
  await people(rack)
  for (const [r, notes] of [['a1', 'Cold aisle, by the door'], ['a2', ''], ['a3', 'Two power feeds'], ['a4', 'Spares']])
    await rack.cli('rack', 'set', `fra1/a/${r}`, '--height', '20', ...(notes ? ['--notes', notes] : []))
  await rack.cli('import', await rack.file(yaml(all)).then(asYAML))
  await rack.cli('pool', 'create', 'web', '--selector', 'label:role=web', '--max-provision', '4', '--max-destroy', '1')
  await rack.cli('pool', 'create', 'kubernetes', '--selector', 'label:role=node', '--min-spare', '1', '--max-provision', '3')
  await rack.cli('pool', 'create', 'spare', '--selector', 'label:role=spare', '--min-spare', '2')
  await rack.cli('target', 'add', 'prod', '--endpoint', '10.77.1.5:6443', '--kubernetes', '1.35.0', '--cluster-name', 'prod').catch(() => rack.cli('target', 'add', 'prod', '--endpoint', '10.77.1.5:6443', '--kubernetes', '1.35.0'))
  for (const [address, i] of [['10.77.1.6', 16], ['10.77.1.7', 17], ['10.77.1.8', 18]]) await rack.cli('reservation', 'create', address, '--mac', all[i].mac, '--hostname', all[i].name)
  await rack.cli('acceptrule', 'create', 'row-a', '--selector', 'site=fra1,row=a')
  await rack.cli('golden', 'create', 'dl360', '--selector', 'product=~ProLiant DL360.*', '--require', 'cpu=16,memory=32G,disk=500G')

  await rack.machines(4, '--seed', '2', '--expect', 'waiting') // strangers; only one simulator has a namespace at a time
  void rack.machines(all.length, '--firmware', 'uefi=2,bios,uefi-http', '--power', outlets, '--power-netns', `${rack.name}-srv`, '--download', '--timeout', '60m')
  const first = all.filter((h) => h.name !== 'spare-07' && (!small || /0[12]$/.test(h.name)))
  told('machines come')
  for (const h of first) await rack.cli('host', 'inspect', h.name)
  await until('all are inspected', async () => (await list(rack, 'host', '--state', 'available')).filter((h) => first.some((f) => f.name === h.name)).length >= first.length)
  told('inspected')
  for (const h of first.filter((h) => h.profile)) await rack.cli('machine', 'create', h.name, '--profile', h.profile, '--host', h.name, ...(h.pool ? ['--pool', h.pool] : []))
  await until('all run', async () => (await list(rack, 'machine')).every((m) => m.phase === 'running'))

  told('installed')

  // Some trouble, and some work under way.
  await rack.cli('host', 'protect', 'db-01')
  await rack.cli('host', 'maintain', 'spare-02')
  await rack.cli('host', 'cordon', 'spare-03')
  for (const name of ['spare-05', 'spare-06']) await rack.cli('host', 'bmc', name, '--driver', 'fake', '--system', name) // it switches nothing on
  await rack.cli('host', 'bmc', 'spare-08', '--driver', 'redfish', '--address', 'https://127.0.0.1:9', '--username', 'admin', '--password-file', await rack.file('calvin'))
  await rack.cli('machine', 'create', 'batch-01', '--profile', 'debian-web', '--host', 'spare-05')
  if (!small) await rack.cli('machine', 'create', 'batch-02', '--profile', 'debian-web', '--host', 'spare-06')
  await rack.cli('machine', 'create', 'gpu-01', '--profile', 'k8s-node', '--require', 'cpu=512') // there is none
  await rack.cli('machine', 'delete', small ? 'web-01' : 'web-12')
  if (!small) await failedOne(rack)
  await until('there is an issue', async () => (await list(rack, 'issue')).length > 0)
}

// failedOne ends an installation where its host cannot be used as it is.
async function failedOne(rack) {
  const op = await until('it is installed', async () => (await list(rack, 'operation', '--host', 'spare-06')).find((o) => o.step === 'netboot'))
  await rack.cli('operation', 'cancel', op.id)
}

const asYAML = async (path) => {
  await rename(path, `${path}.yaml`)
  return `${path}.yaml`
}

async function catalogue(rack) {
  const files = {}
  for (const [name, size] of [['vmlinuz', 90_000], ['initrd', 250_000], ['debian-12.raw', 900_000], ['ubuntu-24.04.raw', 1_400_000]]) {
    files[name] = join(rack.data, name)
    await writeFile(files[name], randomBytes(size))
  }
  await rack.cli('image', 'import', 'agent-x86-64', '--os', 'slipway-agent', '--release', '1', '--kernel', files.vmlinuz, '--initrd', files.initrd)
  await rack.cli('image', 'import', 'debian-12', '--os', 'debian', '--release', '12', '--disk', files['debian-12.raw'], '--config', 'cloud-init=24.1')
  await rack.cli('image', 'import', 'ubuntu-2404', '--os', 'ubuntu', '--release', '24.04', '--disk', files['ubuntu-24.04.raw'], '--config', 'cloud-init=24.1')
  await rack.cli('image', 'import', 'rescue', '--kernel', files.vmlinuz, '--initrd', files.initrd)
  await rack.cli('secret', 'set', 'admin-hash', '--file', await rack.file('$6$rounds=4096$slipway$x'), '--about', 'Password hash of admin')
  await rack.cli('secret', 'set', 'db-backup-key', '--file', await rack.file('0123456789abcdef'), '--about', 'Key of nightly backups')
  await rack.cli('layer', 'set', 'global', await rack.file('time: {ntpServers: [ntp1.example.com, ntp2.example.com]}\n'))
  await rack.cli('profile', 'create', 'debian-web', '--image', 'debian-12', '--config', await rack.file(web))
  await rack.cli('profile', 'create', 'debian-db', '--image', 'debian-12', '--config', await rack.file(db))
  await rack.cli('profile', 'create', 'k8s-node', '--image', 'ubuntu-2404', '--config', await rack.file(node))
  await rack.cli('profile', 'update', 'debian-web', '--config', await rack.file(web.replace('[nginx]', '[nginx, prometheus-node-exporter]')))
}

const base = `host:
  timezone: Europe/Berlin
users:
  - name: admin
    groups: [sudo]
    sshKeys:
      - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8xkq0q1gqB0aJr1x7Xq2cVf6Jm1w8zFh3yH2d5k9Qw anna@example
files:
  - path: /etc/motd
    text: |
      {{ .Host.Name }} in {{ .Host.Place.Rack }}, owned by the platform team
`
const web = `${base}packages: {install: [nginx]}\n`
const db = `${base}packages: {install: [postgresql]}\n`
const node = base

async function people(rack) {
  for (const [name, full, role, ...more] of [['anna', 'Anna Keller', 'admin'], ['jonas', 'Jonas Brandt', 'operator'], ['mei', 'Mei Tanaka', 'viewer']])
    await rack.cli('user', 'create', name, '--full-name', full, '--role', role, '--password-file', await rack.file(`correct horse ${name}`), ...more)
  await rack.cli('token', 'create', 'ci', '--role', 'operator', '--expires-in', '720h')
  await rack.cli('token', 'create', 'monitoring', '--role', 'viewer')
}

// anna is somebody to log in as.
export const anna = { user: 'anna', password: 'correct horse anna' }

// known are names and numbers of what there is, for addresses.
export async function known(rack) {
  const [operation] = await list(rack, 'operation', '--kind', 'install', '--all')
  const [audit] = await list(rack, 'audit', '--noun', 'profile')
  return { name: 'web-02', operation: operation.id, audit: audit.id }
}
