import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { after, before, test } from 'node:test'
import { faults, Rack } from './rack.mjs'

let rack
let subnet
let rival // the address of another DHCP server
const shots = process.env.SLIPWAY_SHOTS

// noErrors holds that a page complained of nothing, but that axe was put into it.
const noErrors = (page) => assert.deepEqual(page.errors.filter((e) => !e.includes('Executing inline script')), [])

before(async () => {
  rack = await Rack.start(`slipway-nets-${process.pid}`)
  subnet = JSON.parse(await rack.cli('subnet', 'list', '-o', 'json'))[0]
  rival = subnet.cidr.replace(/\d+\/\d+$/, '250')
  await rack.machines(5, '--expect', 'waiting')
})
after(() => rack?.end())

test('the networks are listed with their interfaces and boot doors', async () => {
  const page = await rack.page('/networks')
  await page.getByRole('table', { name: 'Subnets' }).or(page.getByRole('grid', { name: 'Subnets' })).getByText(subnet.cidr).waitFor()
  await page.getByText('http://10.77.0.1', { exact: true }).waitFor()
  await page.getByText(/^5 of \d+ used$/).waitFor()
  await page.getByRole('button', { name: 'Search for them' }).click()
  await page.getByText('other DHCP on vs: none heard').waitFor()
  assert.deepEqual(await faults(page), [])
  if (shots) await page.screenshot({ path: `${shots}/networks.png`, fullPage: true })
  noErrors(page)
  await page.context().close()
})

test('a reservation is made from a lease, changed, and deleted', async () => {
  const page = await rack.page(`/networks/${subnet.name}`)
  await page.getByText('5 of 5 leases').waitFor()
  const lease = JSON.parse(await rack.cli('lease', 'list', '-o', 'json'))[0]
  await page.getByLabel('Search leases').fill(lease.mac)
  await page.getByText('1 of 5 leases').waitFor()
  if (shots) await page.screenshot({ path: `${shots}/leases.png`, fullPage: true })
  assert.deepEqual(await faults(page), [])
  await page.getByRole('button', { name: `Reserve ${lease.address}` }).click()
  const ask = page.getByRole('dialog')
  assert.equal(await ask.getByRole('textbox', { name: 'MAC' }).inputValue(), lease.mac)
  await ask.getByRole('button', { name: 'Reserve' }).click()
  await ask.waitFor({ state: 'detached' })
  await page.getByRole('tab', { name: 'Reservations' }).click()
  await page.getByText(lease.mac).first().waitFor()
  const [kept] = JSON.parse(await rack.cli('reservation', 'list', '-o', 'json'))
  assert.equal(kept.address, lease.address)
  assert.equal(kept.mac, lease.mac)

  await page.getByRole('button', { name: `Edit ${lease.address}` }).click()
  await ask.getByRole('textbox', { name: 'MAC' }).fill('no address')
  await ask.getByRole('button', { name: 'Reserve' }).click()
  await ask.getByText('is not a MAC address').first().waitFor()
  await ask.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: `Delete ${lease.address}` }).click()
  await ask.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No address is reserved').waitFor()
  assert.deepEqual(JSON.parse(await rack.cli('reservation', 'list', '-o', 'json')), [])
  await page.context().close()
})

