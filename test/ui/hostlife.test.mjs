// A host from its first packet to its wipe, watched in the browser: inspected, installed, changed, inspected again, cabled
// wrongly, released. The machine is a simulated one that boots, inspects, writes and wipes through the real doors.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { faults, outletOptions, Rack } from './rack.mjs'

const outlets = '127.0.0.1:8991'
const mac = '18:66:da:01:00:00'
const slow = { timeout: 240_000 }
const shots = process.env.SLIPWAY_SHOTS
let rack
let page

before(async () => {
  rack = await Rack.start(`slipway-hostlife-${process.pid % 10000}`)
  for (const [name, size] of [['kernel', 30_000], ['initrd', 90_000], ['disk.raw', 500_000]]) await writeFile(join(rack.data, name), Buffer.alloc(size, `${name}\0`))
  const file = (name) => join(rack.data, name)
  await rack.cli('image', 'import', 'agent-x86-64', '--kernel', file('kernel'), '--initrd', file('initrd'), '--arg', 'slipway.session=${base}/boot/${session}')
  await rack.cli('image', 'import', 'debian12', '--os', 'debian', '--release', '12', '--disk', file('disk.raw'), '--config', 'cloud-init=24.1')
  await rack.cli('profile', 'create', 'debian12', '--image', 'debian12')
  await rack.cli('rack', 'set', 'r1', '--cable', '7:eno1=leaf-9:Ethernet9')
  void rack.machines(1, '--firmware', 'uefi', '--power', outlets, '--power-netns', `${rack.name}-srv`, '--download', '--timeout', '20m')
  page = await rack.page('/hosts')
})
after(() => rack?.end())

// refit changes what the machine is made of.
async function refit(hardware) {
  const [cmd, args] = rack.inside('curl', '-sSf', '-X', 'PUT', `http://${outlets}/${mac}/hardware`, '-d', JSON.stringify({ hardware }))
  await promisify(execFile)(cmd, args)
}
const tab = (name) => page.getByRole('tab', { name, exact: true }).click()
const stateIs = (state) => page.getByText(new RegExp(`^\\W*${state}$`)).first().waitFor(slow)
async function act(verb, fill = async () => {}) {
  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('menuitem', { name: new RegExp(`^${verb}`) }).click()
  const ask = page.getByRole('dialog')
  await fill(ask)
  await ask.getByRole('button', { name: verb, exact: true }).click()
  await ask.waitFor({ state: 'detached' })
}
async function sound(name) {
  if (shots) {
    await mkdir(shots, { recursive: true })
    const wide = page.viewportSize()
    await page.setViewportSize({ ...wide, height: 2200 })
    await page.screenshot({ path: join(shots, `hostlife-${name}.png`), animations: 'disabled' })
    await page.setViewportSize(wide)
  }
  const said = page.errors.length
  assert.deepEqual(await faults(page), [], name)
  page.errors.length = said
}

test('a host that is accepted is inspected, and all that it is made of is shown', slow, async () => {
  await rack.cli('host', 'create', 'h1', '--mac', mac, '--rack', 'r1', '--unit', '7')
  await rack.cli('bmc', 'set', 'h1', '--driver', 'webhook', '--address', `http://${outlets}`, '--system', mac, ...outletOptions())
  await page.goto('/hosts/h1?tab=hardware')
  await page.getByText('No inspection yet').waitFor()
  await act('Inspect')
  await page.getByText('Inspection by our agent').waitFor(slow)
  await page.getByText('Synthetic CPU @ 2.40GHz').first().waitFor()
  await page.getByText('It is the first inspection.').waitFor()
  await stateIs('available')
  await sound('hardware')
  await tab('Storage')
  const disks = page.getByRole('grid', { name: 'Disks' })
  await disks.getByText('nvme0n1').waitFor()
  await page.getByText('No wipe yet').waitFor()
})

test('a cable that is in another port than planned is said on the host and on the rack', slow, async () => {
  await tab('Network')
  await page.getByText(/h1 eno1 \(U7\) should be at leaf-9 port Ethernet9, and is eno1 at leaf-1 port Ethernet1/).waitFor()
  await page.getByRole('grid', { name: 'Network ports' }).getByText('leaf-1').waitFor()
  await sound('network')
  await page.getByRole('link', { name: 'All cables of its rack' }).click()
  await page.getByRole('heading', { name: 'Racks' }).waitFor()
  await page.getByText(/h1 eno1 \(U7\) should be at leaf-9 port Ethernet9/).waitFor()
  await page.getByRole('grid', { name: 'Cables' }).getByRole('link', { name: 'h1' }).waitFor()
  await sound('cabling')
})

