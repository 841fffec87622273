import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { access, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { endLogin, faults, Rack, root } from './rack.mjs'

// The provider is a real one, of zitadel/oidc, beside the server in its namespace.
const part = join(root, 'build', 'parts', 'oidc-provider')
const isThere = await access(part).then(() => true, () => false)
const skip = isThere ? false : 'needs an OpenID provider: tools/parts.sh build oidc-provider'
const issuer = 'http://127.0.0.1:9998'
const people = {
  'id-anna': { ID: 'id-anna', Username: 'anna.berg@example.org', Password: 'pw', FirstName: 'Anna', LastName: 'Berg', groups: ['admins'] },
  'id-otto': { ID: 'id-otto', Username: 'otto', Password: 'pw', FirstName: 'Otto', LastName: 'Ohm', groups: ['web'] },
  'id-eva': { ID: 'id-eva', Username: 'eva', Password: 'pw', FirstName: 'Eva', LastName: 'Ex', groups: ['staff'] },
}

let rack, provider
before(async () => {
  if (skip) return
  rack = new Rack()
  const config = join('/tmp', `slipway-sso-${process.pid}.yaml`)
  await writeFile(`${config}.secret`, 'not a secret\n', { mode: 0o600 })
  await writeFile(config, `externalURL: http://127.0.0.1:8067
oidc:
  issuer: ${issuer}
  clientID: slipway
  clientSecretFile: ${config}.secret
  title: Example Login
  groups:
    admins: [{role: admin}]
    web: [{role: operator}]
`)
  rack = await Rack.start(`slipway-sso-${process.pid}`, '--config', config)
})
after(async () => {
  provider?.kill('SIGKILL')
  await rack?.end()
})

// startProvider waits until it says where it is.
const startProvider = async () => {
  const [cmd, args] = rack.inside(part, '--listen', '127.0.0.1:9998', '--redirect', 'http://127.0.0.1:8067/api/v1/logins/oidc/callback', '--users', await rack.file(JSON.stringify(people)))
  provider = spawn(cmd, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise((ready, failed) => {
    provider.stdout.on('data', (chunk) => String(chunk).includes('issuer') && ready())
    provider.on('exit', (code) => failed(new Error(`the provider ended with ${code}`)))
  })
  provider.removeAllListeners('exit')
}

const shots = async (page, name) => {
  if (process.env.SLIPWAY_SHOTS) await page.screenshot({ path: `${process.env.SLIPWAY_SHOTS}/${name}.png`, fullPage: true })
}

const anonymous = async (options = {}) => {
  const browser = await rack.browser()
  const context = await browser.newContext({ baseURL: 'http://127.0.0.1:8067', viewport: { width: 1400, height: 900 }, ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  return page
}

// isAsked waits until the server asks the provider again: one that was away gets a few seconds.
const isAsked = async (page) => {
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    const way = await page.evaluate(async () => (await fetch('/api/v1/logins/oidc', { redirect: 'manual', headers: { Accept: 'application/json' } })).type)
    if (way === 'opaqueredirect') return
    await new Promise((r) => setTimeout(r, 300))
  }
  throw new Error('the server does not ask the provider')
}

// through logs in with the provider's own page.
const through = async (page, user) => {
  await page.getByRole('link', { name: 'Log in with Example Login' }).click()
  await asUser(page, user)
}

// asUser fills in the provider's page.
const asUser = async (page, user) => {
  await page.getByLabel('Username').fill(user)
  await page.getByLabel('Password').fill('pw')
  await page.getByRole('button', { name: 'Login' }).click()
}

test('while the provider is away, the login page says so and a token still lets one in', { skip }, async () => {
  const page = await anonymous()
  await page.goto('/hosts?view=all')
  await page.getByRole('link', { name: 'Log in with Example Login' }).click()
  await page.getByText('Example Login cannot be used now').waitFor()
  assert.match(page.url(), /\/hosts\?view=all$/)
  assert.deepEqual(await faults(page), [])
  await shots(page, 'sso-away')
  await page.getByLabel('Token').fill(rack.token)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Hosts' }).waitFor()
})

test('one logs in at the provider and is back on the page that was asked for', { skip }, async () => {
  await startProvider()
  const page = await anonymous()
  await page.goto('/networks?tab=leases')
  await isAsked(page)
  await through(page, 'anna.berg@example.org')
  await page.getByRole('heading', { level: 1, name: 'Networks' }).waitFor()
  assert.match(page.url(), /127\.0\.0\.1:8067\/networks\?tab=leases$/)
  const me = await page.evaluate(async () => (await fetch('/api/v1/me')).json())
  assert.equal(me.user, 'anna-berg')
  assert.deepEqual(me.grants, [{ role: 'admin' }])
  assert.match(await rack.cli('user', 'list'), /anna-berg/)
})

test('a login that ends while one types: the text outlives the way to the provider and back', { skip }, async () => {
  await rack.cli('host', 'create', 'kept', '--mac', '52:54:00:5c:00:01')
  const page = await anonymous()
  await page.goto('/hosts/kept?tab=yaml')
  await through(page, 'anna.berg@example.org')
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  const text = page.getByRole('textbox', { name: 'Host kept' })
  await text.fill(JSON.stringify({ ...JSON.parse(await text.inputValue()), assetTag: 'typed-before' }, null, 2))
  page.on('dialog', (d) => void d.accept()) // the browser asks whether to leave
  await page.context().clearCookies()
  await page.reload()
  await through(page, 'anna.berg@example.org')
  await page.getByText('These changes are not saved').waitFor()
  assert.match(await text.inputValue(), /typed-before/)
  assert.deepEqual(await faults(page), [])
  await rack.cli('host', 'maintain', 'kept') // which is not in the text, and takes nothing away
  await page.getByText('in maintenance', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('assetTag: typed-before').waitFor()
  assert.doesNotMatch(await page.evaluate(() => JSON.stringify(Object.entries(sessionStorage))), /typed-before/)
  await page.context().close()
})

test('a dialog that is open when the login ends waits while one logs in at the provider in another tab', { skip }, async () => {
  const page = await anonymous()
  await page.goto('/hosts/kept')
  await through(page, 'anna.berg@example.org')
  const second = await page.context().newPage()
  await second.goto('/networks')
  await second.getByRole('heading', { level: 1, name: 'Networks' }).waitFor()
  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('menuitem', { name: 'Edit' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('Asset tag').fill('in-a-dialog')
  await endLogin(page, () => form.getByRole('button', { name: 'Save' }).click())
  await page.getByText('Your input stays here meanwhile').waitFor()
  assert.deepEqual(await faults(page), [])
  await shots(page, 'sso-ended')
  const [tab] = await Promise.all([page.context().waitForEvent('page'), page.getByRole('link', { name: 'Log in with Example Login in a new tab' }).click()])
  await asUser(tab, 'anna.berg@example.org')
  await tab.getByRole('heading', { name: 'You are logged in' }).waitFor()
  assert.deepEqual(await faults(tab), [])
  await shots(tab, 'sso-back')
  await form.waitFor()
  assert.equal(await form.getByLabel('Asset tag').inputValue(), 'in-a-dialog')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  await page.getByRole('tab', { name: 'Hardware' }).click()
  await page.getByText('in-a-dialog').waitFor()
  // Who leaves in one tab has left in all.
  await page.getByRole('button', { name: /^User menu of/ }).click()
  await page.getByRole('menuitem', { name: 'Log out' }).click()
  await second.getByText('Your login has ended').waitFor()
  assert.equal(await second.getByRole('heading', { level: 1, name: 'Networks' }).isVisible(), false)
  await page.context().close()
})

test('who is in no group with a role reads why', { skip }, async () => {
  const page = await anonymous()
  await page.goto('/')
  await through(page, 'eva')
  await page.getByText('eva is in no group that has a role here').waitFor()
  await shots(page, 'sso-refused')
  assert.deepEqual(await faults(page), [])
  assert.doesNotMatch(await rack.cli('user', 'list'), /eva/)
})

test('who is disabled stays out', { skip }, async () => {
  const first = await anonymous()
  await first.goto('/')
  await through(first, 'otto')
  await first.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await rack.cli('user', 'disable', 'otto')
  const page = await anonymous()
  await page.goto('/')
  await through(page, 'otto')
  await page.getByText('user otto is disabled').waitFor()
})
