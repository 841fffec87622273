import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { faults, Rack } from './rack.mjs'

let rack
before(async () => {
  rack = await Rack.start()
})
after(() => rack?.end())

test('a wrong token is refused with a hint', async () => {
  const browser = await rack.browser()
  const page = await browser.newPage({ baseURL: 'http://127.0.0.1:8067' })
  await page.goto('/')
  await page.getByLabel('Token').fill('slipway_wrong')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByText('the token is not known here').waitFor()
  assert.match(await page.locator('body').innerText(), /slipway token create/)
  await page.close()
})

test('machines that are switched on appear by themselves, and one is accepted with a click', async () => {
  const page = await rack.page('/hosts')
  await page.getByText('No host has sent a packet yet').waitFor()
  await page.getByText('live', { exact: true }).waitFor()
  void rack.machines(12, '--expect', 'waiting')
  await page.getByText('12 of 12 hosts').waitFor()

  await page.getByLabel('Search hosts').fill('state=available')
  await page.getByText('0 of 12 hosts').waitFor()
  await page.getByLabel('Search hosts').fill('state=discovered')
  await page.getByText('12 of 12 hosts').waitFor()
  await page.getByRole('grid', { name: 'Hosts' }).getByRole('link').first().click()
  await page.getByRole('heading', { name: 'All events' }).waitFor()
  await page.getByText('dhcp.ack').first().waitFor()

  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('menuitem', { name: /^Accept/ }).click()
  const ask = page.getByRole('dialog')
  await ask.getByRole('button', { name: 'The same as a command' }).click()
  assert.match(await ask.getByRole('textbox', { name: 'Command line' }).inputValue(), /^slipway host accept host-/)
  await ask.getByRole('button', { name: 'Accept' }).click()
  await page.getByText('available').first().waitFor()
  await page.getByRole('tab', { name: 'Boot preview' }).click()
  await page.getByText('It would boot').waitFor()
  // It has no controller, and asking for that is no fault.
  assert.deepEqual(page.errors.filter((e) => !/the server responded with a status of 404/.test(e)), [])
  await page.context().close()
})

test('the overview counts hosts by state and leads to them, and its plots are a table as well', async () => {
  const page = await rack.page('/')
  await page.getByRole('link', { name: '1 host available' }).waitFor()
  await page.getByRole('region', { name: 'Open issues' }).getByText(/./).first().waitFor()
  await page.getByRole('region', { name: 'Running operations' }).getByText('No operation is running').first().waitFor()
  await page.getByRole('region', { name: 'Health of this server' }).getByText(/checks are good|boot loaders|images/).first().waitFor()
  await page.getByRole('button', { name: 'The same as a table' }).click()
  const row = page.getByRole('grid', { name: 'Throughput by minute' }).getByRole('row').nth(1)
  await row.waitFor()
  assert.match(await row.innerText(), /\/s/)
  await page.getByRole('link', { name: '11 hosts discovered' }).click()
  await page.getByText('11 of 12 hosts').waitFor()
  await page.context().close()
})

test('a server that is killed is noticed, and the page goes on by itself', async () => {
  const page = await rack.page('/hosts')
  await page.getByText('live', { exact: true }).waitFor()
  await rack.kill()
  await page.getByText('no event stream').waitFor()
  await rack.serve()
  await page.getByText('live', { exact: true }).waitFor()
  await page.context().close()
})

for (const theme of ['light', 'dark']) {
  test(`no screen has a serious fault in ${theme} colours`, async () => {
    const page = await rack.page('/')
    const host = JSON.parse(await rack.cli('host', 'list', '-o', 'json'))
    const name = (host.items ?? host)[0].name
    for (const path of ['/', '/hosts', `/hosts/${name}`, '/machines', '/operations', '/issues', '/nowhere']) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.getByLabel('Loading').first().waitFor({ state: 'detached' })
      const turn = page.getByRole('button', { name: 'Dark colours' })
      if (theme === 'dark' && path === '/') await turn.click() // and it stays so on the pages that follow
      assert.equal(await turn.isVisible(), theme === 'light')
      assert.deepEqual(await faults(page), [], path)
      if (process.env.SLIPWAY_SHOTS) await page.screenshot({ path: `${process.env.SLIPWAY_SHOTS}/${theme}${path.replaceAll(/\W+/g, '-')}.png` })
    }
    await page.context().close()
  })
}
