// Images, profiles, layers, secrets and accept rules, as an admin meets them: a real server, simulated machines, a web
// server of files in the same namespace, and what goes wrong.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { faults, Rack } from './rack.mjs'

let rack
const deadline = Number(process.env.SLIPWAY_DEADLINE ?? 90_000) // a busy machine takes its time
let files // folder that a web server in the namespace serves
let web
const shots = process.env.SLIPWAY_SHOTS
const kernel = randomBytes(300_000)
const sum = (b) => createHash('sha256').update(b).digest('hex')

// A file server that sends SLOW-files in pieces, and stops in the middle of them until it is told to go on.
const server = `
const http = require('node:http'), fs = require('node:fs'), path = require('node:path')
http.createServer((q, r) => {
  const name = path.join(process.argv[1], path.basename(q.url))
  if (!fs.existsSync(name)) { r.writeHead(404); return r.end() }
  const body = fs.readFileSync(name)
  r.writeHead(200, { 'Content-Length': body.length })
  if (!q.url.includes('slow')) return r.end(body)
  r.write(body.subarray(0, body.length / 2))
  const go = setInterval(() => { if (fs.existsSync(name + '.go')) { clearInterval(go); r.end(body.subarray(body.length / 2)) } }, 50)
  r.on('close', () => clearInterval(go))
}).listen(8099, '127.0.0.1', () => console.log('up'))`

before(async () => {
  rack = await Rack.start(`slipway-cat-${process.pid % 10000}`)
  files = await mkdtemp(join(tmpdir(), 'slipway-cat-files-'))
  await writeFile(join(files, 'vmlinuz'), kernel)
  await writeFile(join(files, 'slow-initrd'), randomBytes(400_000))
  const [cmd, args] = rack.inside(process.execPath, '-e', server, files)
  web = spawn(cmd, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise((up) => web.stdout.on('data', up))
})
after(async () => {
  web?.kill('SIGKILL')
  await rack?.end()
  if (files) await rm(files, { recursive: true, force: true })
})

// What a story that failed has left open is closed, and looked at where pictures are wanted.
afterEach(async (t) => {
  for (const context of rack.chromium?.contexts() ?? []) {
    for (const page of context.pages()) await shoot(page, `failed-${t.name.slice(0, 40).replaceAll(/\W+/g, '-')}`)
    await context.close()
  }
})

async function open(...how) {
  const page = await rack.page(...how)
  page.setDefaultTimeout(deadline)
  return page
}

async function shoot(page, name) {
  if (!shots) return
  await mkdir(shots, { recursive: true })
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true })
}

async function sound(page, name) {
  await shoot(page, name)
  assert.deepEqual(await faults(page), [], name)
}

// answered leaves out what the browser says of answers that are meant to be refusals.
const answered = (page) => page.errors.filter((e) => !/the server responded with a status of|net::ERR_/.test(e))

