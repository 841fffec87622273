// Instances: one on a file of SQLite says so. Of two on PostgreSQL, people use the one that does not have the engine, over the network: its
// pages follow what happens at the leader, survive its death, and take instances out for maintenance.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Fleet, installed } from './fleet.mjs'
import { faults, Rack } from './rack.mjs'

const ends = []
after(async () => {
  for (const end of ends.reverse()) await end()
})

const shots = process.env.SLIPWAY_SHOTS

// sound takes pictures of a page, wide and narrow, in light colours and in dark ones, and fails if the page has a serious fault or does
// not fit.
async function sound(page, name) {
  const said = page.errors.length
  const size = page.viewportSize()
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 })
    for (const theme of ['light', 'dark']) {
      await page.evaluate((isDark) => document.documentElement.classList.toggle('pf-v6-theme-dark', isDark), theme === 'dark')
      if (shots) {
        const tall = await page.evaluate(() => document.querySelector('#main')?.scrollHeight ?? 0)
        await page.setViewportSize({ width, height: Math.max(900, tall + 200) })
        await page.screenshot({ path: join(shots, `instances-${name}-${theme}-${width}.png`), animations: 'disabled' })
        await page.setViewportSize({ width, height: 900 })
      }
      assert.deepEqual(await faults(page, theme === 'dark' ? ['color-contrast'] : undefined), [], `${name} ${theme} ${width}`)
    }
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    assert.ok(over <= 0, `${name} is ${over} pixels too wide at ${width}`)
  }
  await page.evaluate(() => document.documentElement.classList.remove('pf-v6-theme-dark'))
  await page.setViewportSize(size)
  page.errors.length = said // the page refuses the script that looks for faults, as it should
}

test('one instance on a file says that it is the only one', async () => {
  const rack = await Rack.start(`slipway-ins1-${process.pid}`)
  ends.push(() => rack.end())
  const page = await rack.page('/instances')
  await page.getByText('One instance, with its inventory in a file of SQLite.').waitFor()
  const row = page.getByRole('grid', { name: 'Instances' }).getByRole('row').nth(1)
  assert.match(await row.innerText(), /has the engine[^]*alive[^]*now/)
  assert.equal(await row.getByRole('button', { name: /^Drain/ }).getAttribute('aria-disabled'), 'true')
  assert.deepEqual(await faults(page), [])
  assert.deepEqual(page.errors, [])
  await page.context().close()
  await rack.end()
  ends.pop()
})

const two = { skip: installed ? false : 'PostgreSQL is not installed; run: apt-get install postgresql', timeout: 240_000 }
let fleet
let a
let b
let c // a machine without a server
before(async () => {
  if (!installed) return
  fleet = await Fleet.start(['a', 'b', 'c'], 2)
  ends.push(() => fleet.end())
  ;[a, b, c] = fleet.members
})

