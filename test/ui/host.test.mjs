// The page of a host: what is under way, what is late and why, what it is given and by whom, its console, and two people
// at it at once. A real server, simulated machines, and the fake controllers that the server has for trying things out.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { faults, Rack } from './rack.mjs'

let rack
let files
let web
const shots = process.env.SLIPWAY_SHOTS

before(async () => {
  files = await mkdtemp(join(tmpdir(), 'slipway-host-files-'))
  await writeFile(join(files, 'vmlinuz'), randomBytes(200_000))
  await writeFile(join(files, 'initrd'), randomBytes(200_000))
  // A boot that stands still is noticed after seconds, not minutes.
  await writeFile(join(files, 'slipway.yaml'), 'recordConsoles: true\ndeadlines:\n  loader.started: 4s\n  dhcp.ack: 4s\n  dhcp.offer: 4s\n  dhcp.request: 4s\n')
  rack = await Rack.start(`slipway-host-${process.pid % 10000}`, '--config', join(files, 'slipway.yaml'))
  const [cmd, args] = rack.inside('python3', '-m', 'http.server', '--bind', '127.0.0.1', '--directory', files, '8099')
  web = spawn(cmd, args, { stdio: 'ignore' })
})
after(async () => {
  web?.kill('SIGKILL')
  await rack?.end()
  if (files) await rm(files, { recursive: true, force: true })
})

async function sound(page, name) {
  if (shots) {
    await mkdir(shots, { recursive: true })
    const wide = page.viewportSize()
    await page.setViewportSize({ ...wide, height: 2400 }) // what one would scroll to is in the picture, too
    await page.screenshot({ path: join(shots, `host-${name}.png`), animations: 'disabled' })
    await page.setViewportSize(wide)
  }
  const said = page.errors.length
  assert.deepEqual(await faults(page), [], name)
  page.errors.length = said // the page refuses the script that looks for faults, as it should
}

// answered leaves out what the browser says of answers that are meant to be refusals.
const answered = (page) => page.errors.filter((e) => !/the server responded with a status of|net::ERR_/.test(e))
const hosts = async () => {
  const all = JSON.parse(await rack.cli('host', 'list', '-o', 'json'))
  return all.items ?? all
}
const until = async (what, is) => {
  for (const end = Date.now() + 120_000; Date.now() < end; ) {
    const v = await is()
    if (v) return v
    await new Promise((r) => setTimeout(r, 100))
  }
  throw new Error(`it did not come to that: ${what}`)
}

test('a boot is watched live, step by step, and each event is a link', async () => {
  await rack.cli('host', 'create', 'early', '--mac', '52:54:00:e0:00:01')
  const page = await rack.page('/hosts/early')
  await page.getByText('No boot and no operation yet').waitFor()
  await page.context().close()

  void rack.machines(2, '--expect', 'waiting')
  const first = (await until('a machine is discovered', async () => (await hosts()).find((h) => h.state === 'discovered'))).name
  const live = await rack.page(`/hosts/${first}`)
  const done = live.getByRole('region', { name: 'Boots and operations' })
  await done.getByRole('button', { name: /learns what to boot\s*, done/ }).waitFor()
  await live.getByText(/Next: somebody accepts it/).waitFor()
  await done.getByRole('button', { name: /fetches a boot loader\s*, done/ }).click()
  await live.getByRole('heading', { name: 'Events of fetches a boot loader' }).waitFor()
  await live.waitForURL(/step=loader/)
  const events = live.getByRole('region', { name: 'Events' })
  await events.getByText('loader.sent').first().waitFor()
  await events.getByRole('listitem').filter({ hasText: 'loader.sent' }).getByRole('button', { name: 'fields' }).first().click()
  await events.getByText('seconds', { exact: true }).waitFor()
  await sound(live, 'timeline')
  await live.keyboard.press('Tab')

  await live.getByRole('button', { name: 'All of the host' }).click()
  await live.getByLabel('Kind of events').selectOption('dhcp')
  await live.waitForURL(/kind=dhcp/)
  await events.getByText('dhcp.ack').first().waitFor()
  await events.getByText('loader.sent').first().waitFor({ state: 'detached' })
  const link = await events.getByRole('listitem').filter({ hasText: 'dhcp.ack' }).getByRole('link').last().getAttribute('href')
  assert.match(link, /at=\d+/)
  await live.goto(`/hosts/${first}${link}`)
  await live.getByRole('button', { name: 'Newer ones too' }).waitFor()
  await events.getByText('dhcp.ack').first().waitFor()

  await live.getByRole('button', { name: 'Actions' }).click()
  await live.getByRole('menuitem', { name: /^Accept/ }).click()
  const ask = live.getByRole('dialog')
  await ask.getByRole('button', { name: 'Accept' }).click()
  await live.getByText('accepted by').first().waitFor()
  await live.getByRole('button', { name: 'Actions' }).click()
  await live.getByRole('menuitem', { name: /^Accept/ }).getByText('it is accepted already').waitFor()
  await sound(live, 'actions')
  assert.deepEqual(answered(live), [])
  await live.context().close()
})

