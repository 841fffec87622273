// What goes wrong around the page of a host: the server is restarted, a proxy cuts the stream, the login ends while one
// types, somebody else is quicker, a field is wrong, and machines that say hostile things of themselves.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { endLogin, faults, outletOptions, Rack } from './rack.mjs'

const run = promisify(execFile)
const outlets = '127.0.0.1:8991'
const mac = '18:66:da:01:00:00'
const slow = { timeout: 240_000 }
const shots = process.env.SLIPWAY_SHOTS
let rack

before(async () => {
  rack = await Rack.start(`slipway-faults-${process.pid % 10000}`)
  for (const [name, size] of [['kernel', 30_000], ['initrd', 90_000]]) await writeFile(join(rack.data, name), Buffer.alloc(size, name))
  await rack.cli('image', 'import', 'agent-x86-64', '--kernel', join(rack.data, 'kernel'), '--initrd', join(rack.data, 'initrd'), '--arg', 'slipway.session=${base}/boot/${session}')
})
after(() => rack?.end())

async function sound(page, name) {
  if (shots) {
    await mkdir(shots, { recursive: true })
    await page.screenshot({ path: join(shots, `faults-${name}.png`), animations: 'disabled' })
  }
  const said = page.errors.length
  assert.deepEqual(await faults(page), [], name)
  page.errors.length = said
}
// answered leaves out what the browser says of answers that are refusals, or are cut on purpose.
const answered = (page) => page.errors.filter((e) => !/the server responded with a status of|net::ERR_/.test(e))
const until = async (what, is) => {
  for (const end = Date.now() + 120_000; Date.now() < end; ) {
    const v = await is()
    if (v) return v
    await new Promise((r) => setTimeout(r, 100))
  }
  throw new Error(`it did not come to that: ${what}`)
}
// told are the events of a host as the API has them, and shown those on the page; both by their ids.
const told = async (host) => {
  const lines = await rack.cli('event', 'list', '--host', host, '-o', 'json')
  return lines.split('\n').filter(Boolean).map((l) => JSON.parse(l).id)
}
const shown = (page) =>
  page
    .getByRole('region', { name: 'Events' })
    .locator('[id^="event-"]')
    .evaluateAll((all) => all.map((e) => Number(e.id.slice(6))))
const same = async (page, host) =>
  until('the page has each event once', async () => {
    const [a, b] = [(await told(host)).sort((x, y) => x - y), (await shown(page)).sort((x, y) => x - y)]
    return JSON.stringify(a) === JSON.stringify(b)
  })

