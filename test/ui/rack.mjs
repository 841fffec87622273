// A real server, simulated machines and a real browser, in a network namespace of their own. Stories import it; nothing
// in them is faked. Run: make test-ui
import { execFile, execFileSync, spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const require = createRequire(join(root, 'ui', 'package.json'))
export const { chromium } = require('playwright-core')
const axePath = require.resolve('axe-core/axe.min.js')
export const slipway = process.env.SLIPWAY_BIN ?? join(root, 'bin', 'slipway')

export class Rack {
  // start makes the namespaces and starts a server in one of them.
  static async start(name = `slipway-ui-${process.pid}`, ...flags) {
    const rack = new Rack()
    rack.name = name
    rack.flags = flags
    rack.data = await mkdtemp(join(tmpdir(), 'slipway-ui-'))
    process.once('exit', rack.drop) // of stories that are interrupted no hook runs
    await run(slipway, ['simulate', 'net-up', '--name', name])
    await rack.serve().catch(async (err) => {
      await rack.end()
      throw err
    })
    return rack
  }

  inside(...args) {
    return ['ip', ['netns', 'exec', `${this.name}-srv`, ...args]]
  }

  async serve() {
    const [cmd, args] = this.inside(slipway, 'serve', '--interface', 'vs', '--data-dir', this.data, '--mode', 'full', '--unknown', 'wait', '--egress-allow', '127.0.0.0/8', ...(this.flags ?? []))
    this.server = spawn(cmd, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    await new Promise((ready, failed) => {
      const take = (chunk) => {
        said += chunk
        if (said.includes('API on ')) ready()
      }
      this.server.stdout.on('data', take)
      this.server.stderr.on('data', take)
      this.server.on('exit', (code) => failed(new Error(`the server ended with ${code}:\n${said}`)))
    })
    if (/slipway_[0-9a-f]{64}/.test(said)) throw new Error('the server says its token')
    this.token ??= (await readFile(join(this.data, 'admin.token'), 'utf8')).trim()
  }

  // kill ends the server without a chance to tidy up.
  async kill() {
    this.server.removeAllListeners('exit')
    const gone = new Promise((r) => this.server.on('exit', r))
    this.server.kill('SIGKILL')
    await gone
  }

  // cli runs the command line against the server.
  async cli(...args) {
    const { stdout } = await run(slipway, args, { env: { ...process.env, SLIPWAY_SERVER: join(this.data, 'slipway.sock') } })
    return stdout
  }

  // file writes a text to a file that only we may read, and gives its path.
  async file(text) {
    const path = join(this.data, `text-${(this.files = (this.files ?? 0) + 1)}`)
    await writeFile(path, text, { mode: 0o600 })
    return path
  }

  // machines switches simulated machines on.
  machines(n, ...more) {
    const p = spawn(slipway, ['simulate', '--netns', `${this.name}-cli`, '--interface', 'vc', '--hosts', String(n), '--pace', '0', ...more], { stdio: 'ignore' })
    ;(this.racks ??= []).push(p)
    return new Promise((r) => p.on('exit', r))
  }

  // browser opens Chromium in the server's namespace.
  async browser() {
    this.chromium ??= await chromium.launch({
      executablePath: join(root, 'test', 'ui', 'chromium.sh'),
      env: { ...process.env, SLIPWAY_NETNS: this.name ? `${this.name}-srv` : '' },
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
    })
    return this.chromium
  }

  // page opens a page that is logged in.
  async page(path = '/', { token = this.token, login = { token }, ...options } = {}) {
    const browser = await this.browser()
    const context = await browser.newContext({ baseURL: this.url ?? 'http://127.0.0.1:8067', viewport: { width: 1400, height: 900 }, ...options })
    const page = await context.newPage()
    page.setDefaultTimeout(60_000)
    page.errors = []
    page.on('pageerror', (e) => page.errors.push(String(e)))
    page.on('console', (m) => m.type() === 'error' && page.errors.push(m.text()))
    await page.goto('/')
    await page.getByText('Log in to Slipway').first().waitFor() // the page has asked who is there by now
    const said = await page.evaluate(async (login) => {
      const answer = await fetch('/api/v1/logins', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(login),
      })
      return answer.ok ? '' : `${answer.status} ${await answer.text()}`
    }, login)
    if (said) throw new Error(`the login was refused: ${said}`)
    page.errors.length = 0 // nobody was there
    await page.goto(path)
    await page.getByRole('heading', { level: 1 }).first().waitFor()
    return page
  }

  // drop takes away what is left, without waiting for anything.
  drop = () => {
    for (const p of [...(this.racks ?? []), this.server]) p?.kill('SIGKILL')
    execFileSync(slipway, ['simulate', 'net-down', '--name', this.name])
    rmSync(this.data, { recursive: true, force: true })
  }

  async end() {
    await this.chromium?.close()
    for (const p of this.racks ?? []) p.kill('SIGKILL')
    if (this.server?.exitCode === null) await this.kill()
    await run(slipway, ['simulate', 'net-down', '--name', this.name])
    await rm(this.data, { recursive: true, force: true })
    process.removeListener('exit', this.drop)
  }
}

// faults runs axe on a page and returns what is serious; only: the rules that are looked at, all without.
export async function faults(page, only) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(readFileSync(axePath, 'utf8')) // a script element is against the page's own policy
  const { violations } = await page.evaluate(async (only) => {
    // Colours that are still fading are nobody's colours.
    const fading = document.getAnimations().filter((a) => a.playState === 'running' && Number.isFinite(a.effect?.getComputedTiming().endTime))
    await Promise.allSettled(fading.map((a) => a.finished))
    return window.axe.run({ resultTypes: ['violations'], ...(only && { runOnly: only }) })
  }, only)
  return violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(' ')}`)
}

// endLogin takes the login of a page away, and then does what is to notice that first. A page asks some things every few
// seconds without anybody: these requests fail meanwhile, because one of them could notice it before.
export async function endLogin(page, notice) {
  const asked = /\/api\/v1\/(version|hosts\/[^/]+\/diagnosis)$/
  await page.route(asked, (route) => route.abort())
  await page.context().clearCookies()
  await notice()
  await page.unroute(asked)
}

// outletOptions are those of a controller that simulated machines have, for the driver webhook.
export function outletOptions() {
  return Object.entries({
    'on.path': '/{{.System}}/on', 'off.path': '/{{.System}}/off', 'cycle.path': '/{{.System}}/cycle',
    'status.path': '/{{.System}}/power', 'status.pointer': '/power', timeout: '5s', pause: '100ms',
  }).flatMap(([k, v]) => ['--option', `${k}=${v}`])
}
