// A whole machine with real firmware, from its first packet to its hardware, all of it done in the browser: the lab's rack
// on libvirt, its controller, its serial console. Emulated, so a boot takes half a minute.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { faults, Rack, slipway } from './rack.mjs'

const why =
  process.env.SLIPWAY_UI && process.env.SLIPWAY_UI !== 'all'
    ? 'boots a virtual machine, which takes minutes: make test-ui runs it'
    : process.getuid() !== 0 && 'needs root and libvirt'
const boot = { timeout: 300_000 } // of firmware, kernel and agent under emulation, beside other work
const shots = process.env.SLIPWAY_SHOTS

// Lab is a rack whose machines are libvirt's, and whose server is reached from here.
class Lab extends Rack {
  static async start() {
    const lab = new Lab()
    lab.folder = await mkdtemp(join(tmpdir(), 'slipway-ui-lab-'))
    lab.process = spawn(slipway, ['lab', 'up', '--by-hand', '--machines', '1', '--accel', 'tcg', '--dir', join(lab.folder, 'lab')], { stdio: ['ignore', 'pipe', 'pipe'] })
    process.once('exit', lab.interrupt) // of a story that is interrupted no hook runs
    let said = ''
    await new Promise((ready, failed) => {
      const take = (chunk) => {
        said += chunk
        if (said.includes('The machines are yours')) ready()
      }
      lab.process.stdout.on('data', take)
      lab.process.stderr.on('data', take)
      lab.process.on('exit', (code) => failed(new Error(`the lab ended with ${code}:\n${said}`)))
    })
    const find = (re) => re.exec(said)?.[1]
    lab.url = find(/^API: +(\S+)$/m)
    lab.token = find(/^Token: +(\S+)$/m)
    lab.controller = find(/address (\S+):$/m)
    lab.system = find(/system (\S+)$/m)
    return lab
  }

  interrupt = () => this.process.kill('SIGINT')

  async end() {
    await this.chromium?.close()
    if (this.process.exitCode === null) {
      const gone = new Promise((r) => this.process.once('exit', r))
      this.interrupt()
      await gone
    }
    process.removeListener('exit', this.interrupt)
    await rm(this.folder, { recursive: true, force: true })
  }
}

let lab
let page
before(async () => {
  if (!why) lab = await Lab.start()
})
after(() => lab?.end())

// step is a part of the story; after one that failed there is nothing for the others to see.
let failed
const step = (name, fn) =>
  test(name, { skip: why }, async () => {
    assert.equal(failed, undefined, `it did not come to this: ${failed}`)
    failed = name
    await fn().catch(async (err) => {
      await picture('failed')
      throw new Error(`${err.message}\nThe page says:\n${await page?.locator('body').ariaSnapshot().catch(() => 'nothing')}\nThe console says:\n${await console_().inputValue({ timeout: 100 }).catch(() => 'nothing')}`)
    })
    failed = undefined
  })
const tab = (name) => page.getByRole('tab', { name, exact: true }).click()
const act = async (name, verb = name) => {
  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('menuitem', { name, exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: verb, exact: true }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}
const heading = () => page.getByRole('heading', { level: 1 }).first()
const console_ = () => page.getByRole('textbox', { name: /^Serial console of/ })
const says = (re) => page.waitForFunction(([l, r]) => new RegExp(r).test(document.querySelector(`[aria-label="${l}"]`)?.value ?? ''), [`Serial console of ${host}`, re.source], boot)
const picture = (name) => shots && page.screenshot({ path: join(shots, `lab-${name}.png`), animations: 'disabled' })
let host

step('a machine that is switched on appears by itself, with the packets of its firmware', async () => {
  page = await lab.page('/hosts')
  const link = page.getByRole('grid', { name: 'Hosts' }).getByRole('link', { name: /^host-/ })
  await link.waitFor(boot)
  host = await link.innerText()
  await link.click()
  await heading().waitFor()
  const events = page.getByRole('region', { name: 'Events' })
  await events.getByText('dhcp.ack').first().waitFor(boot)
  await page.getByRole('region', { name: 'Boots and operations' }).getByRole('button', { name: /learns what to boot/ }).first().waitFor(boot)
  await picture('discovered')
  assert.deepEqual(await faults(page), [])
})

step('its controller is named and asked in the browser', async () => {
  await tab('BMC')
  await page.getByRole('button', { name: 'Name its controller' }).click()
  const form = page.getByRole('dialog')
  await form.getByRole('combobox', { name: 'Driver' }).selectOption('libvirt')
  await form.getByRole('textbox', { name: 'Address' }).fill(lab.controller)
  await form.getByRole('textbox', { name: 'System' }).fill(lab.system)
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Check it now' }).click()
  await page.getByText(/power: power is on/).waitFor()
  await picture('bmc')
  assert.deepEqual(await faults(page), [])
})

step('its serial console is live, and says that it waits to be accepted', async () => {
  await tab('Console')
  await page.getByRole('button', { name: 'Open console' }).click()
  await console_().waitFor()
  await says(/accept/)
  await picture('console')
  assert.deepEqual(await faults(page), [])
})

step('accepted, it boots our agent, which is seen to run, and reports what the machine is made of', async () => {
  await act('Accept')
  await says(/Linux version/)
  await picture('agent')
  await tab('Timeline')
  await page.getByRole('region', { name: 'Boots and operations' }).getByText(/inspect/i).first().waitFor(boot)
  await picture('inspecting')
  await tab('Hardware')
  await page.getByRole('heading', { name: 'Inspection by our agent' }).waitFor(boot)
  await page.getByText(/QEMU Virtual CPU/).first().waitFor()
  await picture('hardware')
  assert.deepEqual(await faults(page), [])
  await page.getByText('power off').first().waitFor(boot)
})

step('its power is switched in the browser, and its next boot is watched', async () => {
  await act('Switch on')
  await page.getByText('power on').first().waitFor(boot)
  await tab('Timeline')
  await page.getByRole('region', { name: 'Boots and operations' }).getByText('finished', { exact: true }).first().waitFor(boot) // the inspection
  await page.getByRole('region', { name: 'Events' }).getByText('boot.decided').nth(1).waitFor(boot)
  await picture('booting')
  await act('Switch off')
  await page.getByText('power off').first().waitFor(boot)
  assert.deepEqual(page.errors.filter((e) => !/the server responded with a status of 404/.test(e)), [])
})
