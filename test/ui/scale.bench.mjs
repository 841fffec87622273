// Ten thousand hosts in a real browser against a real server: how long a person waits, what a hundred changes a second
// cost, and whether memory grows. Prints one line of JSON. Run: SLIPWAY_BIN=bin/slipway node test/ui/scale.bench.mjs
//
// SLIPWAY_SCALE_HOSTS (10000), SLIPWAY_SCALE_RATE (100 changes a second) and SLIPWAY_SCALE_FOR (300 s of them) say
// how much.
import { readFile, writeFile } from 'node:fs/promises'
import { Agent, createServer, request } from 'node:http'
import { join } from 'node:path'
import { Rack } from './rack.mjs'

const hostN = Number(process.env.SLIPWAY_SCALE_HOSTS ?? 10_000)
const rate = Number(process.env.SLIPWAY_SCALE_RATE ?? 100)
const seconds = Number(process.env.SLIPWAY_SCALE_FOR ?? 300)
const say = (...words) => console.error(new Date().toISOString().slice(11, 19), ...words)

const products = ['PowerEdge R650', 'ProLiant DL360', 'Big Box 9', 'SYS-1029P']

// inventory is a file of hosts as slipway import reads it.
function inventory(from, to) {
  const lines = ['hosts:']
  for (let i = from; i < to; i++) {
    const hex = i.toString(16).padStart(6, '0')
    const rack = Math.floor(i / 40)
    lines.push(
      `  - name: host-${String(i).padStart(5, '0')}`,
      `    macs: ["52:54:00:${hex.slice(0, 2)}:${hex.slice(2, 4)}:${hex.slice(4, 6)}"]`,
      `    serial: SN${hex}`,
      '    manufacturer: ACME',
      `    product: ${products[i % products.length]}`,
      `    site: s${i % 3}`,
      `    row: A${rack % 10}`,
      `    rack: R${rack}`,
      `    unit: ${(i % 40) + 1}`,
      `    labels: {tier: t${i % 5}, batch: b${i % 97}}`,
    )
  }
  return lines.join('\n')
}

// ask sends a request into the server's namespace by its socket, which needs no token.
const agent = new Agent({ keepAlive: true, maxSockets: 16 })
function ask(rack, method, path, body, headers = {}) {
  return new Promise((done, failed) => {
    const r = request({ socketPath: join(rack.data, 'slipway.sock'), method, path: `/api/v1${path}`, agent, headers: { ...headers, ...(body && { 'Content-Type': 'application/json' }) } }, (res) => {
      let n = 0
      const parts = []
      res.on('data', (b) => {
        n += b.length
        parts.push(b)
      })
      res.on('end', () => done({ status: res.statusCode, bytes: n, body: Buffer.concat(parts) }))
    })
    r.on('error', failed)
    r.end(body && JSON.stringify(body))
  })
}

// frameFor is how long a frame is shown, in milliseconds: 60 a second.
const frameFor = 1000 / 60

const rank = (sorted, p) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))]

// times asks n times, one after the other, and gives the 50th and 99th percentile in milliseconds.
async function times(n, fn) {
  const took = []
  for (let i = 0; i < n; i++) {
    const began = performance.now()
    await fn(i)
    took.push(performance.now() - began)
  }
  took.sort((a, b) => a - b)
  return { p50: rank(took, 0.5), p99: rank(took, 0.99) }
}

// The page watches itself: what a person sees counts, so each time ends with a frame that is drawn.
function watcher() {
  window.scale = { frames: [], isOn: false }
  const drawn = () => new Promise((r) => requestAnimationFrame(() => setTimeout(r)))
  window.scale.until = async (is) => {
    while (!is()) await new Promise((r) => requestAnimationFrame(r))
    await drawn()
    return performance.now()
  }
  window.scale.row = (n) => document.querySelector(`[role=grid] [role=row][aria-rowindex="${n}"]`)
  window.scale.watch = async (ms) => {
    const frames = []
    const end = performance.now() + ms
    let last = performance.now()
    while (last < end) {
      const now = await new Promise((r) => requestAnimationFrame(() => r(performance.now())))
      frames.push(now - last)
      last = now
    }
    return frames
  }
}

