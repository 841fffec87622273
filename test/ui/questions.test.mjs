import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { faults, Rack } from './rack.mjs'

let rack
let subnet
const shots = process.env.SLIPWAY_SHOTS
const picture = (page, name) => shots && page.screenshot({ path: `${shots}/${name}.png`, fullPage: true })

before(async () => {
  rack = await Rack.start(`slipway-ask-${process.pid}`)
  subnet = JSON.parse(await rack.cli('subnet', 'list', '-o', 'json'))[0]
  await rack.machines(2, '--expect', 'waiting')
  const kernel = await rack.file('not a kernel')
  await rack.cli('image', 'import', 'flatcar', '--kernel', kernel, '--config', 'ignition=3.3.0:/config.ign', '--config-arg', 'ignition.config.url=${config}', '--os', '', '--release', '')
  await rack.cli('subnet', 'create', 'prod', '--cidr', '192.0.2.0/24', '--gateway', '192.0.2.1', '--mode', 'off', '--static-range', '192.0.2.10-192.0.2.90')
  const config = await rack.file('network: {interfaces: [{name: lan0, mac: boot, fromSubnets: [prod]}]}\n')
  await rack.cli('profile', 'create', 'web', '--image', 'flatcar', '--config', config)
  for (const name of ['web1', 'web-of-a-very-long-name-that-somebody-in-the-north-gave-it']) await rack.cli('machine', 'create', name, '--profile', 'web')
})
after(() => rack?.end())

test('a deletion says what is lost and what goes on, in the words of the command line', async () => {
  for (const [path, open, says] of [
    ['/machines/web1', async (page) => {
      await page.getByRole('button', { name: 'Actions', exact: true }).click()
      await page.getByRole('menuitem', { name: 'Delete' }).click()
    }, 'Machine web1 is deleted; it has no host, so Slipway switches nothing off and wipes nothing; 1 static address is free again.'],
    [`/networks/${subnet.name}`, (page) => page.getByRole('button', { name: 'Delete', exact: true }).click(),
      `Nobody in subnet ${subnet.name} gets an address or a boot from this server any more; no reservation and 2 leases are lost; machines there keep their addresses until their leases end.`],
  ]) {
    const page = await rack.page(path)
    await open(page)
    await page.getByRole('dialog').getByText(says).waitFor()
    assert.deepEqual(await faults(page), [])
    await picture(page, `ask${path.replaceAll('/', '-')}`)
    await page.context().close()
  }
  assert.equal(JSON.parse(await rack.cli('machine', 'list', '-o', 'json')).length, 2)
})

for (const [colorScheme, width] of [['light', 1400], ['dark', 1400], ['light', 400]]) {
  test(`static addresses, ${colorScheme}, ${width} wide`, async () => {
    const page = await rack.page('/networks/prod?tab=static', { colorScheme, viewport: { width, height: 900 } })
    const table = page.getByRole('grid', { name: 'Static addresses' }).or(page.getByRole('table', { name: 'Static addresses' }))
    await table.getByText('192.0.2.10', { exact: true }).waitFor()
    await table.getByText('192.0.2.11', { exact: true }).waitFor()
    assert.deepEqual(await faults(page), [])
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), true, 'the page is wider than the window')
    await picture(page, `static-${colorScheme}-${width}`)
    await page.context().close()
  })
}

test('another static address is chosen; one that is taken is refused at its field', async () => {
  const page = await rack.page('/machines/web1')
  await page.goto('/networks/prod?tab=static')
  await page.getByRole('button', { name: 'Change 192.0.2.10', exact: true }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('Address').fill('192.0.2.11')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText(/192\.0\.2\.11 is (that of|kept for) machine/).first().waitFor()
  await form.getByLabel('Address').fill('192.0.2.50')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  await page.getByText('192.0.2.50', { exact: true }).waitFor()
  await page.context().close()
})

test('a gateway that a machine has is refused at its field', async () => {
  const page = await rack.page('/networks/prod')
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('Gateway').fill('192.0.2.11')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText(/192\.0\.2\.11 is (the address of|kept for) machine/).first().waitFor()
  await page.context().close()
})

test('DHCP options of a subnet are refused at their field, and stored; a class is saved', async () => {
  const page = await rack.page(`/networks/${subnet.name}`)
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('DHCP options').fill('ntp-servers=not an address')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.locator('[aria-invalid="true"]').first().waitFor()
  await picture(page, 'options-wrong')
  await form.getByLabel('DHCP options').fill('log-servers=10.77.0.9')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  await page.goto('/networks')
  await page.getByRole('button', { name: 'Add a class' }).click()
  await form.getByRole('textbox', { name: 'Name', exact: true }).fill('switches')
  await form.getByLabel('Vendor classes').fill('onie_vendor:*\na-long-vendor-class-of-a-switch:*')
  await form.getByLabel('DHCP options', { exact: true }).fill('114=http://10.77.0.9/onie')
  assert.deepEqual(await faults(page), [])
  await picture(page, 'class-form')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  await page.getByRole('grid', { name: 'Classes' }).getByText('switches').waitFor()
  await page.context().close()
})
