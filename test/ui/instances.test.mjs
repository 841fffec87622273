// Instances: one on a file of SQLite says so. test/net has two of them on PostgreSQL, with the API that this page asks.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { faults, Rack } from './rack.mjs'

const ends = []
after(async () => {
  for (const end of ends.reverse()) await end()
})

const shot = async (page, name) => process.env.SLIPWAY_SHOTS && (await page.screenshot({ path: `${process.env.SLIPWAY_SHOTS}/instances-${name}.png`, fullPage: true }))

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
