import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { faults, Rack } from './rack.mjs'

let rack
let page
before(async () => {
  rack = await Rack.start(`slipway-shell-${process.pid}`)
  void rack.machines(3, '--expect', 'waiting')
  page = await rack.page('/setup?step=machines')
  await page.getByRole('link', { name: /^host-/ }).nth(2).waitFor()
})
after(() => rack?.end())

const heading = (name) => page.getByRole('heading', { level: 1, name }).waitFor()

test('keys go to screens, and the heading there has the focus', async () => {
  await page.goto('/')
  await heading('Overview')
  await page.locator('body').press('g')
  await page.locator('body').press('o')
  for (const [key, name] of [['m', 'Machines'], ['p', 'Pools'], ['u', 'Issues'], ['x', 'Operations']]) {
    await page.keyboard.press('g')
    await page.keyboard.press(key)
    await heading(name)
    await page.waitForFunction((n) => document.activeElement?.tagName === 'H1' && document.activeElement.textContent === n, name)
    await page.waitForFunction((n) => document.title === `${n} · Slipway`, name)
  }
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'detached' })
})

test('a host is found by a piece of its MAC, with the keyboard alone', async () => {
  const hosts = JSON.parse(await rack.cli('host', 'list', '-o', 'json'))
  const host = (hosts.items ?? hosts)[0]
  await page.goto('/issues')
  await heading('Issues')
  await page.keyboard.press('/')
  await page.keyboard.type(host.nics[0].mac.slice(3))
  await page.getByRole('option', { name: host.name }).waitFor()
  await page.keyboard.press('Enter')
  await heading(host.name)
})

test('typing g in a field is text', async () => {
  await page.goto('/machines')
  await heading('Machines')
  await page.getByLabel('Search machines').click()
  await page.keyboard.type('gh')
  assert.equal(await page.getByLabel('Search machines').inputValue(), 'gh')
  await heading('Machines')
})

test('the tray of operations stays as it was left', async () => {
  await page.goto('/')
  await page.getByRole('button', { name: 'Show running operations' }).click()
  await page.getByRole('group', { name: 'Operations in progress' }).waitFor()
  await page.reload()
  await page.getByRole('group', { name: 'Operations in progress' }).waitFor()
  await page.getByRole('button', { name: 'Hide running operations' }).click()
  await page.getByRole('group', { name: 'Operations in progress' }).waitFor({ state: 'detached' })
})

test('an address that is none says so', async () => {
  await page.goto('/nowhere')
  await heading('Not found')
})

test('all of it fits a narrow screen', async () => {
  const small = await rack.page('/', { viewport: { width: 400, height: 800 } })
  for (const path of ['/', '/machines', '/pools', '/clusters', '/operations', '/issues', '/setup', '/settings']) {
    await shown(small, path)
    const wide = await small.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    assert.ok(wide <= 0, `${path} is ${wide} pixels too wide`)
    await picture(small, `narrow${path}`)
  }
  assert.deepEqual(await faults(small), [])
  await small.context().close()
})

const screens = ['/', '/machines', '/machines?do=create', '/pools', '/clusters', '/clusters?tab=targets', '/operations', '/issues?all=yes', '/setup', '/setup?step=network', '/setup?step=account', '/setup?step=image', '/setup?step=accept', '/setup?step=machines', '/settings?tab=about']
test('the screens of this file have no serious fault, in light colours and in dark ones', async () => {
  const wide = await rack.page('/')
  for (const path of screens) {
    await shown(wide, path)
    assert.deepEqual(await faults(wide), [], path)
    await picture(wide, `light${path}`)
    await wide.evaluate(async () => {
      document.documentElement.classList.add('pf-v6-theme-dark')
      await new Promise(requestAnimationFrame) // colours change smoothly: only those at the end are meant
      await Promise.allSettled(document.getAnimations().filter((a) => a instanceof CSSTransition).map((a) => a.finished))
    })
    const { violations } = await wide.evaluate(() => window.axe.run({ runOnly: ['color-contrast'] }))
    assert.deepEqual(violations.flatMap((v) => v.nodes.map((n) => n.html)), [], `${path} in the dark`)
    await picture(wide, `dark${path}`)
  }
  assert.deepEqual(wide.errors, [])
  await wide.context().close()
})

test('dark colours stay', async () => {
  await page.goto('/issues')
  await page.getByRole('button', { name: 'Dark colours' }).click()
  await page.reload()
  await page.getByRole('button', { name: 'Light colours' }).click()
  await page.getByRole('button', { name: 'Dark colours' }).waitFor()
})

// shown goes to a screen and waits until all of it is there.
async function shown(page, path) {
  await page.goto(path)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.waitForFunction(() => !document.querySelector('[aria-label="Loading"]'))
}

async function picture(page, name) {
  if (process.env.SLIPWAY_SHOTS) await page.screenshot({ path: `${process.env.SLIPWAY_SHOTS}/${name.replaceAll(/\W+/g, '-')}.png`, fullPage: true })
}
