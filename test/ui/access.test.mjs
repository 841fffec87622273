import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { faults, Rack } from './rack.mjs'

let rack
before(async () => {
  rack = await Rack.start(`slipway-acc-${process.pid}`)
  await rack.machines(3, '--expect', 'waiting')
})
after(() => rack?.end())

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

const logIn = async (page, user, password) => {
  await page.getByLabel('User').fill(user)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Log in' }).click()
}

test('the first admin token lets one in, to make the first user', async () => {
  const page = await anonymous()
  await page.goto('/settings?tab=users')
  await page.getByText('There is no user yet').waitFor()
  await shots(page, 'login-token')
  await page.getByLabel('Token').fill(rack.token)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('button', { name: 'Add a user' }).click()
  const form = page.getByRole('dialog')
  await form.getByRole('textbox', { name: 'Name', exact: true }).fill('anna')
  await form.getByLabel('Password').fill('short')
  assert.ok(await form.getByRole('button', { name: 'Add', exact: true }).isDisabled())
  await form.getByLabel('Password').fill('correct horse anna')
  await form.getByLabel('Role 1', { exact: true }).selectOption('admin')
  await shots(page, 'user-form')
  assert.deepEqual(await faults(page), [])
  await form.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('grid', { name: 'Users' }).getByText('anna').waitFor()
  await shots(page, 'users')
  assert.deepEqual(await faults(page), [])
  await page.context().close()
})

test('a user logs in, and is back on the same page after the login has ended', async () => {
  const page = await anonymous()
  await page.goto('/settings?tab=account')
  await logIn(page, 'anna', 'wrong password')
  await page.getByText('there is no such user, or the password is another').waitFor()
  await shots(page, 'login-wrong')
  await logIn(page, 'anna', 'correct horse anna')
  await page.getByText('You are user anna').waitFor()
  await page.getByRole('grid', { name: 'Logins' }).getByText('(this one)').waitFor()
  await shots(page, 'account')
  assert.deepEqual(await faults(page), [])
  // Somebody else ends the login: the next request finds out.
  await rack.cli('user', 'password', 'anna', '--password-file', await rack.file('correct horse anna'))
  await page.reload()
  await page.getByLabel('Password').waitFor()
  await logIn(page, 'anna', 'correct horse anna')
  await page.getByText('You are user anna').waitFor()
  assert.match(page.url(), /settings\?tab=account/)
  await page.context().close()
})

test('the password is changed with the old one only', async () => {
  const page = await anonymous()
  await page.goto('/settings?tab=account')
  await logIn(page, 'anna', 'correct horse anna')
  const change = async (old, now) => {
    await page.getByLabel('Old password').fill(old)
    await page.getByLabel(/^New password(?! again)/).fill(now)
    await page.getByLabel('New password again').fill(now)
    await page.getByRole('button', { name: 'Change password' }).click()
  }
  await change('not the old one', 'another long one')
  await page.getByText('the old password is another').waitFor()
  await change('correct horse anna', 'another long one')
  await page.getByText('The password is changed').waitFor()
  await change('another long one', 'correct horse anna')
  await page.getByText('The password is changed').waitFor()
  await page.context().close()
})

test('a security key is registered, and a login asks for it', async () => {
  // Browsers offer keys only with TLS, or under the name of the machine itself.
  const page = await anonymous({ baseURL: 'http://localhost:8067' })
  const devices = await page.context().newCDPSession(page)
  await devices.send('WebAuthn.enable')
  await devices.send('WebAuthn.addVirtualAuthenticator', {
    options: { protocol: 'ctap2', transport: 'usb', hasResidentKey: false, hasUserVerification: false, isUserVerified: false },
  })
  await rack.cli('user', 'create', 'dora', '--role', 'viewer', '--password-file', await rack.file('correct horse dora'))
  await page.goto('/settings?tab=account')
  await logIn(page, 'dora', 'correct horse dora')
  await page.getByRole('button', { name: 'Register a security key' }).click()
  await page.getByLabel('Name of the key').fill('work')
  await page.getByLabel('Your password').fill('correct horse dora')
  await page.getByRole('button', { name: 'Register', exact: true }).click()
  await page.getByText('Keep these recovery codes').waitFor()
  const codes = (await page.locator('pre').innerText()).split('\n')
  assert.equal(codes.length, 10)
  await page.getByRole('grid', { name: 'Security keys' }).getByText('localhost').waitFor()
  await shots(page, 'security-key')
  assert.deepEqual(await faults(page), [])
  await page.evaluate(() => fetch('/api/v1/logins/current', { method: 'DELETE' }))
  await page.reload()
  await logIn(page, 'dora', 'correct horse dora')
  await page.getByText('user dora has a second factor').waitFor()
  await shots(page, 'login-security-key')
  assert.deepEqual(await faults(page), [])
  await page.getByRole('button', { name: 'Use a security key' }).click()
  await page.getByText('You are user dora').waitFor()
  assert.match(await rack.cli('user', 'second-factor', 'show', 'dora'), /security key work +localhost.*\n10 recovery codes/)
  // The key is lost: a recovery code takes it away.
  await page.getByLabel('Remove', { exact: true }).selectOption('work')
  await page.getByLabel('Code of the app, or a recovery code').fill(codes[0])
  await page.getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByRole('grid', { name: 'Security keys' }).waitFor({ state: 'detached' })
  await page.context().close()
})

