import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { faults, Rack } from './rack.mjs'

let rack
let names
const shots = process.env.SLIPWAY_SHOTS

// noErrors holds that a page complained of nothing but that axe was put into it, and of what the story asked for.
const noErrors = (page, ...asked) => assert.deepEqual(page.errors.filter((e) => ![...asked, 'Executing inline script'].some((a) => e.includes(a))), [])

before(async () => {
  rack = await Rack.start(`slipway-racks-${process.pid}`)
  await rack.machines(6, '--expect', 'waiting')
  for (;;) {
    names = (await hosts()).map((h) => h.name)
    if (names.length === 6) break
    await new Promise((r) => setTimeout(r, 200))
  }
  await rack.cli('rack', 'set', 'lab/a/r1', '--height', '12', '--notes', 'by the door')
  await rack.cli('rack', 'set', 'lab/a/r2', '--height', '10', '--numbering', 'top')
})
after(() => rack?.end())

async function hosts() {
  const all = JSON.parse(await rack.cli('host', 'list', '-o', 'json'))
  return all.items ?? all
}
const place = async (name) => (await hosts()).find((h) => h.name === name).place
const at = (rack, unit) => ['--site', 'lab', '--row', 'a', '--rack', rack, '--unit', String(unit)]

// pointAt is the middle of a unit of a rack that is numbered from the bottom.
async function pointAt(page, label, unit, height) {
  const box = await page.getByRole('group', { name: label }).boundingBox()
  return [box.x + box.width / 2, box.y + (box.height * (height - unit + 0.5)) / height]
}

async function drag(page, host, [x, y]) {
  const from = await page.getByRole('button', { name: new RegExp(`^${host},`) }).first().boundingBox()
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2)
  await page.mouse.down()
  await page.mouse.move(x, y, { steps: 8 })
  await page.mouse.up()
}

test('a host is dragged to its place, and not onto another', async () => {
  const page = await rack.page('/racks')
  const tray = page.getByRole('group', { name: 'Hosts without a place' })
  await tray.getByRole('button').nth(5).waitFor()
  await drag(page, names[0], await pointAt(page, 'r1, front', 7, 12))
  const r1 = page.getByRole('group', { name: 'r1, front' })
  await r1.getByRole('button', { name: `${names[0]}, discovered, U7 of r1` }).waitFor()
  assert.deepEqual(await place(names[0]), { site: 'lab', row: 'a', rack: 'r1', unit: 7 })

  await rack.cli('host', 'place', names[0], '--height', '2')
  await r1.getByRole('button', { name: `${names[0]}, discovered, U7-U8 of r1` }).waitFor() // live
  await drag(page, names[1], await pointAt(page, 'r1, front', 8, 12))
  await page.getByText(`U8 is taken: ${names[0]} is there`).first().waitFor()
  assert.deepEqual(await place(names[1]), {})

  await drag(page, names[0], await pointAt(page, 'r1, front', 2, 12)) // by its middle: its upper unit
  await r1.getByRole('button', { name: new RegExp(`^${names[0]}, discovered, U[12]-U[23] of r1`) }).waitFor()
  if (shots) await page.screenshot({ path: `${shots}/racks.png`, fullPage: true })
  noErrors(page)
  await page.context().close()
})

