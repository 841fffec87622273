import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { faults, Rack } from './rack.mjs'

// Machines with controllers, an agent and a disk image: what it takes to install one and to take it back.
const outlets = '127.0.0.1:8991'
const hostsN = 3
let rack
let page
before(async () => {
  rack = await Rack.start(`slipway-life-${process.pid}`)
  for (const [name, size] of [['kernel', 30_000], ['initrd', 90_000], ['disk.raw', 500_000]])
    await writeFile(join(rack.data, name), Buffer.alloc(size, `${name}\0`))
  const file = (name) => join(rack.data, name)
  await rack.cli('image', 'import', 'agent-x86-64', '--kernel', file('kernel'), '--initrd', file('initrd'), '--arg', 'slipway.session=${base}/boot/${session}')
  await rack.cli('image', 'import', 'debian12', '--os', 'debian', '--release', '12', '--disk', file('disk.raw'), '--config', 'cloud-init=24.1')
  await rack.cli('profile', 'create', 'debian12', '--image', 'debian12')
  await rack.cli('profile', 'update', 'debian12', '--isolated')
  page = await rack.page('/machines')
})
after(() => rack?.end())

const dialog = (name) => page.getByRole('dialog', { name })
const act = async (verb) => {
  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('menuitem', { name: verb, exact: true }).click()
}

test('a wrong name is refused at its field, and the text stays', async () => {
  await page.getByRole('button', { name: 'Create a machine' }).click()
  const form = dialog('Create machines')
  await form.getByLabel(/^Name/).fill('Not A Name')
  await form.getByLabel(/^Profile/).selectOption('debian12')
  await form.getByRole('button', { name: 'Create' }).click()
  await form.getByText(/not a|letters/i).first().waitFor()
  assert.equal(await form.getByLabel(/^Name/).inputValue(), 'Not A Name')
  await form.getByRole('button', { name: 'Cancel' }).click()
})

test('two machines are wanted at once, and say what they wait for', async () => {
  await page.getByRole('button', { name: 'Create a machine' }).click()
  const form = dialog('Create machines')
  await form.getByLabel(/^Name/).fill('web')
  await form.getByLabel('How many').fill('2')
  await form.getByLabel(/^Profile/).selectOption('debian12')
  await form.getByText('2 machines: web-1 to web-2').waitFor()
  await form.getByRole('button', { name: 'Create 2 machines' }).click()
  const table = page.getByRole('grid', { name: 'Machines' })
  await table.getByRole('link', { name: 'web-2' }).waitFor()
  await table.getByText('pending').first().waitFor()
  await table.getByRole('link', { name: 'web-1' }).click()
  await page.getByRole('heading', { level: 1, name: 'web-1' }).waitFor()
  await page.getByRole('list', { name: 'From machine to node' }).waitFor()
})

test('whoever holds a machine by a hook says why on its page, and then lets it go', async () => {
  await rack.cli('machine', 'create', 'held', '--profile', 'debian12', '--hook', 'pre-claim:storage')
  const before = page.url()
  await page.goto('/machines/held')
  const hooks = page.getByRole('grid', { name: 'Hooks' })
  await hooks.getByRole('button', { name: 'Give a reason' }).click()
  const ask = dialog('Reason why pre-claim of held waits')
  await ask.getByLabel('Why it is not acknowledged yet').fill("the <b>array's</b> firmware")
  await ask.getByRole('button', { name: 'The same as a command' }).click()
  const typed = await ask.getByRole('textbox', { name: 'Command line' }).inputValue()
  assert.equal(typed, `slipway machine hold held pre-claim storage 'the <b>array'\\''s</b> firmware'`)
  await ask.getByRole('button', { name: 'Save' }).click()
  await ask.waitFor({ state: 'detached' })
  await hooks.getByText("Not yet: the <b>array's</b> firmware").waitFor()
  await page.getByText("the <b>array's</b> firmware (hook pre-claim of storage)").first().waitFor()
  await hooks.getByRole('button', { name: 'Acknowledge' }).click()
  await dialog('Acknowledge pre-claim of held?').getByRole('button', { name: 'Acknowledge' }).click()
  await hooks.getByRole('button', { name: 'Acknowledge' }).waitFor({ state: 'detached' })
  await rack.cli('machine', 'delete', 'held')
  await page.goto(before)
})

test('hosts come, and a machine is installed while one watches', { timeout: 300_000 }, async () => {
  void rack.machines(hostsN, '--firmware', 'uefi', '--power', outlets, '--power-netns', `${rack.name}-srv`, '--download', '--timeout', '20m')
  const macs = ['18:66:da:01:00:00', '94:40:c9:01:00:01', '0c:c4:7a:01:00:02'].slice(0, hostsN)
  for (const [i, mac] of macs.entries()) {
    await rack.cli('host', 'create', `h${i}`, '--mac', mac)
    await rack.cli('bmc', 'set', `h${i}`, '--driver', 'webhook', '--address', `http://${outlets}`, '--system', mac, ...options()).catch((err) => { throw new Error(`bmc set: ${err.stderr ?? err}`) })
    await rack.cli('host', 'inspect', `h${i}`) // added by hand, it is accepted, but nobody has looked into it
  }
  await page.getByRole('button', { name: 'Show running operations' }).click()
  await page.getByRole('list', { name: 'From machine to node' }).getByText(/^\W*running$/).waitFor({ timeout: 240_000 })
  await page.getByRole('grid', { name: 'Operations', exact: true }).getByText('done').first().waitFor({ timeout: 240_000 })
  assert.deepEqual(await faults(page), [])
  if (process.env.SLIPWAY_SHOTS) await page.screenshot({ path: `${process.env.SLIPWAY_SHOTS}/machine.png`, fullPage: true })
})

