// Every screen there is, with believable content: no serious fault for those who cannot see or point, in light and in dark
// colours; nothing wider than a small screen; a key that leads there; times that say their UTC.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { demo, known } from './demo.mjs'
import { addresses, places } from './places.mjs'
import { faults } from './rack.mjs'

let rack
let all
before(async () => {
  rack = await demo(`slipway-place-${process.pid}`, { small: true })
  all = addresses(await known(rack))
}, { timeout: 300_000 })
after(() => rack?.end())

// shown goes to a screen and waits until all of it is there.
async function shown(page, path) {
  await page.goto(path)
  await page.getByRole('heading', { level: 1 }).first().waitFor()
  await page.waitForFunction(() => !document.querySelector('[aria-label="Loading"]'))
}

// Each screen is gone to once: loading it costs more than looking at it. Half of them in each of two pages.
test('no part of any screen has a serious fault, in light or dark colours, or is wider than a small screen', { timeout: 900_000 }, async () => {
  const wrong = []
  const look = async (some) => {
    const page = await rack.page('/')
    for (const { path } of some) {
      await page.setViewportSize({ width: 1400, height: 900 })
      await shown(page, path)
      for (const f of await faults(page)) wrong.push(`${path}: ${f}`)
      await page.evaluate(() => document.documentElement.classList.add('pf-v6-theme-dark'))
      for (const f of await faults(page, ['color-contrast'])) wrong.push(`${path} in dark colours: ${f}`)
      await page.setViewportSize({ width: 400, height: 800 })
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      if (wide > 0) wrong.push(`${path} is ${wide} pixels too wide`)
    }
    await page.context().close()
  }
  await Promise.all([0, 1].map((n) => look(all.filter((_, i) => i % 2 === n))))
  assert.deepEqual(wrong, [])
})

test('a key leads to every screen of the navigation, and the help says which', async () => {
  const page = await rack.page('/')
  await page.keyboard.press('?')
  const help = page.getByRole('dialog', { name: 'Keys' })
  for (const p of places.filter((p) => p.name)) {
    assert.ok(p.key, `${p.name} has no key`)
    await help.getByRole('row', { name: `g ${p.key} go to ${p.name}`, exact: true }).waitFor()
  }
  await page.keyboard.press('Escape')
  await help.waitFor({ state: 'detached' })
  assert.equal(new Set(places.map((p) => p.key).filter(Boolean)).size, places.filter((p) => p.name).length, 'two screens have one key')
  await page.goto('/setup')
  for (const p of places.filter((p) => p.name)) {
    await page.keyboard.press('g')
    await page.keyboard.press(p.key)
    await page.getByRole('heading', { level: 1, name: p.name, exact: true }).waitFor()
  }
  await page.context().close()
})

test('times are those of the place where one is, and say their UTC', async () => {
  const page = await rack.page('/', { timezoneId: 'Asia/Kolkata', locale: 'en-GB' })
  for (const path of ['/hosts/web-02', '/operations', '/audit', '/issues?all=yes', '/networks/vs', '/machines/web-02']) {
    await shown(page, path)
    await page.locator('time').first().waitFor()
    for (const t of await page.locator('time').all()) {
      const [at, title, text] = await t.evaluate((e) => [e.dateTime, e.title, e.textContent])
      assert.match(title, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? UTC$/, `${path}: ${text}`)
      assert.equal(Date.parse(title.replace(' UTC', 'Z').replace(' ', 'T')), new Date(at).getTime(), path)
      const clock = /^\d\d:\d\d:\d\d$/.exec(text)
      if (clock) assert.equal(text, new Date(at).toLocaleTimeString('en-GB', { timeZone: 'Asia/Kolkata' }), path)
    }
  }
  await page.context().close()
})
