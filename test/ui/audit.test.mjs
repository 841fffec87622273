import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { faults, Rack } from './rack.mjs'

let rack
before(async () => {
  rack = await Rack.start(`slipway-audit-${process.pid}`)
  await rack.cli('pool', 'create', 'gold', '--selector', 'rack=r1')
  await rack.cli('pool', 'set', 'gold', '--selector', 'rack=r2')
  await rack.cli('pool', 'create', 'A_B', '--selector', 'rack=r1').catch(() => {})
})
after(() => rack?.end())

const shot = (page, name) => process.env.SLIPWAY_SHOTS && page.screenshot({ path: join(process.env.SLIPWAY_SHOTS, `${name}.png`), fullPage: true })

test('an edit is found, shown with what it changed, and taken back', async () => {
  const page = await rack.page('/audit')
  const table = page.getByRole('grid', { name: 'Audit' })
  await table.getByRole('link', { name: 'put pool' }).waitFor()
  await table.getByText('refused (422)').waitFor()
  await shot(page, 'audit-list')
  await page.getByLabel('Outcome').selectOption('change')
  await table.getByText('refused (422)').waitFor({ state: 'detached' })
  assert.match(page.url(), /outcome=change/)
  assert.deepEqual(await faults(page), [])

  await table.getByRole('link', { name: 'put pool' }).click()
  const changes = page.getByRole('grid', { name: 'Changes' })
  assert.match(await changes.innerText(), /selector[\s\S]*rack=r1[\s\S]*rack=r2/)
  assert.deepEqual(await faults(page), [])
  await shot(page, 'audit-entry')
  const edit = page.url()

  await page.getByRole('button', { name: 'Undo' }).click()
  const ask = page.getByRole('dialog')
  await ask.getByRole('grid', { name: 'What the undo would change' }).waitFor()
  await ask.getByRole('button', { name: 'The same as a command' }).click()
  assert.match(await ask.getByLabel('Command line').inputValue(), /slipway audit undo/)
  await shot(page, 'audit-ask')
  await ask.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('undo audit').first().waitFor()
  assert.match(await rack.cli('pool', 'show', 'gold'), /rack=r1/)

  await page.goto(edit)
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('dialog').getByText('has changed since').waitFor()
  await page.context().close()
})

test('what cannot be undone says why', async () => {
  const page = await rack.page('/audit?outcome=refused')
  await page.getByRole('link', { name: 'create pool' }).first().click()
  await page.getByText('refused (422)').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Undo' }).count(), 0)
  await page.goto('/audit?actor=nobody')
  await page.getByText('No entry matches').waitFor()
  await page.context().close()
})

test('a backup is downloaded, and restores', async () => {
  const page = await rack.page('/settings?tab=backup')
  await page.getByText('none yet', { exact: true }).waitFor()
  await shot(page, 'backup')
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download a backup' }).click()])
  const dir = await mkdtemp(join(tmpdir(), 'slipway-restore-'))
  const file = join(dir, download.suggestedFilename())
  await download.saveAs(file)
  assert.ok((await readFile(file)).length > 1000)
  await page.getByText('Saved slipway-').waitFor()
  assert.deepEqual(await faults(page), [])
  await page.getByText(/by token|by user/).first().waitFor()
  assert.match(await rack.cli('restore', file, '--data-dir', join(dir, 'data')), /restored/)
  await rm(dir, { recursive: true, force: true })
  await page.context().close()
})
