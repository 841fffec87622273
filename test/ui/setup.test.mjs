import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { chromium, faults, Rack, slipway } from './rack.mjs'

let rack
let page
before(async () => {
  rack = await Rack.start(`slipway-setup-${process.pid}`)
  page = await rack.page('/')
})
after(() => rack?.end())

test('an empty server leads to the setup, which shows the server and its network', async () => {
  await page.getByRole('link', { name: 'Set up Slipway' }).click()
  await page.getByRole('heading', { level: 1, name: 'Set up Slipway' }).waitFor()
  await page.getByRole('grid', { name: 'Self-check' }).getByText('boot loaders').waitFor()
  await page.getByRole('button', { name: 'Next: Network' }).click()
  await page.getByRole('heading', { name: 'Interface vs' }).waitFor()
  await page.getByText('10.77.128.0 to 10.77.255.254').waitFor()
  assert.deepEqual(await faults(page), [])
})

test('an interface without a subnet gets one with the suggested range', async () => {
  await rack.cli('subnet', 'delete', 'vs')
  await page.reload()
  await page.getByRole('button', { name: 'Add a subnet' }).click()
  const form = page.getByRole('dialog', { name: 'A subnet for vs' })
  assert.equal(await form.getByLabel(/^Network/).inputValue(), '10.77.0.0/16')
  assert.equal(await form.getByLabel('Lease from').inputValue(), '10.77.128.0')
  await form.getByLabel(/^Network/).fill('10.77.0.0/99')
  await form.getByRole('button', { name: 'Add', exact: true }).click()
  await form.getByText(/10\.77\.0\.0\/99/).first().waitFor()
  await form.getByLabel(/^Network/).fill('10.77.0.0/16')
  await form.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByText('10.77.128.0 to 10.77.255.254').waitFor()
})

test('the first user is made', async () => {
  await page.goto('/setup?step=account')
  await page.getByLabel(/^Name/).fill('anna')
  await page.getByLabel(/^Password(?! again)/).fill('correct horse battery')
  const make = page.getByRole('button', { name: 'Create the first user' })
  await page.getByLabel('Password again').fill('something else')
  assert.equal(await make.isDisabled(), true)
  await page.getByLabel('Password again').fill('correct horse battery')
  await make.click()
  await page.getByText('User anna exists now').waitFor()
})

test('machines are accepted by a rule, and show themselves', async () => {
  await page.goto('/setup?step=accept')
  await page.getByRole('button', { name: 'Add a rule' }).click()
  const form = page.getByRole('dialog', { name: 'Accept machines by a rule' })
  await form.getByLabel(/^Name/).fill('all')
  await form.getByLabel('Machines that match').fill('mac')
  await form.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByText('There is one rule').waitFor()
  await page.getByRole('button', { name: 'Next: First machines' }).click()
  await page.getByText('No machine has sent a packet yet').waitFor()
  void rack.machines(2, '--expect', 'waiting')
  await page.getByText('available').first().waitFor()
  assert.match(await page.locator('body').innerText(), /Without machines/)
  assert.deepEqual(await faults(page), [])
  // The network that is none was refused by the server: the browser says so too.
  assert.deepEqual(page.errors.filter((e) => !e.includes('422 (Unprocessable Entity)')), [])
})

test('slipway try is a server with machines to play with, and leaves nothing behind', { timeout: 300_000 }, async () => {
  const port = await freePort()
  const name = `slipway-try-${process.pid}`
  const tried = spawn(slipway, ['try', '--hosts', '3', '--listen', `127.0.0.1:${port}`, '--name', name], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(tried, 'exit')
  let said = ''
  for (const out of [tried.stdout, tried.stderr]) out.on('data', (chunk) => (said += chunk))
  let browser
  try {
    await Promise.race([until(() => said.includes('Ctrl-C ends it')), ended.then(() => assert.fail(`it ended: ${said}`))])
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
    const here = await browser.newPage({ baseURL: `http://127.0.0.1:${port}` })
    here.setDefaultTimeout(60_000)
    await here.goto('/setup?step=machines')
    const token = await readFile(/with the token in (\S+);/.exec(said)[1], 'utf8')
    await here.getByLabel('Token').fill(token.trim())
    await here.getByRole('button', { name: 'Log in' }).click()
    await here.getByRole('link', { name: /^host-/ }).nth(2).waitFor()
    await here.goto('/racks')
    await here.getByText('r1').first().waitFor() // they stand in a rack
    await here.goto('/profiles')
    await here.getByRole('link', { name: 'try-debian' }).first().waitFor()
  } finally {
    await browser?.close()
    tried.kill('SIGINT')
  }
  assert.deepEqual(await ended, [0, null], said)
  assert.deepEqual((await readdir('/run/netns')).filter((n) => n.startsWith(name)), [])
})

// until waits for something that another process does.
async function until(isSo) {
  while (!isSo()) await new Promise((again) => setTimeout(again, 100))
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
