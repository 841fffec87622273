// Takes the pictures of docs/pictures: every part of every screen of a small company's rack, light; some dark, some as
// narrow as a telephone. Run: make pictures. SLIPWAY_PICTURES is the folder (docs/pictures); SLIPWAY_ONLY a regular
// expression of names. pngquant makes them small; what is not shown in docs goes to the folder's all/, which git ignores.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { anna, demo, known } from './demo.mjs'
import { addresses } from './places.mjs'
import { root } from './rack.mjs'

const folder = process.env.SLIPWAY_PICTURES ?? join(root, 'docs', 'pictures')
const only = new RegExp(process.env.SLIPWAY_ONLY ?? '')
const kB = 1000
const largest = 150 * kB
const together = 3000 * kB
const dark = /^(overview|hosts|hosts-timeline|racks)$/
const narrow = /^(overview|hosts|hosts-timeline|racks|machines|issues)$/
const printed = /^(hosts|hosts-timeline|hosts-hardware|racks)$/

// What is shown in docs, by the text of the pages, is kept.
const docs = [join(root, 'README.md'), ...readdirSync(join(root, 'docs')).filter((f) => f.endsWith('.md')).map((f) => join(root, 'docs', f))]
const shownIn = docs.map((f) => readFileSync(f, 'utf8')).join('\n')
const isKept = (name) => shownIn.includes(`pictures/${name}.png`)

mkdirSync(join(folder, 'all'), { recursive: true })
const rack = await demo(`slipway-pic-${process.pid}`)
const errors = []
try {
  const all = addresses(await known(rack)).filter(({ name }) => only.test(name))
  for (const [theme, width, which] of [['light', 1400, /./], ['dark', 1400, dark], ['narrow', 400, narrow]]) {
    const page = await rack.page('/', { login: anna, viewport: { width, height: width < 500 ? 800 : 900 } })
    page.on('response', (r) => r.status() >= 400 && errors.push(`${new URL(page.url()).pathname}: ${r.status()} ${r.request().method()} ${r.url()}`))
    if (theme === 'dark') await page.getByRole('button', { name: 'Dark colours' }).click()
    for (const { path, name } of all.filter(({ name }) => which.test(name))) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).first().waitFor()
      await page.waitForFunction(() => !document.querySelector('[aria-label="Loading"], .pf-v6-c-skeleton'))
      await page.waitForLoadState('networkidle', { timeout: 1000 }).catch(() => {}) // the stream of events never ends
      take(await page.screenshot({ animations: 'disabled' }), theme === 'light' ? name : `${name}-${theme}`)
      if (theme === 'light' && printed.test(name)) await page.pdf({ path: join(folder, 'all', `${name}.pdf`), format: 'A4' })
    }
    errors.push(...page.errors)
    await page.context().close()
  }
} finally {
  await rack.end()
}
const size = readdirSync(folder).filter((f) => f.endsWith('.png')).reduce((n, f) => n + statSync(join(folder, f)).size, 0)
console.log(`${readdirSync(join(folder, 'all')).length} pictures in ${join(folder, 'all')}, ${Math.round(size / kB)} kB shown in docs`)
if (size > together) throw new Error(`the pictures of docs have ${size} bytes, more than ${together}`)
if (errors.length) console.log(`the pages complained of:\n${errors.join('\n')}`)
process.exit()

// take writes a picture with as many colours as are needed.
function take(png, name) {
  const small = execFileSync('pngquant', ['--quality', '60-95', '--speed', '1', '--strip', '-'], { input: png, maxBuffer: 1 << 26 })
  if (small.length > largest) throw new Error(`${name} has ${small.length} bytes, more than ${largest}`)
  for (const dir of isKept(name) ? [folder, join(folder, 'all')] : [join(folder, 'all')]) writeFileSync(join(dir, `${name}.png`), small)
}
