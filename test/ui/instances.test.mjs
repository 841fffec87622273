// Instances: one on a file of SQLite says so. Of two on PostgreSQL, an admin drains the one that serves the page, and the page goes on
// from the other.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { installed, Postgres } from './postgres.mjs'
import { faults, Rack, slipway } from './rack.mjs'

const ends = []
after(async () => {
  for (const end of ends.reverse()) await end()
})

const shot = async (page, name) => process.env.SLIPWAY_SHOTS && (await page.screenshot({ path: `${process.env.SLIPWAY_SHOTS}/instances-${name}.png`, fullPage: true }))

// begin starts an instance that stands by, in the namespace of a rack, and starts it again whenever it ends by itself, as systemd does.
async function begin(rack, name, data) {
  const [cmd, args] = rack.inside(slipway, 'serve', '--interface', 'vs', '--data-dir', data, '--instance', name, '--mode', 'full', '--unknown', 'wait', ...rack.flags)
  const one = { isOver: false }
  const start = () =>
    new Promise((ready, failed) => {
      let said = ''
      one.server = spawn(cmd, args, { stdio: ['ignore', 'pipe', 'pipe'] })
      const take = (chunk) => {
        said += chunk
        if (/standing by: instance|API on /.test(said)) ready()
      }
      one.server.stdout.on('data', take)
      one.server.stderr.on('data', take)
      one.server.on('exit', () => {
        failed(new Error(`instance ${name} ended:\n${said}`))
        if (!one.isOver) void start().catch(() => {})
      })
    })
  one.end = async () => {
    if (one.isOver) return
    one.isOver = true
    const gone = new Promise((r) => one.server.on('exit', r))
    one.server.kill('SIGKILL')
    await gone
  }
  await start()
  return one
}

test('one instance on a file says that it is the only one', async () => {
  const rack = await Rack.start(`slipway-ins1-${process.pid}`)
  ends.push(() => rack.end())
  const page = await rack.page('/instances')
  await page.getByText('One instance, with its inventory in a file of SQLite.').waitFor()
  const row = page.getByRole('grid', { name: 'Instances' }).getByRole('row').nth(1)
  assert.match(await row.innerText(), /has the engine[^]*alive[^]*now/)
  assert.equal(await row.getByRole('button', { name: /^Drain/ }).getAttribute('aria-disabled'), 'true')
  await shot(page, 'sqlite')
  assert.deepEqual(await faults(page), [])
  assert.deepEqual(page.errors, [])
  await page.context().close()
})

test('the instance that serves the page is drained, and the page goes on from the other', { skip: installed ? false : 'PostgreSQL is not installed', timeout: 240_000 }, async () => {
  const pg = await Postgres.start()
  ends.push(() => pg.end())
  const rack = await Rack.start(`slipway-ins2-${process.pid}`, '--database', pg.url, '--instance', 'a')
  ends.push(() => rack.end())
  const other = await mkdtemp(join(tmpdir(), 'slipway-ui-'))
  ends.push(() => rm(other, { recursive: true, force: true }))
  await cp(join(rack.data, 'secret.key'), join(other, 'secret.key'))
  rack.flags = ['--database', pg.url]
  const b = await begin(rack, 'b', other)
  ends.push(() => b.end())

  const page = await rack.page('/')
  await page.getByRole('link', { name: 'Instances of this database' }).click()
  await page.getByRole('heading', { name: 'Instances', level: 1 }).waitFor()
  const row = (name) => page.getByRole('grid', { name: 'Instances' }).getByRole('row').filter({ has: page.getByRole('button', { name: `Delete ${name}` }) })
  await row('a').getByText('has the engine').waitFor()
  await row('b').getByText('alive').waitFor()
  await shot(page, 'two')
  assert.deepEqual(await faults(page), [])

  await row('a').getByRole('button', { name: 'Drain a' }).click()
  const ask = page.getByRole('dialog')
  await ask.getByText('It serves this page').waitFor()
  await ask.getByRole('button', { name: 'The same as a command' }).click()
  assert.equal(await ask.getByRole('textbox', { name: 'Command line' }).inputValue(), 'slipway instance drain a')
  await shot(page, 'drain')
  await ask.getByRole('button', { name: 'Drain', exact: true }).click()
  await row('b').getByText('has the engine').waitFor()
  await row('a').getByText('drained').waitFor()
  if (rack.server.exitCode === null) await new Promise((r) => rack.server.once('exit', r)) // what it kept in memory is old
  const a = await begin(rack, 'a', rack.data)
  ends.push(() => a.end())
  await row('a').getByText('alive').waitFor()
  const takeovers = page.getByRole('grid', { name: 'Takeovers' })
  await takeovers.getByText('instance b took duty engine: instance a was drained').waitFor()
  await page.getByRole('grid', { name: 'Duties' }).getByRole('row').filter({ hasText: 'engine' }).getByText('instance a was drained').waitFor()
  await shot(page, 'drained')
  assert.deepEqual(await faults(page), [])

  await row('a').getByRole('button', { name: 'Undrain a' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Undrain', exact: true }).click()
  await row('a').getByText('drained').waitFor({ state: 'detached' })

  await b.end()
  await row('b').getByText('silent').waitFor()
  await row('a').getByText('has the engine').waitFor()
  await takeovers.getByText('instance a took duty engine: instance b gave no sign of life for 9s').waitFor()
  await shot(page, 'silent')
  await page.goto('/issues')
  await page.getByText('instance b gives no sign of life').first().waitFor()
  await page.goto('/instances')
  await row('b').getByRole('button', { name: 'Delete b' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
  await row('b').waitFor({ state: 'detached' })
  await page.context().close()
})