test('a machine that stands still says so within its deadline, with causes', async () => {
  const known = new Set((await hosts()).map((h) => h.name))
  void rack.machines(1, '--seed', '7', '--fault', 'tftp-abort=1', '--fault', 'http-abort=1', '--firmware', 'bios')
  const stuck = (await until('the machine is discovered', async () => (await hosts()).find((h) => !known.has(h.name)))).name
  const page = await rack.page(`/hosts/${stuck}`)
  await page.getByRole('region', { name: 'Boots and operations' }).getByText(/fetches a boot loader/).first().waitFor()
  rack.racks.at(-1).kill('SIGKILL') // power failed, for good
  const wrong = page.getByRole('region', { name: 'What is wrong' })
  await wrong.getByRole('heading', { name: /its boot has stopped after/ }).waitFor()
  await page.getByText(/Late: /).waitFor()
  await wrong.getByText(/packets get lost|a firewall/).first().waitFor()
  await sound(page, 'stuck')
  const said = await rack.cli('issue', 'list', '--host', stuck)
  assert.match(said, /boot-stalled/)

  // What is likely the cause stands there with what was seen, and the packets themselves are a file.
  const why = page.getByRole('region', { name: 'Why it does not boot' })
  await why.getByRole('heading', { level: 3 }).first().waitFor()
  const { causes } = await page.evaluate(async (h) => (await fetch(`/api/v1/hosts/${h}/diagnosis`)).json(), stuck)
  assert.equal(causes[0].rank, 1)
  await why.getByText(causes[0].sentence).first().waitFor()
  await why.getByText(causes[0].hint).first().waitFor()
  await why.getByRole('button', { name: /^Evidence \(\d+\)$/ }).first().click()
  await why.getByText(causes[0].evidence[0].text).first().waitFor()
  await sound(page, 'why')
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download pcap' }).click()])
  assert.equal(file.suggestedFilename(), `${stuck}.pcap`)
  const pcap = await readFile(await file.path())
  assert.ok([0xa1b2c3d4, 0xa1b23c4d].includes(pcap.readUInt32LE(0)) && pcap.length > 24 + 16 + 240, `${pcap.length} bytes: ${pcap.subarray(0, 24).toString('hex')}`)
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('what a host would be given says which layer said each line, and what differs', async () => {
  await rack.cli('image', 'import', 'tools', '--kernel', 'http://127.0.0.1:8099/vmlinuz', '--initrd', 'http://127.0.0.1:8099/initrd', '--os', 'flatcar', '--release', 'stable')
  await writeFile(join(files, 'base.yaml'), 'users:\n  - name: admin\nfiles:\n  - path: /etc/motd\n    text: |\n      <b>hostile</b> {{ .Host.Name }}\n')
  await rack.cli('profile', 'create', 'web', '--image', 'tools', '--selector', 'mac', '--config', join(files, 'base.yaml'))
  const name = (await hosts()).find((h) => h.state === 'available' && h.name !== 'early').name
  const page = await rack.page(`/hosts/${name}?tab=config`)
  const table = page.getByRole('table', { name: 'Configuration with its layers' })
  await table.getByText('/etc/motd').waitFor()
  await table.getByText(/^profile web:\d+$/).first().waitFor()
  await page.getByText('<b>hostile</b>').first().waitFor()
  await page.getByText('The host has not received a configuration yet.').waitFor()
  await sound(page, 'config')
  await page.getByRole('tab', { name: 'Boot preview' }).click()
  await page.getByText('It would boot').waitFor()
  await page.getByText('#!ipxe').waitFor()
  await sound(page, 'boot')
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('two people change a host at once, and neither change is lost', async () => {
  await rack.cli('host', 'create', 'shared', '--mac', '52:54:00:e0:00:02')
  const page = await rack.page('/hosts/shared?tab=yaml')
  await page.getByText('name: shared').waitFor()
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  const text = page.getByRole('textbox', { name: 'Host shared' })
  const body = JSON.parse(await text.inputValue())
  await text.fill('{ "name": ')
  assert.equal(await page.getByRole('button', { name: 'Save' }).isDisabled(), true)
  await text.fill(JSON.stringify({ ...body, assetTag: 'A-17' }, null, 2))
  await rack.cli('host', 'place', 'shared', '--rack', 'r9') // somebody else is quicker
  await page.getByText('Somebody else has changed the host meanwhile').waitFor()
  await page.getByRole('region', { name: 'What somebody else changed' }).getByText('r9').waitFor()
  await sound(page, 'conflict')
  await page.getByRole('button', { name: 'Merge my changes into theirs' }).click()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('assetTag: A-17').waitFor()
  await page.getByText('rack: r9').waitFor()

  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('menuitem', { name: 'Edit' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('Rack unit').fill('400')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText(/expected number <= 100|100/).first().waitFor()
  await sound(page, 'field-error')
  await form.getByLabel('Rack unit').fill('12')
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByText('r9 / U12').waitFor()

  await rack.cli('host', 'delete', 'shared')
  await page.getByText('There is no such host').waitFor()
  await sound(page, 'gone')
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('the console is live, shared, typed into and recorded; a controller that does not answer says why', async () => {
  await rack.cli('host', 'create', 'talks', '--mac', '52:54:00:e0:00:03')
  await rack.cli('host', 'bmc', 'talks', '--driver', 'fake', '--system', 'talks')
  const page = await rack.page('/hosts/talks?tab=console')
  await page.getByText('Nothing was recorded').waitFor()
  await page.getByRole('button', { name: 'Open console' }).click()
  const line = page.getByRole('textbox', { name: 'Serial console of talks' })
  await page.getByText('Your input goes to the machine').waitFor()
  await line.focus()
  await page.keyboard.press('Enter')
  await until('the console answers', async () => /talks: power /.test(await line.inputValue()))

  const other = await rack.page('/hosts/talks?tab=console')
  await other.getByRole('button', { name: 'Open console' }).click()
  const same = other.getByRole('textbox', { name: 'Serial console of talks' })
  await until('who comes later reads what was said before', async () => /talks: power /.test(await same.inputValue()))
  await other.context().close()

  await page.getByRole('button', { name: 'Read again' }).click()
  await page.getByRole('region', { name: 'Recorded' }).getByText('talks: power').waitFor()
  await page.getByLabel('Search the recording').fill('never said')
  await page.getByText('No line has that text.').waitFor()
  await sound(page, 'console')
  assert.match(await rack.cli('host', 'console', 'talks', '--log'), /talks: power/)

  await page.getByRole('tab', { name: 'BMC' }).click()
  await page.getByRole('button', { name: 'Check it now' }).click()
  await page.getByText(/power: power is/).waitFor()
  await page.getByRole('button', { name: 'Show Sensors' }).click()
  await page.getByRole('grid', { name: 'Sensors' }).waitFor()
  await sound(page, 'bmc')

  // Nobody listens there.
  await rack.cli('host', 'create', 'deaf', '--mac', '52:54:00:e0:00:04')
  await rack.cli('host', 'bmc', 'deaf', '--driver', 'webhook', '--address', 'http://127.0.0.1:9', '--system', 'x', '--option', 'status.path=/x', '--option', 'status.pointer=/power', '--option', 'on.path=/on', '--option', 'off.path=/off')
  await page.goto('/hosts/deaf?tab=bmc')
  await page.getByRole('button', { name: 'Check it now' }).click()
  await page.getByText(/^(Danger alert:)?\s*power: /).first().waitFor()
  await sound(page, 'deaf')
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('what a console says while something is done stands beside the step, and each moment is a link', async () => {
  await rack.cli('image', 'import', 'agent-x86-64', '--kernel', join(files, 'vmlinuz'), '--initrd', join(files, 'initrd'), '--arg', 'slipway.session=${base}/boot/${session}')
  await rack.cli('host', 'create', 'recorded', '--mac', '52:54:00:e0:00:05')
  await rack.cli('host', 'bmc', 'recorded', '--driver', 'fake', '--system', 'recorded')
  await rack.cli('host', 'inspect', 'recorded')
  const log = async () => JSON.parse(await rack.cli('host', 'console', 'recorded', '--log', '-o', 'json'))
  await until('the console is recorded', async () => (await log()).isOpen)
  const page = await rack.page('/hosts/recorded?tab=console')
  await page.getByRole('button', { name: 'Open console' }).click()
  const line = page.getByRole('textbox', { name: 'Serial console of recorded' })
  await page.getByText('Your input goes to the machine').waitFor()
  await line.focus()
  await page.keyboard.press('Enter')
  await until('the console answers', async () => /recorded: power /.test(await line.inputValue()))

  await page.getByRole('tab', { name: 'Timeline' }).click()
  const done = page.getByRole('region', { name: 'Boots and operations' })
  await done.getByRole('button', { name: /, running/ }).first().click()
  const said = page.getByRole('region', { name: 'Console during this step' })
  await said.getByText(/recorded: power /).first().waitFor()
  await sound(page, 'console-beside')
  await said.getByRole('link', { name: /On the Console tab|All \d+ lines/ }).click()
  await page.waitForURL(/tab=console&from=/)
  const lines = page.getByRole('region', { name: 'Recorded' })
  await lines.getByText(/recorded: power /).first().waitFor()
  await lines.getByRole('listitem').getByRole('link').first().click()
  await page.waitForURL(/tab=console&from=[^&]+$/)
  await page.reload()
  await lines.getByText('Shown is what it said from').waitFor()
  await lines.getByRole('listitem').filter({ hasText: 'recorded: power' }).first().waitFor()
  await page.getByLabel('Search the recording').fill('POWER')
  await lines.getByRole('listitem').filter({ hasText: 'recorded: power' }).first().waitFor()
  await sound(page, 'console-moment')
  await lines.getByRole('button', { name: 'All of it' }).click()
  assert.match(await rack.cli('host', 'console', 'recorded', '--since', '1h'), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}recorded: power/m)
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('the code on a sticker leads a phone to the page, and only the sticker is printed', async () => {
  const page = await rack.page('/hosts/talks', { deviceScaleFactor: 3 })
  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('menuitem', { name: 'Sticker with QR code' }).click()
  const sticker = page.getByRole('img', { name: 'talks with a QR code of its page' })
  await sticker.waitFor()
  const picture = join(files, 'sticker.png')
  await sticker.screenshot({ path: picture })
  // zbar is a decoder that phones could use: it knows nothing of how we draw.
  assert.equal(execFileSync('zbarimg', ['--quiet', '--raw', '-Sdisable', '-Sqrcode.enable', picture], { encoding: 'utf8' }).trim(), 'http://127.0.0.1:8067/hosts/talks')
  await page.emulateMedia({ media: 'print' })
  assert.equal(await sticker.isVisible(), true)
  for (const name of ['Actions', 'Print', 'Close']) assert.equal(await page.getByRole('button', { name, exact: true }).first().isVisible(), false, `${name} is not printed`)
  const paper = await page.pdf({ preferCSSPageSize: true })
  assert.equal((paper.toString('latin1').match(/\/Type\s*\/Page\b/g) ?? []).length, 1, 'one page')
  if (shots) await writeFile(join(shots, 'host-sticker.pdf'), paper)
  await page.context().close()
})

for (const [theme, width] of [['light', 400], ['dark', 1400]]) {
  test(`every part of the page is sound in ${theme} colours, ${width} wide`, async () => {
    const page = await rack.page('/', { viewport: { width, height: 900 } })
    const turn = page.getByRole('button', { name: 'Dark colours' })
    if (theme === 'dark' && (await turn.isVisible())) await turn.click()
    const name = (await hosts()).find((h) => h.state === 'available' && !['early', 'deaf', 'talks'].includes(h.name)).name
    await page.goto(`/hosts/${name}`)
    for (const tab of ['Timeline', 'Hardware', 'Network', 'Storage', 'Config preview', 'Boot preview', 'Console', 'BMC', 'YAML', 'Audit']) {
      await page.getByRole('tab', { name: tab, exact: true }).focus()
      await page.keyboard.press('Enter')
      await page.getByRole('tab', { name: tab, exact: true, selected: true }).waitFor()
      await page.getByLabel('Loading').first().waitFor({ state: 'detached' })
      await sound(page, `${theme}-${width}-${tab.toLowerCase().replace(' ', '-')}`)
    }
    assert.deepEqual(answered(page), [])
    await page.context().close()
  })
}