test('a host is placed with the keyboard alone, shown in the drawer, and taken out again', async () => {
  const page = await rack.page('/racks')
  const box = page.getByRole('button', { name: new RegExp(`^${names[2]},`) })
  await box.focus()
  await page.keyboard.press('Enter')
  await page.getByText(`${names[2]} over U1 of r1`).waitFor()
  for (const key of ['ArrowRight', 'ArrowDown', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(key)
  await page.getByText(`${names[2]} over U4 of r2: free`).waitFor() // r2 counts from its top
  await page.keyboard.press('Enter')
  await page.getByRole('group', { name: 'r2, front' }).getByRole('button', { name: `${names[2]}, discovered, U4 of r2` }).waitFor()
  assert.deepEqual(await place(names[2]), { site: 'lab', row: 'a', rack: 'r2', unit: 4 })

  await box.focus()
  await page.keyboard.press('Space')
  await page.getByRole('heading', { level: 2, name: names[2] }).waitFor()
  assert.match(page.url(), new RegExp(`host=${names[2]}`))
  assert.deepEqual(await faults(page), [])
  if (shots) await page.screenshot({ path: `${shots}/racks-drawer.png` })
  const form = page.getByRole('form', { name: 'Place' })
  await form.getByLabel('Lowest unit').fill('101')
  await form.getByRole('button', { name: 'Place' }).click()
  await form.getByText('expected number <= 100').first().waitFor()
  await form.getByLabel('Lowest unit').fill('9')
  await form.getByRole('button', { name: 'Place' }).click()
  await page.getByRole('button', { name: `${names[2]}, discovered, U9 of r2` }).waitFor()
  await page.getByRole('button', { name: 'Close', exact: true }).click()

  await box.focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Delete')
  await page.keyboard.press('Enter')
  await page.getByRole('group', { name: 'Hosts without a place' }).getByRole('button', { name: new RegExp(`^${names[2]},`) }).waitFor()
  assert.deepEqual(await place(names[2]), {})
  noErrors(page, 'status of 422') // U101
  await page.context().close()
})

test('the rear shows what is mounted there, what shares units stands side by side, what overlaps is a conflict', async () => {
  await rack.cli('host', 'place', names[3], ...at('r2', 2), '--face', 'rear')
  await rack.cli('host', 'place', names[1], ...at('r2', 5), '--height', '3')
  await rack.cli('host', 'place', names[4], ...at('r2', 7))
  const page = await rack.page('/racks')
  const front = page.getByRole('group', { name: 'r2, front' })
  await front.getByRole('button', { name: new RegExp(`^${names[4]}, discovered, U7 of r2, shared, conflict`) }).waitFor()
  await page.getByText('overlap').first().waitFor()
  assert.equal(await front.getByRole('button', { name: new RegExp(`^${names[3]},`) }).count(), 0)
  await page.getByRole('button', { name: 'Rear' }).click()
  await page.getByRole('group', { name: 'r2, rear' }).getByRole('button', { name: new RegExp(`^${names[3]},`) }).waitFor()
  await page.getByRole('button', { name: 'Both' }).click()
  assert.match(page.url(), /face=both/)

  await rack.cli('host', 'place', names[1], '--unit', '7', '--height', '1')
  await page.getByText('overlap').first().waitFor({ state: 'detached' })
  await drag(page, names[5], [...(await pointAt(page, 'r2, front', 10 - 7 + 1, 10))])
  const ask = page.getByRole('dialog')
  await ask.getByText('the nodes of one chassis').waitFor()
  await ask.getByRole('button', { name: 'Share the units' }).click()
  await page.getByRole('group', { name: 'r2, front' }).getByRole('button', { name: `${names[5]}, discovered, U7 of r2, shared` }).waitFor()
  noErrors(page)
  await page.context().close()
})

test('a host that somebody changed meanwhile is not moved, until it is tried again', async () => {
  const page = await rack.page('/racks')
  const r1 = page.getByRole('group', { name: 'r1, front' })
  await r1.waitFor()
  // The page's request is held until the other one is through.
  let isFirst = true
  await page.route('**/api/v1/hosts/*', async (route) => {
    if (isFirst && route.request().method() === 'PATCH') {
      isFirst = false
      await rack.cli('host', 'place', names[2], '--site', 'lab', '--row', 'a', '--rack', 'r1')
    }
    await route.continue()
  })
  await drag(page, names[2], await pointAt(page, 'r1, front', 7, 12))
  await page.getByText(`Slipway did not move ${names[2]} to U7 of rack r1`).waitFor()
  await page.getByRole('button', { name: `${names[2]}, discovered, in rack r1, no unit` }).waitFor()
  assert.deepEqual(await place(names[2]), { site: 'lab', row: 'a', rack: 'r1' })
  await page.getByRole('button', { name: 'Try again' }).click()
  await r1.getByRole('button', { name: `${names[2]}, discovered, U7 of r1` }).waitFor()
  assert.equal(await page.getByText('did not move').count(), 0)
  noErrors(page, 'status of 412')
  await page.context().close()
})

test('a search highlights, the drawing comes as SVG, and the page prints', async () => {
  const page = await rack.page('/racks?face=both')
  await page.getByLabel('Highlight hosts').fill(`name=${names[3]}`)
  await page.getByRole('button', { name: new RegExp(`^${names[3]}.*found`) }).first().waitFor()
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'SVG drawing of rack r2' }).click()])
  assert.equal(file.suggestedFilename(), 'rack-r2.svg')

  const svg = await rack.cli('rack', 'elevation', 'lab/a/r2', '--face', 'rear')
  const drawn = await (await rack.browser()).newPage()
  await drawn.setContent(svg)
  await drawn.getByRole('img', { name: 'Rack lab/a/r2, rear' }).waitFor()
  assert.match(svg, new RegExp(`${names[3]}, discovered`))
  if (shots) await drawn.screenshot({ path: `${shots}/elevation.png`, fullPage: true })
  await drawn.close()

  await page.emulateMedia({ media: 'print' })
  await page.getByRole('group', { name: 'r2, rear' }).waitFor()
  assert.equal(await page.getByRole('group', { name: 'Hosts without a place' }).isVisible(), false)
  if (shots) await page.screenshot({ path: `${shots}/racks-print.png`, fullPage: true })
  await page.context().close()
})

test('a rack is described, refused with the field that is wrong, and forgotten', async () => {
  const page = await rack.page('/racks')
  await page.getByRole('button', { name: 'Describe a rack' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('Name').fill('r9')
  await form.getByLabel('Height in units').fill('101')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText('is not between 1 and 100').first().waitFor()
  if (shots) await page.screenshot({ path: `${shots}/rack-form.png` })
  await form.getByLabel('Height in units').fill('4')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  await page.getByRole('combobox', { name: 'Row', exact: true }).selectOption('without a row')
  await page.getByRole('button', { name: 'Delete rack r9' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('heading', { level: 2, name: 'r9' }).waitFor({ state: 'detached' })
  await page.context().close()
})

for (const [colorScheme, width] of [
  ['light', 1400],
  ['dark', 1400],
  ['light', 400],
]) {
  test(`no serious fault, ${colorScheme}, ${width} wide`, async () => {
    const page = await rack.page('/racks?face=both', { colorScheme, viewport: { width, height: 900 } })
    await page.getByRole('group', { name: 'r1, front' }).waitFor()
    assert.deepEqual(await faults(page), [])
    if (shots) await page.screenshot({ path: `${shots}/racks-${colorScheme}-${width}.png` })
    await page.goto('/racks?tab=cables')
    await page.getByText('No inspection has found cables').waitFor()
    assert.deepEqual(await faults(page), [])
    if (shots) await page.screenshot({ path: `${shots}/cables-${colorScheme}-${width}.png` })
    await page.context().close()
  })
}