// loads measures loads of a page with an empty cache: how long until what is waited for is drawn, and what came over the
// wire until then.
async function loads(page, cdp, path, steps) {
  const all = []
  let bytes = 0
  const count = (e) => (bytes += e.encodedDataLength)
  cdp.on('Network.loadingFinished', count)
  for (let i = 0; i < 3; i++) {
    await page.goto('about:blank')
    await cdp.send('Network.clearBrowserCache')
    bytes = 0
    await page.goto(path, { waitUntil: 'commit' })
    const out = []
    for (const [fn, arg] of steps) out.push({ ms: await page.evaluate(fn, arg), kB: bytes / 1000 })
    all.push(out)
  }
  cdp.off('Network.loadingFinished', count)
  return all.sort((a, b) => a[0].ms - b[0].ms)[1]
}

// first measures how long it takes from going to the page until a row is drawn, and until all hosts are there.
async function first(page, cdp) {
  const [rows, whole] = await loads(page, cdp, '/hosts', [
    [() => window.scale.until(() => window.scale.row(2))],
    [(n) => window.scale.until(() => document.body.innerText.includes(`${n} of ${n} hosts`)), hostN],
  ])
  return { rows: rows.ms, kB: rows.kB, whole: whole.ms, wholeKB: whole.kB }
}

async function overview(page, cdp) {
  const [shown] = await loads(page, cdp, '/', [
    [() => window.scale.until(() => [...document.querySelectorAll('h1')].some((h) => h.textContent === 'Overview'))],
  ])
  return shown
}

async function filter(page) {
  const took = []
  for (const [text, n] of [['rack=R17', 40], ['tier', 0], ['serial~0$', -1], ['label:tier=t3 unit<10', -1]]) {
    await page.getByLabel('Search hosts').fill('')
    await page.evaluate((n) => window.scale.until(() => document.body.innerText.includes(`${n} of ${n} hosts`)), hostN)
    const began = page.evaluate(async ([text, n, all]) => {
      const box = document.querySelector('[aria-label="Search hosts"]')
      const t0 = performance.now()
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(box, text)
      box.dispatchEvent(new Event('input', { bubbles: true }))
      const shown = () => /(\d+) of \d+ hosts/.exec(document.body.innerText)?.[1]
      const t1 = await window.scale.until(() => (n >= 0 ? shown() === String(n) : shown() !== String(all)))
      return t1 - t0
    }, [text, n, hostN])
    took.push(await began)
  }
  await page.getByLabel('Search hosts').fill('')
  await page.evaluate((n) => window.scale.until(() => document.body.innerText.includes(`${n} of ${n} hosts`)), hostN)
  return Math.max(...took)
}

const end = (page) =>
  page.evaluate(async (n) => {
    const grid = document.querySelector('[role=grid]')
    const t0 = performance.now()
    grid.scrollTop = grid.scrollHeight
    const t1 = await window.scale.until(() => window.scale.row(n + 1))
    grid.scrollTop = 0
    await window.scale.until(() => window.scale.row(2))
    return t1 - t0
  }, hostN)

// changes keeps changing hosts at the rate until it is told to stop; it gives how many were made.
function changes(rack) {
  let n = 0
  let late = 0
  let isOver = false
  const began = performance.now()
  const tick = setInterval(() => {
    const due = Math.floor(((performance.now() - began) / 1000) * rate)
    for (; n < due && n - late < 32 + late; n++) {
      const i = (n * 7919) % hostN
      void ask(rack, 'PATCH', `/hosts/host-${String(i).padStart(5, '0')}`, { labels: { turn: `x${n}` } }).finally(() => late++)
    }
  }, 10)
  return {
    stop: () => {
      isOver = true
      clearInterval(tick)
      return { n: late, perSecond: late / ((performance.now() - began) / 1000), isOver }
    },
  }
}

// own is the memory of the server that nobody shares with it, in MB.
async function own(rack) {
  const status = await readFile(`/proc/${rack.server.pid}/status`, 'utf8')
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)[1]) / 1024
}

async function heap(cdp) {
  await cdp.send('HeapProfiler.collectGarbage')
  return (await cdp.send('Runtime.getHeapUsage')).usedSize / 2 ** 20
}

// busy gives how long the page has run scripts so far, and all it has done, in milliseconds.
async function busy(cdp) {
  const { metrics } = await cdp.send('Performance.getMetrics')
  const of = (name) => 1000 * metrics.find((m) => m.name === name).value
  return { at: performance.now(), script: of('ScriptDuration'), task: of('TaskDuration') }
}

