import { beforeEach, expect, test, vi } from 'vitest'
import { type HostRow, Rows } from './rows'

const row = (n: number, version = 1) =>
  ({
    id: `id${n}`,
    name: `host-${String(n).padStart(5, '0')}`,
    state: 'available',
    place: {},
    version,
  }) as unknown as HostRow

// A server of rows, whose answers to one id or one page are counted.
function server(n: number) {
  const hosts = new Map(Array.from({ length: n }, (_, i) => [`id${i}`, row(i)]))
  const asked: Record<string, unknown>[] = []
  const get = async (_: string, o: object) => {
    const q = (o as { params: { query: { limit: number; after?: string; ids?: string } } }).params.query
    asked.push(q)
    if (q.ids) return { data: { items: q.ids.split(',').flatMap((id) => hosts.get(id) ?? []) } }
    const all = [...hosts.values()]
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .filter((h) => !q.after || h.name > q.after)
    const items = all.slice(0, q.limit).map((h) => ({ ...h }))
    return { data: { items, next: all.length > q.limit ? items.at(-1)?.name : undefined } }
  }
  return { hosts, asked, get }
}

const live = { on: () => () => {}, onLine: () => () => {}, line: 'live' as const }
beforeEach(() => void vi.useFakeTimers())

test('the list is read once, page by page, and a change reads one host', async () => {
  const s = server(2500)
  const rows = new Rows(live, s.get)
  const said: number[] = []
  rows.subscribe(() => said.push(rows.snapshot().rows.length))
  await vi.advanceTimersByTimeAsync(10)
  expect(rows.snapshot().isWhole).toBe(true)
  expect(said).toEqual([100, 2500]) // what comes within a moment is shown together
  const before = rows.snapshot().rows
  s.asked.length = 0
  s.hosts.set('id7', row(7, 2))
  for (let i = 0; i < 50; i++) rows.take({ hostID: 'id7', kind: 'host.changed' })
  await vi.advanceTimersByTimeAsync(300)
  expect(s.asked).toEqual([{ ids: 'id7', limit: 200 }])
  const after = rows.snapshot().rows
  expect(after[7]?.version).toBe(2)
  expect(after[8]).toBe(before[8]) // the others are the same objects
})

test('a host that is gone goes, one that is new stands in its place', async () => {
  const s = server(3)
  const rows = new Rows(live, s.get)
  rows.subscribe(() => {})
  await vi.advanceTimersByTimeAsync(10)
  s.hosts.delete('id1')
  s.hosts.set('new', { ...row(0), id: 'new', name: 'a' } as HostRow)
  rows.take({ hostID: 'id1', kind: 'host.deleted' })
  rows.take({ hostID: 'new', kind: 'host.discovered' })
  await vi.advanceTimersByTimeAsync(300)
  expect(rows.snapshot().rows.map((r) => r.id)).toEqual(['new', 'id0', 'id2'])
})

test('what could not be read is asked for again', async () => {
  const s = server(3)
  let isDown = false
  const rows = new Rows(live, async (p, o) => {
    if (isDown) throw new Error('down')
    return s.get(p, o)
  })
  rows.subscribe(() => {})
  await vi.advanceTimersByTimeAsync(10)
  isDown = true
  s.hosts.set('id1', row(1, 2))
  rows.take({ hostID: 'id1', kind: 'x' })
  await vi.advanceTimersByTimeAsync(300)
  expect(rows.snapshot().error).toBeDefined()
  isDown = false
  await vi.advanceTimersByTimeAsync(10_000)
  expect(rows.snapshot().error).toBeUndefined()
  expect(rows.snapshot().rows[1]?.version).toBe(2)
})

test('many hosts are read in parts', async () => {
  const s = server(1000)
  const rows = new Rows(live, s.get)
  rows.subscribe(() => {})
  await vi.advanceTimersByTimeAsync(10)
  s.asked.length = 0
  for (let i = 0; i < 450; i++) rows.take({ hostID: `id${i}`, kind: 'x' })
  await vi.advanceTimersByTimeAsync(300)
  expect(s.asked.length).toBe(3)
})

test('all are read once, when the stream is there', async () => {
  const s = server(900)
  let say = (_: 'live' | 'polling') => {}
  const onLine = (fn: typeof say) => {
    say = fn
    return () => {}
  }
  const rows = new Rows({ ...live, line: 'connecting', onLine }, s.get)
  rows.subscribe(() => {})
  await vi.advanceTimersByTimeAsync(1000)
  expect(s.asked).toEqual([]) // what is read now may be old when events begin
  say('live')
  await vi.advanceTimersByTimeAsync(10)
  expect(rows.snapshot().isWhole).toBe(true)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(s.asked.map((q) => q.limit)).toEqual([100, 400, 400])
})

test('a stream that does not begin keeps nobody from the hosts', async () => {
  const s = server(3)
  const rows = new Rows({ ...live, line: 'connecting' }, s.get)
  rows.subscribe(() => {})
  await vi.advanceTimersByTimeAsync(4000)
  expect(rows.snapshot().isWhole).toBe(true)
})