test('an import goes on by itself, says how far it is, fails with a reason, and is tried again', async () => {
  const page = await open('/images')
  await page.getByText('There is no image yet').waitFor()
  await page.getByText('It is not built yet.').waitFor()
  await page.getByRole('button', { name: 'Import an image' }).click()
  const form = page.getByRole('dialog')
  await form.getByText('Not yet: it has no name.').waitFor()
  await form.getByRole('radio', { name: 'A kernel and its initrd' }).check()
  await form.getByLabel(/^Kernel\W*$/).fill('http://127.0.0.1:8099/vmlinuz')
  await form.getByLabel(/^Initrd\W*$/).fill('http://127.0.0.1:8099/slow-initrd')
  await form.getByRole('textbox', { name: 'Name' }).fill('tools')
  await form.getByLabel('Format of its configuration').selectOption('cloud-init')
  await form.getByRole('button', { name: 'The same as a command' }).click()
  assert.match(await form.getByLabel('Command line').inputValue(), /slipway image import tools --kernel http:\/\/127\.0\.0\.1:8099\/vmlinuz/)
  await sound(page, 'import-form')
  await form.getByRole('button', { name: 'Import', exact: true }).click()

  const job = page.getByRole('listitem', { name: 'Import of tools' })
  await job.getByText('running').waitFor()
  await job.getByRole('progressbar').waitFor()
  await job.getByText(/195 KiB of 391 KiB/).waitFor()
  await sound(page, 'import-running')
  await job.getByRole('button', { name: 'Cancel' }).click()
  await job.getByText('failed').waitFor()
  await job.getByText('the import was stopped').waitFor()
  await writeFile(join(files, 'slow-initrd.go'), '')
  await job.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('grid', { name: 'Images' }).getByRole('link', { name: 'tools' }).waitFor()
  await page.getByRole('grid', { name: 'Images' }).getByText('nothing').waitFor()
  await sound(page, 'images')
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('a file with another sum, and an address where nothing is, are refused with the reason', async () => {
  const page = await open('/images?do=import')
  const form = page.getByRole('dialog')
  await form.getByRole('radio', { name: 'A disk image', exact: true }).check()
  await form.getByLabel(/^Disk image\W*$/).fill('http://127.0.0.1:8099/vmlinuz')
  await form.getByLabel('SHA-256', { exact: true }).fill('ab')
  await form.getByRole('textbox', { name: 'Name' }).fill('wrong')
  await form.getByRole('button', { name: 'Import', exact: true }).click()
  await form.getByText('is not a sha256 digest').waitFor() // and the form is still there
  await form.getByLabel('SHA-256', { exact: true }).fill('a'.repeat(64))
  await form.getByRole('button', { name: 'Import', exact: true }).click()
  const job = page.getByRole('listitem', { name: 'Import of wrong' })
  await job.getByText('failed').waitFor()
  assert.match(await job.innerText(), new RegExp(sum(kernel).slice(0, 12)))
  assert.equal(await page.getByRole('grid', { name: 'Images' }).getByText('wrong').count(), 0)

  await page.getByRole('button', { name: 'Import an image' }).click()
  await form.getByRole('radio', { name: 'A kernel and its initrd' }).check()
  await form.getByLabel(/^Kernel\W*$/).fill('http://127.0.0.1:8099/not-there')
  await form.getByRole('textbox', { name: 'Name' }).fill('absent')
  await form.getByRole('button', { name: 'Import', exact: true }).click()
  await page.getByRole('listitem', { name: 'Import of absent' }).getByText(/there is no .* at http:\/\/127\.0\.0\.1:8099\/not-there/).waitFor()
  await sound(page, 'import-failed')
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('a file of the browser is uploaded and imported; what nobody uses is shown before it is pruned', async () => {
  const disk = randomBytes(700_000)
  const page = await open('/images?do=import')
  const form = page.getByRole('dialog')
  await form.getByRole('radio', { name: 'A disk image', exact: true }).check()
  await form.getByLabel('Upload disk image').setInputFiles({ name: 'my disk.raw', mimeType: 'application/octet-stream', buffer: disk })
  await form.getByText('my-disk.raw, uploaded').waitFor()
  await form.getByRole('textbox', { name: 'Name' }).fill('mine')
  await form.getByLabel('SHA-256', { exact: true }).fill(sum(disk))
  await form.getByRole('button', { name: 'Import', exact: true }).click()
  await page.getByRole('grid', { name: 'Images' }).getByRole('link', { name: 'mine' }).click()
  await page.getByRole('heading', { level: 1, name: 'mine' }).waitFor()
  const table = page.getByRole('grid', { name: 'Files of mine' })
  await table.getByText(sum(disk)).waitFor()
  await table.getByText('upload:my disk.raw').waitFor()
  await table.getByText('684 KiB').waitFor()
  await sound(page, 'image')
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('heading', { level: 1, name: 'Images' }).waitFor()

  await page.getByRole('button', { name: 'Prune' }).click()
  const prune = page.getByRole('dialog')
  await prune.getByText('Nothing would be removed').waitFor() // it went out of use just now
  await prune.getByText('Kept, because a machine may still be booting them').waitFor()
  assert.equal(await prune.getByRole('button', { name: 'Remove' }).isDisabled(), true)
  await prune.getByRole('button', { name: 'Close' }).last().click()
  await page.getByRole('button', { name: 'Verify' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Verify' }).click()
  await page.getByText('All files are as they were imported.').waitFor()
  await sound(page, 'verify')
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('a profile is written with findings at its lines, and says which hosts would change before it is saved', async () => {
  void rack.machines(6, '--expect', 'waiting')
  const page = await open('/profiles')
  await page.getByText('There is no profile yet').waitFor()
  await page.getByRole('button', { name: 'Create a profile' }).click()
  await page.getByRole('heading', { level: 1, name: 'Create a profile' }).waitFor()
  await page.getByLabel(/^Name\W*$/).fill('web')
  await page.getByLabel(/^Image\W*$/).selectOption('tools')
  const text = page.getByRole('textbox', { name: 'Configuration', exact: true })
  assert.match(await text.inputValue(), /This is \{\{ \.Host\.Name \}\}/)
  await page.getByLabel('Selector').fill('=')
  await page.getByText('is not a term').first().waitFor()
  await page.getByLabel('Selector').fill('mac')
  await page.getByText('6 hosts match').waitFor()
  await text.fill('users:\n  - name: admin\n    colour: red\n# <img src=x onerror=alert(1)>\n')
  await page.getByRole('button', { name: 'line 3' }).waitFor()
  const marks = page.getByRole('list', { name: 'Findings about Configuration' })
  await marks.getByText(/"colour" is not a key here/).waitFor()
  await page.getByText('Not yet: it has errors.').waitFor()
  await page.getByRole('button', { name: 'line 3' }).click()
  assert.equal(await text.evaluate((t) => t.value.slice(t.selectionStart, t.selectionEnd)), '    colour: red')
  await sound(page, 'profile-errors')
  await text.fill('users:\n  - name: admin\nfiles:\n  - path: /etc/motd\n    text: |\n      This is {{ .Host.Name }}. </script><b>hostile</b>\n')
  await page.getByText('6 of its 6 hosts would get another configuration').waitFor()
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  const save = page.getByRole('dialog')
  await save.getByText('6 of its 6 hosts would get another configuration').waitFor()
  await save.getByRole('button', { name: 'The same as a command' }).click()
  assert.equal(await save.getByLabel('Command line').inputValue(), 'slipway profile create web --image tools --selector mac --config web.yaml')
  await sound(page, 'profile-save')
  await save.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { level: 1, name: 'web' }).waitFor()

  await page.getByRole('tab', { name: 'Hosts' }).click()
  await page.getByText('6 hosts get this profile').waitFor()
  await page.getByRole('heading', { name: /^What host-.* would get$/ }).waitFor()
  await page.getByText('</script><b>hostile</b>').first().waitFor()
  await page.getByRole('button', { name: /^Where each of \d+ values comes from$/ }).click()
  await page.getByRole('grid', { name: 'Where values come from' }).getByText(/profile web:/).first().waitFor()
  await sound(page, 'profile-hosts')
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('Tab indents in the editor, and Esc lets it leave', async () => {
  const page = await open('/profiles/web')
  const text = page.getByRole('textbox', { name: 'Configuration', exact: true })
  await text.fill('a')
  await text.press('Tab')
  assert.equal(await text.inputValue(), 'a  ')
  await text.press('Control+z')
  assert.equal(await text.inputValue(), 'a')
  await text.press('Escape')
  await text.press('Tab')
  assert.equal(await text.evaluate((t) => document.activeElement === t), false)
  await page.getByRole('button', { name: 'Discard the changes' }).click()
  assert.match(await text.inputValue(), /hostile/)
  await page.context().close()
})

test('when somebody else saves first, their change is shown and mine is kept until it is chosen', async () => {
  const page = await open('/profiles/web')
  const text = page.getByRole('textbox', { name: 'Configuration', exact: true })
  const mine = `${await text.inputValue()}groups:\n  - name: mine\n`
  await text.fill(mine)
  await rack.cli('profile', 'set', 'web', '--priority', '7')
  await page.getByText('Somebody else has saved profile web meanwhile. Your text is still here.').waitFor()
  await page.getByRole('region', { name: 'Changes of priority' }).getByText('7').waitFor()
  await page.getByText('Not yet: somebody else has saved it meanwhile').waitFor()
  await sound(page, 'profile-conflict')
  await page.getByRole('button', { name: 'Merge my changes into theirs' }).click()
  assert.equal(await text.inputValue(), mine)
  assert.equal(await page.getByLabel('Priority').inputValue(), '7')

  // Both change the same: nothing is put together.
  await page.getByLabel('Priority').fill('3')
  await rack.cli('profile', 'set', 'web', '--priority', '9')
  await page.getByText('Both of you changed priority').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Merge my changes into theirs' }).isDisabled(), true)
  await page.getByRole('button', { name: 'Keep mine, undo theirs' }).click()
  await page.getByText('6 of its 6 hosts would get another configuration').waitFor()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByText('Not yet: nothing is changed.').waitFor()
  const stored = JSON.parse(await rack.cli('profile', 'show', 'web', '-o', 'json'))
  assert.equal(stored.priority, 3)
  assert.equal(stored.config, mine)
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('a save that was overtaken while it was asked about is refused, and leads to the choice', async () => {
  const page = await open('/profiles/web')
  await page.getByLabel('Priority').fill('11')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  const save = page.getByRole('dialog')
  await save.getByText('priority').first().waitFor()
  // The dialog has the version that was seen; somebody else is faster.
  await rack.cli('profile', 'set', 'web', '--arg', 'quiet')
  await save.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Somebody else has saved profile web meanwhile').waitFor()
  assert.equal(await page.getByLabel('Priority').inputValue(), '11')
  await page.getByRole('button', { name: 'Take theirs, drop mine' }).click()
  assert.equal(await page.getByLabel('Priority').inputValue(), '3')
  assert.deepEqual(JSON.parse(await rack.cli('profile', 'show', 'web', '-o', 'json')).kernelArgs, ['quiet'])
  await page.context().close()
})

test('what is typed while the server is away is kept, also when the page is loaded anew', async () => {
  const page = await open('/profiles/web')
  const text = page.getByRole('textbox', { name: 'Configuration', exact: true })
  const typed = `${await text.inputValue()}# typed while nobody listens\n`
  await page.getByText('live', { exact: true }).waitFor()
  await rack.kill()
  await text.fill(typed)
  await page.getByText('The server does not answer.').first().waitFor()
  await shoot(page, 'profile-server-away')
  assert.equal(await text.inputValue(), typed)
  await rack.serve()
  page.on('dialog', (d) => void d.accept()) // the browser asks whether to leave
  await page.reload()
  await page.getByText('These changes are not saved').waitFor()
  assert.equal(await text.inputValue(), typed)
  await page.getByRole('button', { name: 'Discard them' }).click()
  assert.doesNotMatch(await text.inputValue(), /nobody listens/)
  await page.context().close()
})

test('what is typed outlives a login that ends, but not a logout', async () => {
  const page = await open('/profiles/web')
  const text = page.getByRole('textbox', { name: 'Configuration', exact: true })
  const enter = async () => {
    await page.getByLabel(/^Token\W*$/).fill(rack.token)
    await page.getByRole('button', { name: 'Log in', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'web' }).waitFor()
  }
  const typed = `${await text.inputValue()}# for nobody else\n`
  page.on('dialog', (d) => void d.accept())
  await text.fill(typed)
  await page.context().clearCookies()
  await page.reload()
  await enter()
  await page.getByText('These changes are not saved').waitFor()
  assert.equal(await text.inputValue(), typed)

  await page.getByRole('button', { name: 'User menu of token admin' }).click()
  await page.getByRole('menuitem', { name: 'Log out' }).click()
  await page.getByLabel(/^Token\W*$/).waitFor()
  assert.doesNotMatch(await page.evaluate(() => JSON.stringify(Object.entries(sessionStorage))), /for nobody else/)
  await enter()
  await text.waitFor()
  assert.doesNotMatch(await text.inputValue(), /for nobody else/)
  assert.equal(await page.getByText('These changes are not saved').count(), 0)
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('a revision is compared, and gone back to', async () => {
  const page = await open('/profiles/web?tab=revisions')
  const table = page.getByRole('grid', { name: 'Revisions' })
  await table.getByText('it was created').waitFor()
  await page.getByRole('region', { name: 'What differs' }).getByText('quiet').waitFor()
  await page.getByLabel(/^From\W*$/).selectOption('revision 1')
  await page.getByRole('region', { name: 'Changes of configuration' }).getByText('name: mine').waitFor()
  assert.match(page.url(), /from=1/)
  await sound(page, 'profile-revisions')
  await table.getByRole('button', { name: 'Go back to revision 1' }).click()
  const ask = page.getByRole('dialog')
  await ask.getByText('6 of its 6 hosts would get another configuration').waitFor()
  await ask.getByRole('button', { name: 'Save' }).click()
  await table.getByText('5 (in force)').or(table.getByText('6 (in force)')).waitFor()
  const stored = JSON.parse(await rack.cli('profile', 'show', 'web', '-o', 'json'))
  assert.equal(stored.priority, 0)
  assert.doesNotMatch(stored.config, /name: mine/)
  await page.context().close()
})

test('a profile is copied without its selector, and deleted', async () => {
  const page = await open('/profiles/web')
  await page.getByRole('button', { name: 'Copy' }).click()
  await page.getByText('A copy of web.').waitFor()
  await page.getByLabel(/^Name\W*$/).fill('Web 2')
  assert.equal(await page.getByLabel('Selector').inputValue(), '')
  await page.getByText(/not a name for a profile/).waitFor()
  await sound(page, 'profile-copy')
  await page.getByLabel(/^Name\W*$/).fill('web-2')
  await page.getByText('No host uses it').waitFor()
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { level: 1, name: 'web-2' }).waitFor()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('grid', { name: 'Profiles' }).getByRole('link', { name: 'web', exact: true }).waitFor()
  await sound(page, 'profiles')
  assert.doesNotMatch(await rack.cli('profile', 'list'), /web-2/)
  await page.goto('/images/tools')
  await page.getByRole('region', { name: 'Used by' }).getByText('profile web').waitFor()
  await page.getByRole('button', { name: 'Delete' }).hover()
  await page.getByText(/used by profile web: change or delete that first/).waitFor()
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('a layer is tried on its hosts while it is written', async () => {
  const page = await open('/profiles?tab=layers')
  await page.getByText('There is no layer yet').waitFor()
  await page.getByRole('button', { name: 'Edit the layer' }).click()
  await page.getByRole('heading', { name: 'Layer global (new)' }).waitFor()
  const text = page.getByRole('textbox', { name: 'Layer', exact: true })
  await text.fill('hots: {}\n')
  await page.getByRole('list', { name: 'Findings about Layer' }).getByText(/"hots" is not a key here/).waitFor()
  await text.fill('files:\n  - path: /etc/issue\n    text: of all\n')
  // Looking elsewhere meanwhile loses nothing.
  await page.getByRole('link', { name: 'All layers' }).click()
  await page.getByRole('button', { name: 'Edit the layer' }).click()
  await page.getByText('These changes are not saved').waitFor()
  await page.getByText('6 of its 6 hosts would get another configuration').waitFor()
  await sound(page, 'layer')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByText('Not yet: nothing is changed.').waitFor()
  assert.match(await rack.cli('layer', 'show', 'global'), /of all/)
  assert.equal(await page.getByText('These changes are not saved').count(), 0)
  await page.getByRole('link', { name: 'All layers' }).click()
  await page.getByRole('grid', { name: 'Layers' }).getByRole('link', { name: 'global' }).click()
  await page.getByRole('button', { name: 'Delete the layer' }).click()
  await page.getByRole('dialog').getByText('6 of its 6 hosts would get another configuration').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('There is no layer yet').waitFor()
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('a secret goes in, is never shown, and stays while a profile names it', async () => {
  const page = await open('/settings?tab=secrets')
  await page.getByText('No secret is stored yet').waitFor()
  await page.getByRole('button', { name: 'Store a secret' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel(/^Name\W*$/).fill('motd')
  await form.getByRole('textbox', { name: 'Value' }).fill('Xyzzy-4711')
  await form.getByRole('button', { name: 'The same as a command' }).click()
  assert.doesNotMatch(await form.innerText(), /Xyzzy/)
  for (const field of await form.getByRole('textbox').all()) {
    if ((await field.getAttribute('id')) !== 'secret-value') assert.doesNotMatch(await field.inputValue(), /Xyzzy/)
  }
  await sound(page, 'secret-form')
  await form.getByRole('button', { name: 'Store', exact: true }).click()
  const table = page.getByRole('grid', { name: 'Secrets' })
  await table.getByText('nothing').waitFor()
  await writeFile(join(files, 'web.yaml'), 'files:\n  - path: /etc/motd\n    text: \'{{ secret "motd" }}\'\n')
  await rack.cli('profile', 'set', 'web', '--config', join(files, 'web.yaml'))
  await page.reload()
  await table.getByRole('link', { name: 'web' }).waitFor()
  await table.getByRole('button', { name: 'Delete motd' }).hover()
  await page.getByText('used by profile web: change that first').waitFor()
  await sound(page, 'secrets')
  await table.getByRole('button', { name: 'Change motd' }).click()
  await form.getByLabel('Value from a file').setInputFiles({ name: 'v', mimeType: 'text/plain', buffer: Buffer.from([0, 1, 2]) })
  await form.getByText('is not text').waitFor()
  await form.getByLabel('Value from a file').setInputFiles({ name: 'v', mimeType: 'text/plain', buffer: Buffer.from('other\n') })
  await form.getByRole('button', { name: 'Change', exact: true }).click()
  await form.waitFor({ state: 'detached' })
  assert.doesNotMatch(await page.content(), /Xyzzy|other\n/)
  assert.match(await rack.cli('secret', 'uses', 'motd'), /profile web/)
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

test('an accept rule shows which hosts wait for it, and golden hardware what it asks for', async () => {
  const page = await open('/settings?tab=acceptrules')
  await page.getByRole('button', { name: 'Add a rule' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel(/^Name\W*$/).fill('all')
  await form.getByLabel('Selector').fill('mac')
  await form.getByText('6 discovered hosts match').waitFor()
  await sound(page, 'rule-form')
  await form.getByLabel('Selector').fill('mac=~[')
  await form.getByText('is not a regular expression').waitFor()
  await form.getByRole('button', { name: 'Add', exact: true }).click()
  await form.getByRole('heading', { name: /not a regular expression/ }).or(form.getByText(/is not a regular expression/).nth(1)).waitFor()
  await form.getByLabel('Selector').fill('name=nobody')
  await form.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('grid', { name: 'Accept rules' }).getByText('name=nobody').waitFor()
  await page.getByRole('button', { name: 'Delete all' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('Every host waits for a person').waitFor()

  await page.goto('/settings?tab=goldens')
  await page.getByRole('button', { name: 'Describe a kind of host' }).click()
  await form.getByLabel(/^Name\W*$/).fill('r650')
  await form.getByLabel('Selector').fill('product=R650')
  await form.getByLabel('Disks, exactly').fill('2')
  await form.getByLabel('Memory in GiB, at least').fill('64')
  await form.getByLabel('Firmware').fill('bios=2.1')
  await sound(page, 'golden-form')
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('grid', { name: 'Golden hardware' }).getByText('2 disks, 64.0 GiB memory, bios 2.1').waitFor()
  await sound(page, 'goldens')
  assert.deepEqual(answered(page), [])
  await page.context().close()
})

for (const [theme, width] of [['dark', 1400], ['light', 400]]) {
  test(`every screen of the catalogue is sound in ${theme} colours, ${width} wide`, async () => {
    const page = await open('/images', { viewport: { width, height: 900 }, colorScheme: theme })
    for (const path of ['/images', '/images/tools', '/images?do=import', '/profiles', '/profiles/web', '/profiles/web?tab=hosts', '/profiles/web?tab=revisions', '/profiles?tab=layers', '/settings?tab=secrets']) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.getByLabel('Loading').first().waitFor({ state: 'detached' })
      if (path === '/profiles/web?tab=hosts') await page.getByRole('heading', { name: /would get/ }).waitFor()
      await sound(page, `${theme}-${width}${path.replaceAll(/\W+/g, '-')}`)
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${path} is wider than ${width}`)
    }
    await page.context().close()
  })
}