// perSecond is what was done in each second from one reading of busy to another.
const perSecond = (a, b) => ({ script: ((b.script - a.script) * 1000) / (b.at - a.at), task: ((b.task - a.task) * 1000) / (b.at - a.at) })

// api measures the list, beside a plain loop of Node that hands out the same bytes on a socket.
async function api(rack) {
  const page = await ask(rack, 'GET', '/hostrows?limit=100')
  const path = join(rack.data, 'plain.sock')
  const plain = createServer((_, res) => res.end(page.body)).listen(path)
  await new Promise((r) => plain.once('listening', r))
  const keep = new Agent({ keepAlive: true })
  const get = () =>
    new Promise((done, failed) => {
      request({ socketPath: path, path: '/', agent: keep }, (res) => res.on('data', () => {}).on('end', done))
        .on('error', failed)
        .end()
    })
  const name = (i) => `host-${String((i * 379) % hostN).padStart(5, '0')}`
  const out = {
    page: await times(300, (i) => ask(rack, 'GET', `/hostrows?limit=100&after=${name(i)}`)),
    most: await times(200, (i) => ask(rack, 'GET', `/hostrows?limit=400&after=${name(i)}`)),
    hosts: await times(300, (i) => ask(rack, 'GET', `/hosts?limit=100&after=${name(i)}`)),
    plain: await times(300, get),
  }
  keep.destroy()
  plain.close()
  return out
}

const rack = await Rack.start(`slipway-scale-${process.pid}`)
try {
  const file = join(rack.data, 'hosts.yaml')
  say('import', hostN)
  for (let i = 0; i < hostN; i += 1000) {
    await writeFile(file, inventory(i, Math.min(hostN, i + 1000))) // the command says each host
    await rack.cli('import', file)
  }
  const out = { hosts: hostN, rate }
  out.api = await api(rack)
  say('api', JSON.stringify(out.api))
  const page = await rack.page('/hosts')
  await page.addInitScript(watcher)
  await page.goto('/hosts')
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('HeapProfiler.enable')
  await cdp.send('Network.enable')
  await cdp.send('Performance.enable')
  out.overview = await overview(page, cdp)
  out.first = await first(page, cdp)
  say('first', JSON.stringify(out.first))
  out.filter = await filter(page)
  out.end = await end(page)
  say('filter', out.filter, 'end', out.end)
  const rest = [await busy(cdp)]
  const quiet = await page.evaluate(() => window.scale.watch(3000))
  rest.push(await busy(cdp))
  const run = changes(rack)
  await new Promise((r) => setTimeout(r, 5000))
  out.heap = [await heap(cdp)]
  out.server = [await own(rack)]
  const frames = []
  const before = await busy(cdp)
  for (let left = seconds; left > 0; left -= 30) {
    frames.push(...(await page.evaluate((ms) => window.scale.watch(ms), Math.min(left, 30) * 1000)))
    out.heap.push(await heap(cdp))
    out.server.push(await own(rack))
    say('heap', out.heap.at(-1).toFixed(1), 'MB, server', out.server.at(-1).toFixed(1), 'MB')
  }
  const after = await busy(cdp)
  out.changes = run.stop()
  const of = (all) => {
    const s = [...all].sort((a, b) => a - b)
    const dropped = s.reduce((n, ms) => n + Math.max(0, Math.round(ms / frameFor) - 1), 0)
    return { n: s.length, p50: rank(s, 0.5), p99: rank(s, 0.99), most: s.at(-1), dropped: (100 * dropped) / (s.length + dropped) }
  }
  out.quiet = { ...of(quiet), msPerSecond: perSecond(...rest) }
  out.live = { ...of(frames), msPerSecond: perSecond(before, after) }
  // What is shown is what the server has: the last change of a host that is in view arrives.
  await ask(rack, 'PATCH', '/hosts/host-00000', { assetTag: 'the-last-one' })
  const began = performance.now()
  await page.getByLabel('Search hosts').fill('the-last-one')
  await page.getByText(`1 of ${hostN} hosts`).waitFor()
  out.arrives = performance.now() - began
  console.log(JSON.stringify(out))
} finally {
  agent.destroy()
  await rack.end()
}