test('a lease is forgotten, and what is live comes by itself', async () => {
  const page = await rack.page(`/networks/${subnet.name}`)
  await page.getByText('5 of 5 leases').waitFor()
  const lease = JSON.parse(await rack.cli('lease', 'list', '-o', 'json'))[0]
  await page.getByRole('button', { name: `Forget ${lease.address}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click()
  await page.getByText('4 of 4 leases').waitFor()
  await page.context().close()
})

test('a wrong subnet says at the field what is wrong; a right one is stored, and deleted by its name', async () => {
  const page = await rack.page('/networks')
  await page.getByRole('button', { name: 'Add a subnet' }).click()
  const form = page.getByRole('dialog')
  await form.getByRole('textbox', { name: 'Name', exact: true }).fill('dmz')
  await form.getByLabel('Network').fill('10.9.0.1/24')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText('has host bits set').first().waitFor()
  assert.equal(await form.getByLabel('Network').getAttribute('aria-invalid'), 'true')
  await form.getByLabel('Network').fill('10.9.0.0/24')
  await form.getByLabel('Gateway').fill('10.8.0.1')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText('is outside 10.9.0.0/24').first().waitFor()
  assert.equal(await form.getByLabel('Gateway').getAttribute('aria-invalid'), 'true')
  assert.equal(await form.getByLabel('Network').getAttribute('aria-invalid'), 'false')
  if (shots) await page.screenshot({ path: `${shots}/subnet-form.png` })
  assert.deepEqual(await faults(page), [])
  await form.getByLabel('Gateway').fill('10.9.0.1')
  for (const wrong of ['no range', '10.9.0.100-10.8.0.1']) {
    await form.getByRole('textbox', { name: 'Ranges', exact: true }).fill(wrong)
    await form.getByRole('button', { name: 'Save' }).click()
    await form.locator('[aria-invalid="true"]').first().waitFor()
    assert.equal(await form.getByRole('textbox', { name: 'Ranges', exact: true }).getAttribute('aria-invalid'), 'true', wrong)
  }
  await form.getByRole('textbox', { name: 'Ranges', exact: true }).fill('10.9.0.100-10.9.0.199')
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('link', { name: 'dmz' }).click()
  await page.getByText('(100 addresses)').waitFor()
  await page.getByRole('button', { name: 'Delete' }).click()
  assert.equal(await form.getByRole('button', { name: 'Delete' }).isDisabled(), true)
  await form.getByLabel('Type dmz to go on').fill('dmz')
  await form.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('There is no such subnet').waitFor()
  await page.context().close()
})

test('what somebody else changed while the form was open is not overwritten', async () => {
  const page = await rack.page(`/networks/${subnet.name}`)
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('Domain').fill('mine.example')
  await rack.cli('subnet', 'update', subnet.name, '--mtu', '1400')
  await page.getByText('1400', { exact: true }).waitFor()
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText(/changed meanwhile/).first().waitFor()
  assert.equal(await form.getByLabel('Domain').inputValue(), 'mine.example')
  const stored = JSON.parse(await rack.cli('subnet', 'list', '-o', 'json')).find((s) => s.name === subnet.name)
  assert.deepEqual([stored.mtu, stored.domain ?? ''], [1400, subnet.domain ?? ''])
  await page.context().close()
})

test('another DHCP server is told how to send machines here', async () => {
  const page = await rack.page(`/networks/${subnet.name}?tab=others`)
  await page.getByText('dhcp-boot=tag:slipway-ipxe,http://10.77.0.1/boot/ask').waitFor()
  await page.getByLabel('Server', { exact: true }).selectOption('kea')
  await page.getByText('kea-dhcp4 -t').waitFor()
  assert.match(page.url(), /server=kea/)
  assert.match(await rack.cli('subnet', 'snippet', subnet.name, '--for', 'kea'), /"client-classes"/)
  assert.deepEqual(await faults(page), [])
  if (shots) await page.screenshot({ path: `${shots}/snippets.png`, fullPage: true })
  await page.context().close()
})

for (const [colorScheme, width] of [
  ['dark', 1400],
  ['light', 400],
]) {
  test(`no serious fault, ${colorScheme}, ${width} wide`, async () => {
    const page = await rack.page('/networks', { colorScheme, viewport: { width, height: 900 } })
    await page.getByText(subnet.cidr).first().waitFor()
    assert.deepEqual(await faults(page), [])
    if (shots) await page.screenshot({ path: `${shots}/networks-${colorScheme}-${width}.png`, fullPage: true })
    await page.goto(`/networks/${subnet.name}`)
    await page.getByText('of 4 leases').waitFor()
    assert.deepEqual(await faults(page), [])
    if (shots) await page.screenshot({ path: `${shots}/subnet-${colorScheme}-${width}.png`, fullPage: true })
    await page.context().close()
  })
}

test('an IPv6 network says who makes the addresses, and keeps that when something else is changed', async () => {
  const page = await rack.page('/networks')
  await page.getByRole('button', { name: 'Add a subnet' }).click()
  const form = page.getByRole('dialog')
  await form.getByRole('textbox', { name: 'Name', exact: true }).fill('six')
  assert.equal(await form.getByLabel('Addresses of machines').count(), 0)
  await form.getByLabel('Network').fill('fd00:9::/64')
  await form.getByLabel('Addresses of machines').selectOption('slaac')
  await form.getByLabel('This server is advertised as the default router').check()
  assert.deepEqual(await faults(page), [])
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('link', { name: 'six' }).click()
  await page.getByText('slaac: machines make their own addresses').waitFor()
  await page.getByRole('button', { name: 'Edit' }).click()
  await form.getByLabel('Domain').fill('six.example')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  await page.getByText('six.example').first().waitFor()
  const six = JSON.parse(await rack.cli('subnet', 'list', '-o', 'json')).find((s) => s.name === 'six')
  assert.deepEqual([six.advertise, six.isRouter, six.domain], ['slaac', true, 'six.example'])
  if (shots) await page.screenshot({ path: `${shots}/subnet-six.png`, fullPage: true })
  await page.context().close()
})

test('an address that a machine has found in use is a conflict, until somebody sets it free', async () => {
  const lease = JSON.parse(await rack.cli('lease', 'list', '-o', 'json')).find((l) => l.state === 'bound')
  const page = await rack.page(`/networks/${subnet.name}?tab=conflicts`)
  await page.getByText('No address is in conflict').waitFor()
  // The machine declines it, as RFC 2131 has it.
  const declines = `import socket,sys
s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.setsockopt(1,6,1); s.setsockopt(1,25,b'vc'); s.bind(('',68))
ip=socket.inet_aton; mac=bytes.fromhex(sys.argv[1].replace(':',''))
s.sendto(b'\\1\\1\\6\\0abcd'+bytes(20)+mac.ljust(16,b'\\0')+bytes(192)+b'\\x63\\x82\\x53\\x63\\x35\\1\\4\\x32\\4'+ip(sys.argv[2])+b'\\x36\\4'+ip('10.77.0.1')+b'\\xff',('255.255.255.255',67))`
  execFileSync('ip', ['netns', 'exec', `${rack.name}-cli`, 'python3', '-c', declines, lease.mac, lease.address])
  const row = page.getByRole('row').filter({ hasText: lease.address })
  await row.getByText('conflict').waitFor()
  await page.getByText(/1 in conflict/).first().waitFor()
  assert.deepEqual(await faults(page), [])
  await page.getByRole('button', { name: `Forget ${lease.address}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click()
  await page.getByText('No address is in conflict').waitFor()
  await page.context().close()
})

test('in proxy mode, another DHCP server is found, and where it leads machines is asked', async () => {
  await rack.cli('subnet', 'update', subnet.name, '--mode', 'proxy')
  const page = await rack.page(`/networks/${subnet.name}?tab=others`)
  await page.getByText('proxy: another server gives addresses, Slipway names the boot file').waitFor()
  const panel = page.getByRole('tabpanel', { name: 'Another DHCP server' })
  await panel.getByText('Slipway has seen no other DHCP server here').waitFor()
  const there = (...args) => ['netns', 'exec', `${rack.name}-cli`, ...args]
  execFileSync('ip', there('ip', 'address', 'add', `${rival}/24`, 'dev', 'vc'))
  const server = spawn('ip', there('dnsmasq', '--keep-in-foreground', '--conf-file=/dev/null', '--port=0', '--interface=vc', '--bind-interfaces', '--leasefile-ro', '--pid-file=', '--user=root', '--log-facility=-', '--no-ping', `--dhcp-range=${rival.replace(/\d+$/, '240')},${rival.replace(/\d+$/, '249')},2m`, '--dhcp-boot=their.0'), { stdio: ['ignore', 'pipe', 'pipe'] })
  await new Promise((up, down) => {
    let said = ''
    const take = (chunk) => (said += chunk).includes('IP range') && up()
    server.stdout.on('data', take)
    server.stderr.on('data', take)
    server.on('exit', () => down(new Error(said)))
  })
  try {
    await panel.getByRole('button', { name: 'Test where machines would boot from' }).click()
    const led = panel.getByRole('grid', { name: 'Where machines would boot from' }).or(panel.getByRole('table', { name: 'Where machines would boot from' }))
    await led.getByText(/^(Slipway|another server|no server)$/).first().waitFor()
    const other = panel.getByRole('grid', { name: 'Other DHCP servers' }).or(panel.getByRole('table', { name: 'Other DHCP servers' }))
    await other.getByRole('row').filter({ hasText: rival }).getByText('its own answer').first().waitFor()
    assert.deepEqual(await faults(page), [])
    if (shots) await page.screenshot({ path: `${shots}/probe.png`, fullPage: true })
    const lines = JSON.parse(await rack.cli('subnet', 'probe', subnet.name, '-o', 'json'))
    for (const l of lines) await led.getByRole('row').filter({ hasText: l.detail }).first().waitFor()
  } finally {
    server.removeAllListeners('exit')
    server.kill('SIGKILL')
  }
  noErrors(page)
  await page.context().close()
})