test('a viewer sees and does not act; a user of a pool sees the pool', async () => {
  const hosts = JSON.parse(await rack.cli('host', 'list', '-o', 'json'))
  const [mine, other] = (hosts.items ?? hosts).map((h) => h.name)
  await rack.cli('host', 'accept', mine)
  await rack.cli('pool', 'create', 'mine', '--selector', `name=${mine}`)
  const password = await rack.file('correct horse ben')
  await rack.cli('user', 'create', 'ben', '--role', 'viewer', '--pool', 'mine', '--password-file', password)
  const page = await anonymous()
  await page.goto('/hosts')
  await logIn(page, 'ben', 'correct horse ben')
  await page.getByText(mine).first().waitFor()
  assert.equal(await page.getByText(other).count(), 0)
  await shots(page, 'hosts-of-pool')
  await page.goto('/settings?tab=users')
  await page.getByText('Users are for admins').waitFor()
  const refused = await page.evaluate(async (name) => {
    const a = await fetch(`/api/v1/hosts/${name}/maintain`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"on":true}',
    })
    return [a.status, (await a.json()).detail]
  }, mine)
  assert.equal(refused[0], 403)
  assert.match(refused[1], /needs role operator/)
  await page.context().close()
})

test('an operator of one pool is told at the hosts of another why not', async () => {
  const hosts = JSON.parse(await rack.cli('host', 'list', '-o', 'json'))
  const [mine, other] = (hosts.items ?? hosts).map((h) => h.name) // the pool has the first, see above
  await rack.cli('user', 'create', 'cleo', '--role', 'viewer', '--password-file', await rack.file('correct horse cleo'))
  await rack.cli('user', 'grant', 'cleo', 'operator', '--pool', 'mine')
  const page = await rack.page(`/hosts/${other}`, { login: { user: 'cleo', password: 'correct horse cleo' } })
  const maintain = async (why) => {
    await page.getByRole('button', { name: 'Actions' }).click()
    const item = page.getByRole('menuitem', { name: 'Begin maintenance' })
    await item.filter({ hasText: why }).waitFor()
    const isDisabled = (await item.getAttribute('aria-disabled')) === 'true'
    await page.keyboard.press('Escape')
    return isDisabled
  }
  assert.equal(await maintain('needs role operator in the pool of this host; you are viewer there'), true)
  await page.goto(`/hosts/${mine}`)
  assert.equal(await maintain(/^Begin maintenance$/), false)
  await page.context().close()
})