const row = (page, name) => page.getByRole('grid', { name: 'Instances' }).getByRole('row').filter({ has: page.getByRole('button', { name: `Delete ${name}` }) })
const duty = (page, name) => page.getByRole('grid', { name: 'Duties' }).getByRole('row').filter({ has: page.getByRole('gridcell', { name, exact: true }) })
const confirm = async (page, name, verb) => {
  await row(page, name).getByRole('button', { name: `${verb} ${name}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: verb, exact: true }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

// hear keeps what a page hears from event streams: the id of each event, and with which id each stream was asked to go on.
const hear = (page) =>
  page.addInitScript(() => {
    window.heard = []
    window.resumed = []
    const real = window.fetch
    window.fetch = async (...args) => {
      const answer = await real(...args)
      if (args[0] !== '/api/v1/events' || !answer.ok) return answer
      window.resumed.push(args[1].headers['Last-Event-ID'])
      const [mine, theirs] = answer.body.tee()
      void (async () => {
        let rest = ''
        try {
          for await (const chunk of mine.pipeThrough(new TextDecoderStream())) {
            const lines = (rest + chunk).split('\n')
            rest = lines.pop()
            for (const l of lines) if (l.startsWith('data:')) window.heard.push(JSON.parse(l.slice(5)).id)
          }
        } catch {
          // the stream was cut
        }
      })()
      return new Response(theirs, answer)
    }
  })

test('the page at an instance without the engine shows who does what, and how the database is', two, async () => {
  const page = await b.page('/instances')
  await row(page, 'a').getByText('has the engine').waitFor()
  await row(page, 'b').getByText('alive').waitFor()
  for (const name of ['engine', 'network/vs']) assert.match(await duty(page, name).innerText(), /\ba\b[^]*ago[^]*nobody had it/)
  await sound(page, 'two')
  await page.goto('/')
  const database = page.getByRole('region', { name: 'Health of this server' })
  await database.getByText(/^\d+\.\d ms$/).waitFor()
  await database.getByText('Each commit is on the disk. No standby has to have it.').waitFor()
  await database.getByText(/checks are good|boot loaders|images/).first().waitFor()
  await sound(page, 'overview')
  await database.getByRole('link', { name: '2 of 2 alive; a has the engine' }).click()
  await page.getByRole('heading', { name: 'Instances', level: 1 }).waitFor()
  assert.deepEqual(page.errors, [])
  await page.context().close()
})

test('a viewer reads all of it, and changes nothing', two, async () => {
  await a.cli('user', 'create', 'vera', '--role', 'viewer', '--password-file', await a.file('correct horse vera\n'))
  const page = await b.page('/instances', { login: { user: 'vera', password: 'correct horse vera' } })
  await row(page, 'a').getByText('has the engine').waitFor()
  for (const name of ['Drain a', 'Drain b', 'Delete a', 'Delete b'])
    assert.equal(await page.getByRole('button', { name }).getAttribute('aria-disabled'), 'true', name)
  await page.getByRole('button', { name: 'Drain b' }).hover()
  await page.getByText('needs role admin everywhere; you are viewer').waitFor()
  await page.context().close()
})

test('an upload and a console go through it', two, async () => {
  const disk = randomBytes(700_000)
  const page = await b.page('/images?do=import')
  const form = page.getByRole('dialog')
  await form.getByRole('radio', { name: 'A disk image', exact: true }).check()
  const line = await page.context().newCDPSession(page) // a slow line, so that the upload can be watched
  const speed = (uploadThroughput) => line.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput })
  await speed(300_000)
  await form.getByLabel('Upload disk image').setInputFiles({ name: 'mine.raw', mimeType: 'application/octet-stream', buffer: disk })
  await page.waitForFunction(() => Number(document.querySelector('[role="progressbar"][aria-label="Upload of mine.raw"]')?.getAttribute('aria-valuenow')) > 0)
  await speed(-1)
  await form.getByText('mine.raw, uploaded').waitFor()
  await form.getByRole('textbox', { name: 'Name' }).fill('mine')
  await form.getByLabel('SHA-256', { exact: true }).fill(createHash('sha256').update(disk).digest('hex'))
  await form.getByRole('button', { name: 'Import', exact: true }).click()
  await page.getByRole('grid', { name: 'Images' }).getByRole('link', { name: 'mine' }).waitFor()

  await a.cli('host', 'create', 'talks', '--mac', '52:54:00:e0:00:03')
  await a.cli('host', 'bmc', 'talks', '--driver', 'fake', '--system', 'talks')
  await page.goto('/hosts/talks?tab=console')
  await page.getByRole('button', { name: 'Open console' }).click()
  await page.getByText('Your input goes to the machine').waitFor()
  await page.getByRole('textbox', { name: 'Serial console of talks' }).focus()
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => /talks: power /.test(document.querySelector('[aria-label="Serial console of talks"]').value))
  assert.deepEqual(page.errors, [])
  await page.context().close()
})

test('the leader dies: the open pages say so and go on, logged in, with each event', two, async () => {
  const page = await b.page('/instances')
  await hear(page)
  await page.reload()
  await page.getByText('live', { exact: true }).waitFor()
  const hosts = await page.context().newPage() // another page of the same login
  await hosts.goto('/hosts')
  await a.cli('host', 'create', 'before', '--mac', '52:54:00:e0:00:04') // at the leader
  await hosts.getByRole('link', { name: 'before' }).waitFor()

  const late = await page.context().newPage()
  await a.kill()
  // Nobody leads for nine seconds. One page is loaded meanwhile.
  const isLate = late.goto('/hosts').then(() => late.getByText('the instance with the engine does not answer').first().waitFor())
  await page.getByText('The instance with the engine does not answer.').waitFor()
  await row(page, 'a').getByText('alive').waitFor() // what was there stays
  await isLate
  await sound(page, 'nobody')
  if (shots) await late.screenshot({ path: join(shots, 'instances-late.png') })

  await row(page, 'b').getByText('has the engine').waitFor()
  await page.getByText('live', { exact: true }).waitFor()
  await page.getByText('The instance with the engine does not answer.').waitFor({ state: 'detached' })
  await row(page, 'a').getByText('silent').waitFor()
  const takeovers = page.getByRole('grid', { name: 'Takeovers' })
  await takeovers.getByText('instance b took duty engine: instance a gave no sign of life for 9s').waitFor()
  await takeovers.getByText('instance b took duty network/vs: instance a gave no sign of life for 3s').waitFor()
  assert.match(await duty(page, 'engine').innerText(), /\bb\b[^]*instance a gave no sign of life for 9s[^]*\ba\b/)
  await b.cli('host', 'create', 'after', '--mac', '52:54:00:e0:00:05')
  await hosts.getByRole('link', { name: 'after' }).waitFor()
  await late.getByRole('link', { name: 'after' }).waitFor()
  await sound(page, 'taken')

  // Instance b stored the takeover of the network while nobody led. The stream resumes before it.
  const { heard, resumed, all } = await page.evaluate(async () => {
    const listed = await fetch(`/api/v1/events?limit=1000&after=${window.heard[0] - 1}`, { headers: { Accept: 'application/json' } })
    return { heard: window.heard, resumed: window.resumed, all: (await listed.json()).items.map((e) => e.id) }
  })
  assert.deepEqual(heard, all.slice(0, heard.length))
  assert.ok(resumed.length >= 2 && heard.includes(Number(resumed.at(-1))), `resumed after ${resumed}`)

  await page.goto('/issues')
  await page.getByText('instance a gives no sign of life').first().waitFor()
  await sound(page, 'issue')
  await late.close()
  await hosts.close()
  await page.context().close()
})

test('an instance that is gone is deleted, and one is drained for its update', two, async () => {
  const page = await b.page('/instances')
  await confirm(page, 'a', 'Delete')
  await row(page, 'a').waitFor({ state: 'detached' })
  await a.serve(/this one serves on its behalf/)
  await row(page, 'a').getByText('alive').waitFor() // listed again

  await row(page, 'b').getByRole('button', { name: 'Drain b' }).click()
  const ask = page.getByRole('dialog')
  await ask.getByText('It has the engine: this page waits for some seconds').waitFor()
  await ask.getByRole('button', { name: 'The same as a command' }).click()
  assert.equal(await ask.getByRole('textbox', { name: 'Command line' }).inputValue(), 'slipway instance drain b')
  await sound(page, 'drain')
  await ask.getByRole('button', { name: 'Drain', exact: true }).click()
  await row(page, 'a').getByText('has the engine').waitFor()
  await row(page, 'b').getByText('drained').waitFor() // it was started again, and passes the page on
  await page.getByRole('grid', { name: 'Takeovers' }).getByText('instance a took duty engine: instance b was drained').waitFor()
  await page.getByText('live', { exact: true }).waitFor()
  assert.equal(await row(page, 'a').getByRole('button', { name: 'Drain a' }).getAttribute('aria-disabled'), 'true')
  await sound(page, 'drained')
  await confirm(page, 'b', 'Undrain')
  await row(page, 'b').getByText('drained').waitFor({ state: 'detached' })
  await page.context().close()
})

test('an admin invites a machine, and it becomes an instance; an invitation that is withdrawn lets none in', two, async () => {
  const page = await b.page('/instances')
  const invite = async (name) => {
    await page.getByRole('button', { name: 'Invite a machine' }).click()
    const ask = page.getByRole('dialog')
    await ask.getByRole('textbox', { name: 'Name of the new instance' }).fill(name)
    await ask.getByRole('button', { name: 'Invite', exact: true }).click()
    const made = page.getByRole('dialog').filter({ hasText: 'Run this on the new machine' })
    const [command, code] = await Promise.all(['Command', 'Code'].map((what) => made.getByRole('textbox', { name: `${what} for the new machine` }).inputValue()))
    await sound(page, `invitation-${name}`)
    await made.getByRole('button', { name: 'Done' }).click()
    await made.waitFor({ state: 'detached' })
    assert.ok(!command.includes(code) && !(await page.content()).includes(code))
    return [command, code]
  }
  const invitation = (name) => page.getByRole('grid', { name: 'Invitations' }).getByRole('row').filter({ hasText: name })

  const [never, lost] = await invite('nobody')
  await invitation('nobody').getByRole('button', { name: /^Withdraw/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Withdraw', exact: true }).click()
  await invitation('nobody').getByText('withdrawn').waitFor()
  await mkdir(c.data)
  await assert.rejects(c.accept(never, lost), /withdrawn/)

  const [command, code] = await invite('c')
  await c.accept(command, code)
  await invitation('c').getByText('used', { exact: true }).waitFor()
  await c.serve(/this one serves on its behalf/)
  await row(page, 'c').getByText('alive').waitFor()
  await sound(page, 'three')
  assert.deepEqual(page.errors, [])
  await page.context().close()
})