test('a server that is restarted while one looks: the page goes on, and no event is lost or doubled', slow, async () => {
  await rack.cli('host', 'create', 'stays', '--mac', '52:54:00:fa:00:01')
  const page = await rack.page('/hosts/stays')
  await page.getByText('live', { exact: true }).waitFor()
  await rack.cli('host', 'maintain', 'stays')
  await page.getByRole('region', { name: 'Events' }).getByText(/maintenance/).first().waitFor()
  await rack.kill()
  await page.getByText(/no event stream/).first().waitFor()
  await sound(page, 'away')
  await rack.serve()
  await rack.cli('host', 'maintain', 'stays', '--off') // while the page may not be back yet
  await page.getByText('live', { exact: true }).waitFor()
  await rack.cli('host', 'cordon', 'stays')
  await page.getByText(/cordon/).first().waitFor()
  await same(page, 'stays')
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('a proxy that cuts the stream again and again costs nothing', slow, async () => {
  // A real proxy: it passes bytes on and breaks every connection when it is told to, or takes none.
  const source = `import socket,threading,sys
l=socket.create_server(('127.0.0.1',8993)); live=[]; deaf=[False]
def pump(a,b):
    try:
        while (d:=a.recv(65536)): b.sendall(d)
    except OSError: pass
    for s in (a,b):
        try: s.shutdown(2)
        except OSError: pass
def orders():
    for line in sys.stdin:
        deaf[0]=line.strip()=='deaf'
        for s in live[:]:
            try: s.shutdown(2)
            except OSError: pass
        live.clear(); print('cut',flush=True)
threading.Thread(target=orders,daemon=True).start()
print('ready',flush=True)
while True:
    c,_=l.accept()
    if deaf[0]: c.close(); continue
    try: s=socket.create_connection(('127.0.0.1',8067))
    except OSError: c.close(); continue
    live+= [c,s]
    if deaf[0]: # told so since it was taken
        for x in (c,s): x.close()
        continue
    for p in ((c,s),(s,c)): threading.Thread(target=pump,args=p,daemon=True).start()
`
  const [cmd, args] = rack.inside('python3', '-c', source)
  const proxy = spawn(cmd, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  rack.racks = [...(rack.racks ?? []), proxy]
  const says = () => new Promise((r) => proxy.stdout.once('data', r))
  await says()
  const order = async (word) => {
    const done = says()
    proxy.stdin.write(`${word}\n`)
    await done
  }
  const page = await rack.page('/hosts/stays', { baseURL: 'http://127.0.0.1:8993' })
  await page.getByText('live', { exact: true }).waitFor()
  for (const [i, verb] of ['protect', 'retain', 'maintain'].entries()) {
    await order('cut')
    await rack.cli('host', verb, 'stays')
    await page.getByText(['protected', 'keeps its disks', 'in maintenance'][i], { exact: true }).waitFor()
  }
  await order('deaf')
  await page.getByText(/no event stream/).first().waitFor()
  await rack.cli('host', 'protect', 'stays', '--off')
  await order('listen')
  await page.getByText('live', { exact: true }).waitFor()
  await page.getByText('protected', { exact: true }).waitFor({ state: 'detached' })
  await same(page, 'stays')
  await page.context().close()
  proxy.kill('SIGKILL')
})

test('a login that ends while one types: the text is still there behind the next login', slow, async () => {
  const page = await rack.page('/hosts/stays?tab=yaml')
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  const text = page.getByRole('textbox', { name: 'Host stays' })
  const body = JSON.parse(await text.inputValue())
  await text.fill(JSON.stringify({ ...body, assetTag: 'typed-before' }, null, 2))
  await page.context().clearCookies() // as the browser does when a login has run out
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: /Log in/ }).first().waitFor()
  await sound(page, 'ended')
  await page.getByRole('textbox', { name: 'Token' }).fill(rack.token)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('heading', { level: 1, name: 'stays' }).waitFor()
  await page.getByRole('textbox', { name: 'Host stays' }).waitFor()
  assert.match(await page.getByRole('textbox', { name: 'Host stays' }).inputValue(), /typed-before/)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('assetTag: typed-before').waitFor()
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('a dialog that is open when the login ends is open again behind the next one, with what was typed', slow, async () => {
  const page = await rack.page('/hosts/stays')
  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('menuitem', { name: 'Edit' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('Asset tag').fill('in-a-dialog')
  await endLogin(page, () => form.getByRole('button', { name: 'Save' }).click())
  await page.getByRole('textbox', { name: 'Token' }).fill(rack.token)
  assert.equal(await form.isVisible(), false, 'what was on the page is not shown to whoever is there now')
  await page.getByRole('button', { name: 'Log in' }).click()
  await form.waitFor()
  assert.equal(await form.getByLabel('Asset tag').inputValue(), 'in-a-dialog')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  await page.getByRole('tab', { name: 'Hardware' }).click()
  await page.getByText('in-a-dialog').waitFor()
  await page.context().close()
})

test('logging out that fails says that one is still logged in', slow, async () => {
  const page = await rack.page('/hosts/stays')
  await rack.kill()
  await page.getByRole('button', { name: /^User menu of/ }).click()
  await page.getByRole('menuitem', { name: 'Log out' }).click()
  const said = page.getByRole('alert', { name: 'Not logged out' })
  await said.getByText('You are still logged in.').waitFor()
  await rack.serve()
  await said.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: /Log in/ }).first().waitFor()
  await page.context().close()
})

test('a host that is forgotten in another tab, changed by another person, or wrong in a field', slow, async () => {
  await rack.cli('host', 'create', 'goes', '--mac', '52:54:00:fa:00:02')
  const page = await rack.page('/hosts/goes')
  const other = await page.context().newPage()
  await other.goto('/hosts/goes')

  // A field that is wrong is said at the field, and what was typed stays.
  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('menuitem', { name: 'Edit' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('Asset tag').fill('A-1')
  await form.getByLabel('Rack unit').fill('400')
  await form.getByRole('button', { name: 'Save' }).click()
  const unit = form.getByLabel('Rack unit')
  await form.getByText(/<= 100|at most 100/).first().waitFor()
  assert.equal(await unit.getAttribute('aria-invalid'), 'true', 'the field itself says that it is wrong')
  assert.equal(await form.getByLabel('Asset tag').inputValue(), 'A-1')
  await unit.fill('4')

  // Somebody else is quicker: it is said, and nothing is overwritten.
  await rack.cli('host', 'set', 'goes', '--asset', 'theirs').catch(() => rack.cli('host', 'label', 'goes', 'theirs=1'))
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText(/changed meanwhile/).first().waitFor()
  assert.equal(await form.getByLabel('Asset tag').inputValue(), 'A-1')
  await sound(page, 'conflict')
  await form.getByRole('button', { name: 'Cancel' }).click()

  // It is forgotten in the other tab.
  await other.getByRole('button', { name: 'Actions' }).click()
  await other.getByRole('menuitem', { name: /^Forget/ }).click()
  const ask = other.getByRole('dialog')
  await ask.getByLabel('Type goes to go on').fill('goes')
  await ask.getByLabel('Also while an operation runs on it').check()
  await ask.getByRole('button', { name: 'Forget', exact: true }).click()
  await other.waitForURL(/\/hosts$/)
  await page.getByText('There is no such host').waitFor()
  await sound(page, 'gone')
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

// hostile are strings that machines should not say.
const hostile = {
  script: '<script>window.owned=1</script>',
  image: '"><img src=x onerror="window.owned=1">',
  turned: '\u202egnp.exe\u202c',
  long: 'L'.repeat(10_000),
  nul: 'a\u0000b\u001b]0;owned\u0007',
}

test('what machines say of themselves is text wherever it is shown', slow, async () => {
  void rack.machines(1, '--firmware', 'ipxe-rom', '--power', outlets, '--power-netns', `${rack.name}-srv`, '--timeout', '20m')
  await rack.cli('host', 'create', 'evil', '--mac', mac)
  await rack.cli('bmc', 'set', 'evil', '--driver', 'webhook', '--address', `http://${outlets}`, '--system', mac, ...outletOptions())
  const hardware = {
    system: { manufacturer: hostile.script, product: hostile.image, serial: hostile.turned, assetTag: hostile.nul, version: hostile.long },
    firmware: { version: hostile.script, vendor: hostile.nul },
    cpu: { arch: 'x86_64', model: hostile.image },
    disks: [{ name: 'sda', model: hostile.script, serial: hostile.image, vendor: hostile.turned, health: hostile.nul, contents: hostile.long, sizeBytes: 2 ** 40 }],
    dimms: [{ slot: hostile.script, manufacturer: hostile.image, part: hostile.long, serial: hostile.turned, sizeBytes: 2 ** 30 }],
    ports: [{ name: hostile.script.slice(0, 40), mac, hasLink: true, driver: hostile.image, neighbour: { chassis: hostile.nul, system: hostile.script, port: hostile.image, portDescription: hostile.long, management: hostile.turned } }],
    kernel: hostile.script,
  }
  const file = await rack.file(JSON.stringify({ hardware, hostname: hostile.script }))
  const [cmd, args] = rack.inside('curl', '-sSf', '-X', 'PUT', `http://${outlets}/${mac}/hardware`, '--data-binary', `@${file}`)
  await until('the machine is there', () => run(cmd, args).then(() => true, () => false))
  await rack.cli('host', 'inspect', 'evil')
  const page = await rack.page('/hosts/evil?tab=hardware')
  page.on('dialog', (d) => {
    page.errors.push(`a dialog opened: ${d.message()}`)
    void d.dismiss()
  })
  await page.getByText('Inspection by our agent').waitFor(slow)
  await page.getByText(hostile.script).first().waitFor()
  const look = async (name) => {
    assert.equal(await page.evaluate(() => window.owned), undefined, `${name}: a machine's words were run`)
    assert.equal(await page.locator('img[src="x"]').count(), 0, `${name}: a machine's words became elements`)
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    assert.ok(wide <= 1, `${name}: the page is ${wide}px too wide`)
    await sound(page, `evil-${name}`)
  }
  for (const tab of ['Timeline', 'Hardware', 'Network', 'Storage', 'Boot preview', 'Console', 'YAML', 'Audit']) {
    await page.getByRole('tab', { name: tab, exact: true }).click()
    await page.getByLabel('Loading').first().waitFor({ state: 'detached' })
    await look(tab.toLowerCase().replace(' ', '-'))
  }
  for (const path of ['/hosts', '/networks?tab=leases', '/racks?tab=cables', '/issues', '/operations', '/audit', '/']) {
    await page.goto(path)
    await page.getByRole('heading', { level: 1 }).first().waitFor()
    await page.getByLabel('Loading').first().waitFor({ state: 'detached' })
    await look(path.replaceAll(/\W+/g, '-'))
  }
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('what a console says is text, too', slow, async () => {
  await rack.cli('host', 'create', 'shouts', '--mac', '52:54:00:fa:00:03')
  await rack.cli('host', 'bmc', 'shouts', '--driver', 'fake', '--system', '<script>window.owned=1</script>\u202e').catch(() =>
    rack.cli('host', 'bmc', 'shouts', '--driver', 'fake', '--system', '<script>window.owned=1</script>'),
  )
  const page = await rack.page('/hosts/shouts?tab=console')
  page.on('dialog', (d) => {
    page.errors.push(`a dialog opened: ${d.message()}`)
    void d.dismiss()
  })
  await page.getByRole('button', { name: 'Open console' }).click()
  const line = page.getByRole('textbox', { name: 'Serial console of shouts' })
  await page.getByText('Your input goes to the machine').waitFor()
  await line.focus()
  await page.keyboard.press('Enter')
  await until('the console answers', async () => /<script>/.test(await line.inputValue()))
  await page.getByRole('button', { name: 'Read again' }).click()
  await page.getByLabel('Search the recording').fill('owned')
  await page.getByRole('region', { name: 'Recorded' }).getByRole('listitem').filter({ hasText: '<script>' }).first().waitFor()
  assert.equal(await page.evaluate(() => window.owned), undefined)
  await sound(page, 'shouts')
  assert.deepEqual(answered(page), [])
  await page.context().close()
})
