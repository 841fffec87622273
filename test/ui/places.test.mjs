// Every screen there is, with believable content: no serious fault for those who cannot see or point, in light and in dark
// colours; nothing wider than its window, small or large; a key that leads there; times that say their UTC.
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

// shown goes to a part of a screen, as by a link, and waits until it has taken the place of what was there, and all of it is
// there. The program is loaded once. Another part of the same screen may say the same: of issues, none may have closed.
async function shown(page, path) {
  await page.evaluate(async (path) => {
    const text = () => document.body.textContent
    const rest = () => new Promise((r) => setTimeout(r, 50))
    const isLoading = () => document.querySelector('[aria-label="Loading"], .pf-v6-c-skeleton')
    const before = text()
    const mayBeSame = location.pathname === new URL(path, location.href).pathname ? performance.now() + 3_000 : Infinity
    history.pushState(null, '', path)
    dispatchEvent(new PopStateEvent('popstate'))
    for (let quiet = 0, end = performance.now() + 60_000; quiet < 3; ) {
      await rest()
      if (performance.now() > end) throw new Error(`${path} does not come to rest: ${isLoading()?.parentElement.outerHTML ?? 'it shows what was there before'}`)
      quiet = (text() !== before || performance.now() > mayBeSame) && document.querySelector('h1') && !isLoading() ? quiet + 1 : 0
    }
  }, path)
}

// Each part is gone to once, and looked at in light colours, in dark ones, and narrow.
test('no part of any screen has a serious fault, in light or dark colours, or is wider than a small screen', { timeout: 540_000 }, async () => {
  const wrong = []
  const page = await rack.page('/')
  const took = { loading: 0, light: 0, dark: 0, narrow: 0 }
  let since = performance.now()
  const lap = (what) => {
    took[what] += performance.now() - since
    since = performance.now()
  }
  for (const { path } of all) {
    await page.setViewportSize({ width: 1400, height: 900 })
    await page.evaluate(() => document.documentElement.classList.remove('pf-v6-theme-dark'))
    await shown(page, path)
    lap('loading')
    for (const f of await faults(page)) wrong.push(`${path}: ${f}`)
    lap('light')
    await page.evaluate(() => document.documentElement.classList.add('pf-v6-theme-dark'))
    for (const f of await faults(page, ['color-contrast'])) wrong.push(`${path} in dark colours: ${f}`)
    lap('dark')
    for (const width of [1400, 800, 400]) {
      await page.setViewportSize({ width, height: 800 })
      const wide = await page.evaluate(() => Math.max(...[document.documentElement, document.querySelector('main')].map((e) => e.scrollWidth - e.clientWidth)))
      if (wide > 0) wrong.push(`${path} is ${wide} pixels too wide for ${width}`)
    }
    lap('narrow')
    if (process.env.SLIPWAY_DEMO_TELLS) console.error(path, JSON.stringify(took, (_, v) => (typeof v === 'number' ? Math.round(v) : v)))
  }
  await page.context().close()
  assert.deepEqual(wrong, [])
})

test('a key leads to every screen of the navigation, and the help says which', async () => {
  const page = await rack.page('/setup')
  await page.keyboard.press('?')
  const help = page.getByRole('dialog', { name: 'Keys' })
  for (const p of places.filter((p) => p.name)) {
    assert.ok(p.key, `${p.name} has no key`)
    await help.getByRole('row', { name: `g ${p.key} go to ${p.name}`, exact: true }).waitFor()
  }
  await page.keyboard.press('Escape')
  await help.waitFor({ state: 'detached' })
  assert.equal(new Set(places.map((p) => p.key).filter(Boolean)).size, places.filter((p) => p.name).length, 'two screens have one key')
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
    for (const [at, title, text] of await page.locator('time').evaluateAll((all) => all.map((t) => [t.dateTime, t.title, t.textContent]))) {
      assert.match(title, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? UTC$/, `${path}: ${text}`)
      assert.equal(Date.parse(title.replace(' UTC', 'Z').replace(' ', 'T')), new Date(at).getTime(), path)
      const clock = /^\d\d:\d\d:\d\d$/.exec(text)
      if (clock) assert.equal(text, new Date(at).toLocaleTimeString('en-GB', { timeZone: 'Asia/Kolkata' }), path)
    }
  }
  await page.context().close()
})