test('what is for others is disabled and says for whom, as the server would', async () => {
  const host = JSON.parse(await rack.cli('host', 'list', '-o', 'json'))[0].name
  for (const [name, ...where] of [['olga'], ['otto', '--pool', 'mine']])
    await rack.cli('user', 'create', name, '--role', 'operator', ...where, '--password-file', await rack.file(`correct horse ${name}`))
  for (const [user, path, button, why] of [
    ['olga', '/networks', 'Add a subnet', 'needs role admin everywhere; you are operator'],
    ['olga', '/networks/vs?tab=reservations', 'Reserve an address', 'needs role admin; you are operator'],
    ['olga', '/images', 'Prune', 'needs role admin everywhere; you are operator'],
    ['olga', '/images', 'Verify', ''],
    ['olga', '/racks', 'Describe a rack', ''],
    ['olga', `/hosts/${host}?tab=bmc`, 'Name its controller', 'needs role admin; you are operator'],
    ['otto', '/racks', 'Describe a rack', 'needs role operator everywhere; you are nobody there'],
    ['otto', '/setup?step=image', 'Import an image', 'needs role operator everywhere; you are nobody there'],
  ]) {
    const page = await rack.page(path, { login: { user, password: `correct horse ${user}` } })
    const b = page.getByRole('button', { name: button, exact: true })
    await b.waitFor()
    assert.equal(await b.getAttribute('aria-disabled'), why ? 'true' : null, `${user}: ${button}`)
    if (why) {
      await b.hover()
      await page.getByTitle(why).or(page.getByRole('tooltip').getByText(why)).first().waitFor()
    }
    await page.context().close()
  }
  const page = await rack.page(`/hosts/${host}`, { login: { user: 'olga', password: 'correct horse olga' } })
  await page.getByRole('button', { name: 'Actions' }).click()
  assert.equal(await page.getByRole('menuitem', { name: /^Take its hardware as golden/ }).getAttribute('aria-disabled'), 'true')
  assert.notEqual(await page.getByRole('menuitem', { name: /^Begin maintenance/ }).getAttribute('aria-disabled'), 'true')
  await page.context().close()
})

test('a user whom somebody else changed while the form was open stays as that one said', async () => {
  const page = await rack.page('/settings?tab=users', { login: { user: 'anna', password: 'correct horse anna' } })
  await page.getByRole('button', { name: 'Change olga' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('Full name').fill('Olga Orlowa')
  await rack.cli('user', 'disable', 'olga')
  await page.getByRole('row', { includeHidden: true }).filter({ hasText: 'olga' }).getByText('disabled').waitFor()
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText(/changed meanwhile/).first().waitFor()
  assert.equal(JSON.parse(await rack.cli('user', 'list', '-o', 'json')).find((u) => u.name === 'olga').isDisabled, true)
  await form.getByRole('button', { name: 'Cancel' }).click()
  // A name that is none is said at its field.
  await page.getByRole('button', { name: 'Add a user' }).click()
  await form.getByRole('textbox', { name: 'Name', exact: true }).fill('Not A Name')
  await form.getByLabel('Password').fill('correct horse none')
  await form.getByRole('button', { name: 'Add', exact: true }).click()
  await form.locator('[aria-invalid="true"]').first().waitFor()
  assert.equal(await form.getByRole('textbox', { name: 'Name', exact: true }).getAttribute('aria-invalid'), 'true')
  await page.context().close()
})

test('a token is made and shown once', async () => {
  const page = await anonymous()
  await page.goto('/settings?tab=tokens')
  await logIn(page, 'anna', 'correct horse anna')
  await page.getByRole('button', { name: 'Make a token' }).click()
  const form = page.getByRole('dialog')
  await form.getByRole('textbox', { name: 'Name', exact: true }).fill('ci')
  await shots(page, 'token-form')
  await form.getByRole('button', { name: 'Make', exact: true }).click()
  const secret = await form.getByLabel('Secret of the token').inputValue()
  assert.match(secret, /^slipway_[0-9a-f]{64}$/)
  assert.deepEqual(await faults(page), [])
  await form.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('grid', { name: 'Tokens' }).getByText('ci', { exact: true }).waitFor()
  await shots(page, 'tokens')
  await page.getByRole('button', { name: 'Delete ci' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('grid', { name: 'Tokens' }).getByText('ci', { exact: true }).waitFor({ state: 'detached' })
  await page.context().close()
})

for (const colorScheme of ['light', 'dark']) {
  test(`the screens fit a narrow window in ${colorScheme} colours`, async () => {
    const page = await anonymous({ viewport: { width: 400, height: 800 }, colorScheme })
    await page.goto('/settings?tab=account')
    await page.getByLabel('User').waitFor()
    assert.deepEqual(await faults(page), [])
    await shots(page, `narrow-login-${colorScheme}`)
    await logIn(page, 'anna', 'correct horse anna')
    await page.getByText('You are user anna').waitFor()
    for (const [tab, table] of [['account', 'Logins'], ['users', 'Users'], ['tokens', 'Tokens']]) {
      await page.goto(`/settings?tab=${tab}`)
      await page.getByLabel(table, { exact: true }).first().waitFor()
      assert.deepEqual(await faults(page), [], tab)
      await shots(page, `narrow-${tab}-${colorScheme}`)
    }
    await page.context().close()
  })
}