test('an installation is watched step by step until the machine runs', slow, async () => {
  await rack.cli('machine', 'create', 'web-1', '--profile', 'debian12')
  await page.goto('/hosts/h1')
  await page.getByText('machine', { exact: false }).getByRole('link', { name: 'web-1' }).first().waitFor()
  const done = page.getByRole('region', { name: 'Boots and operations' })
  await done.getByRole('button', { name: /^install/ }).first().waitFor(slow)
  await stateIs('active')
  // Each step has been and says how long it took.
  const steps = done.getByRole('region', { name: 'install', exact: true }).first()
  const open = steps.getByRole('button', { name: 'Steps of install' })
  if ((await open.getAttribute('aria-expanded')) === 'false') await open.click()
  await steps.getByRole('button', { name: /write.*, done/i }).first().waitFor()
  assert.match(await steps.getByRole('button', { name: /write.*, done/i }).first().innerText(), /\d(\.\d)? (ms|s)/)
  await sound('timeline-active')
})

test('a disk that fails and a new network card are found by the next inspection, and shown as what changed', slow, async () => {
  await rack.cli('machine', 'delete', 'web-1')
  await stateIs('available')
  await refit({
    disks: [
      { name: 'nvme0n1', model: 'Synthetic NVMe', serial: 'NEW-7', sizeBytes: 960 * 2 ** 30, transport: 'nvme', health: 'ok' },
      { name: 'sda', model: 'Synthetic HDD', serial: 'OLD-1', sizeBytes: 4 * 2 ** 40, isRotational: true, transport: 'sata', health: 'SMART expects it to fail' },
    ],
    ports: [
      { name: 'eno1', mac, hasLink: true, speedMbps: 25000, neighbour: { chassis: '02:00:5e:00:00:01', system: 'leaf-9', port: 'Ethernet9', vlan: 77 } },
      { name: 'ens2', mac: '18:66:da:99:00:01', vendor: 'Mellanox', driver: 'mlx5_core', hasLink: false },
    ],
  })
  await page.goto('/hosts/h1?tab=hardware')
  await act('Inspect', (ask) => ask.getByLabel('Restart it if it runs').check())
  const changes = page.getByRole('grid', { name: 'Changes' })
  await changes.getByText(/NEW-7/).first().waitFor(slow)
  await changes.getByText('added').first().waitFor()
  await changes.getByText('removed').first().waitFor()
  await changes.getByText(/18:66:da:99:00:01/).first().waitFor()
  await page.getByLabel('Compare with inspection').selectOption({ index: 1 })
  await page.getByRole('region', { name: /From inspection 1 to 2/ }).getByText(/NEW-7/).first().waitFor()
  await sound('changes')
  await page.getByLabel('Inspection', { exact: true }).selectOption({ index: 1 })
  await page.getByText('It is the first inspection.').waitFor()
  await tab('Storage')
  await page.getByRole('grid', { name: 'Disks' }).getByText('SMART expects it to fail').waitFor()
  // The cable is where it should be now, and is not where it was.
  await tab('Network')
  await page.getByRole('grid', { name: 'Network ports' }).getByText('leaf-9').waitFor()
  await page.getByText(/should be at leaf-9/).waitFor({ state: 'detached' })
  await page.getByRole('heading', { name: /moved|was at|leaf-1/ }).first().waitFor()
  // Both disks are gone permanently. Until somebody says so, a wipe fails: it has no certificate for them.
  const { hardware } = JSON.parse(await rack.cli('host', 'hardware', 'h1', '-o', 'json'))
  assert.equal(hardware.missingDisks.length, 2)
  await rack.cli('host', 'set', 'h1', ...hardware.missingDisks.flatMap((d) => ['--keep-disk', `serial=${d.serial}`]))
})

test('what was released is wiped, with a certificate for each disk', slow, async () => {
  await page.goto('/hosts/h1?tab=storage')
  const wipes = page.getByRole('grid', { name: 'Wipe certificates' })
  await wipes.getByRole('row').filter({ hasText: 'nvme0n1' }).getByText('clean', { exact: true }).waitFor(slow)
  await wipes.getByRole('row').filter({ hasText: 'sda' }).getByText('64 samples').waitFor()
  await sound('storage')
  await page.goto('/hosts/h1')
  await page.getByRole('region', { name: 'Boots and operations' }).getByRole('button', { name: /^clean|^wipe|^release/i }).first().waitFor()
  await sound('timeline-released')
  assert.deepEqual(page.errors.filter((e) => !/the server responded with a status of|net::ERR_/.test(e)), [])
})

test('the second time, each step is measured against how long it takes usually', slow, async () => {
  for (const n of [2, 3]) {
    await rack.cli('machine', 'create', `web-${n}`, '--profile', 'debian12')
    await stateIs('active')
    if (n < 3) {
      await rack.cli('machine', 'delete', `web-${n}`)
      await stateIs('available')
    }
  }
  const open = page.getByRole('region', { name: 'Boots and operations' }).getByRole('button', { name: 'Steps of install' }).first()
  if ((await open.getAttribute('aria-expanded')) === 'false') await open.click()
  await page.getByRole('region', { name: 'install', exact: true }).first().getByText(/usually \d/).first().waitFor()
  await sound('timeline-usual')
})