test('an operation has a page with its steps', async () => {
  await page.goto('/operations?kind=install')
  await page.getByRole('grid', { name: 'Operations', exact: true }).getByRole('link', { name: /^install of / }).first().click()
  await page.getByRole('heading', { level: 1, name: /^install of h/ }).waitFor()
  await page.getByRole('grid', { name: 'Steps' }).getByText('write', { exact: true }).first().waitFor()
  assert.deepEqual(await faults(page), [])
  if (process.env.SLIPWAY_SHOTS) await page.screenshot({ path: `${process.env.SLIPWAY_SHOTS}/operation.png`, fullPage: true })
})

test('a machine is deleted only when its name is typed, and then is gone', { timeout: 300_000 }, async () => {
  await page.goto('/machines/web-1')
  await page.getByRole('heading', { level: 1, name: 'web-1' }).waitFor()
  await act('Delete')
  const ask = dialog('Delete web-1?')
  const button = ask.getByRole('button', { name: 'Delete', exact: true })
  assert.equal(await button.isDisabled(), true)
  await ask.getByLabel('Type web-1 to go on').fill('web-2')
  assert.equal(await button.isDisabled(), true)
  await ask.getByLabel('Type web-1 to go on').fill('web-1')
  await button.click()
  await ask.waitFor({ state: 'detached' })
  await page.goto('/machines')
  await page.getByRole('grid', { name: 'Machines' }).getByRole('link', { name: 'web-2' }).waitFor()
  await page.getByRole('grid', { name: 'Machines' }).getByRole('link', { name: 'web-1' }).waitFor({ state: 'detached', timeout: 240_000 })
})

test('a pool is made, changed, and cannot be overwritten with what was seen before', async () => {
  await page.goto('/pools')
  await page.getByRole('button', { name: 'Create a pool' }).click()
  let form = dialog('Create a pool')
  await form.getByLabel(/^Name/).fill('front')
  await form.getByLabel('Hosts that match').fill('rack=~(')
  await form.getByRole('button', { name: 'Create' }).click()
  await form.getByText(/not a regular expression|missing closing/i).first().waitFor()
  await form.getByLabel('Hosts that match').fill('name=h1')
  await form.getByLabel('Installations at once').fill('2')
  await form.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('grid', { name: 'Pools' }).getByRole('link', { name: 'front' }).click()
  await page.getByText('0 of 2 at once').waitFor()
  await page.getByRole('list', { name: 'Its hosts' }).getByRole('link', { name: 'h1' }).waitFor()
  await page.getByRole('button', { name: 'Edit' }).click()
  form = dialog('Edit pool front')
  await form.getByLabel('Spare hosts').fill('1')
  await rack.cli('pool', 'set', 'front', '--max-provision', '5') // somebody else, meanwhile
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText(/has changed meanwhile/).waitFor()
  await form.getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('0 of 5 at once').waitFor()
  assert.deepEqual(await faults(page), [])
  if (process.env.SLIPWAY_SHOTS) await page.screenshot({ path: `${process.env.SLIPWAY_SHOTS}/pool.png`, fullPage: true })
})

test('a kubeconfig is looked over before it is attached, and one that leads nowhere is not', async () => {
  await page.goto('/clusters')
  await page.getByRole('button', { name: 'Attach a cluster' }).click()
  const form = dialog('Attach a cluster')
  await form.getByRole('textbox', { name: 'Name', exact: true }).fill('prod')
  await form.locator('textarea').fill(`apiVersion: v1
kind: Config
current-context: x
clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: x, user: {token: t}}]
contexts: [{name: x, context: {cluster: x, user: x}}]
`)
  assert.equal(await form.getByRole('button', { name: 'Attach', exact: true }).isDisabled(), true)
  await form.getByRole('button', { name: 'Check', exact: true }).click()
  await form.getByText('Something has to be done first').waitFor()
  assert.equal(await form.getByRole('button', { name: 'Attach', exact: true }).isDisabled(), true)
  assert.deepEqual(await faults(page), [])
})

test('a join target is added, shows its rights, and goes', async () => {
  await page.goto('/clusters?tab=targets')
  await page.getByRole('button', { name: 'Add a join target' }).click()
  const form = dialog('Add a join target')
  await form.getByLabel(/^Name/).fill('prod')
  await form.getByLabel('Endpoint').fill('10.0.0.9:6443')
  await form.getByLabel('Kubernetes').fill('1.35.0')
  await form.getByRole('button', { name: 'Add' }).click()
  const target = page.getByRole('region', { name: 'Target prod' })
  await target.getByRole('button', { name: 'Rights for Slipway' }).click()
  assert.match(await target.getByLabel('Command that applies it').inputValue(), /slipway target rbac prod/)
  await target.getByRole('button', { name: 'Delete' }).click()
  await dialog('Delete target prod?').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No join target yet').waitFor()
})

// options are those of a controller that simulated machines have.
function options() {
  return Object.entries({
    'on.path': '/{{.System}}/on', 'off.path': '/{{.System}}/off', 'cycle.path': '/{{.System}}/cycle',
    'status.path': '/{{.System}}/power', 'status.pointer': '/power', timeout: '5s', pause: '100ms',
  }).flatMap(([k, v]) => ['--option', `${k}=${v}`])
}
