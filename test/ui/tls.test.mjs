import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { faults, Rack } from './rack.mjs'

const run = promisify(execFile)
const at = 'https://127.0.0.1:8067'

let rack
before(async () => {
  rack = await Rack.start(`slipway-tls-${process.pid}`, '--admin-listen', '0.0.0.0:8067')
})
after(() => rack?.end())

const shots = async (page, name) => {
  if (process.env.SLIPWAY_SHOTS) await page.screenshot({ path: `${process.env.SLIPWAY_SHOTS}/${name}.png`, fullPage: true })
}

// pair makes a certificate and its key.
const pair = async (name, days) => {
  const [cert, key] = [join(rack.data, `${name}.crt`), join(rack.data, `${name}.pem`)]
  await run('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name},IP:127.0.0.1`, '-days', `${days}`, '-out', cert, '-keyout', key])
  return { cert, key }
}

const settings = async (options = {}) => {
  const browser = await rack.browser()
  const context = await browser.newContext({ baseURL: at, ignoreHTTPSErrors: true, viewport: { width: 1400, height: 900 }, ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  await page.goto('/settings?tab=tls')
  await page.getByLabel('Token').fill(rack.token)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor()
  return page
}

test('beyond loopback, the page comes with TLS by the site’s own authority, which can be downloaded', async () => {
  const page = await settings()
  await page.getByText("signed by this site's own authority").waitFor()
  const link = page.getByRole('link', { name: "Download the authority's certificate" })
  const [download] = await Promise.all([page.waitForEvent('download'), link.click()])
  const file = join(rack.data, 'downloaded.crt')
  await download.saveAs(file)
  const { stdout } = await run('openssl', ['x509', '-in', file, '-noout', '-fingerprint', '-sha256'])
  const sum = stdout.split('=')[1].trim().replaceAll(':', '').toLowerCase()
  assert.equal(await page.getByRole('textbox', { name: 'SHA-256' }).inputValue(), sum)
  assert.deepEqual(await faults(page), [])
  await shots(page, 'tls-site')
})

test('a certificate is uploaded, and taken away again', async () => {
  const [good, other] = [await pair('good.example', 10), await pair('other.example', 100)]
  const page = await settings()
  await page.getByRole('button', { name: 'Upload a certificate' }).click()
  const form = page.getByRole('dialog')
  const choose = async (n, file) => {
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), form.getByRole('button', { name: 'Choose' }).nth(n).click()])
    await chooser.setFiles(file)
  }
  await choose(0, good.key)
  await form.getByText('it belongs in the other field').waitFor()
  assert.equal(await form.getByRole('button', { name: 'Upload', exact: true }).isDisabled(), true)
  await choose(0, good.cert)
  await choose(1, other.key)
  await form.getByRole('button', { name: 'Upload', exact: true }).click()
  await form.getByText('private key does not match public key').waitFor()
  await shots(page, 'tls-wrong')
  assert.deepEqual(await faults(page), [])
  await choose(1, good.key)
  await form.getByRole('button', { name: 'Upload', exact: true }).click()
  await page.getByText('uploaded here').waitFor()
  await page.getByText('good.example, 127.0.0.1').waitFor()
  await page.getByText(/The certificate ends in (9|10) days/).waitFor()
  await shots(page, 'tls-uploaded')
  assert.match(await rack.cli('tls', 'show'), /uploaded/)
  await page.getByRole('button', { name: 'Remove the uploaded certificate' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByText("signed by this site's own authority").waitFor()
})
