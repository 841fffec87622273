// @vitest-environment happy-dom
import { QueryClient } from '@tanstack/react-query'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Event } from './client'
import { Live, nounsOf } from './live'

const text = new TextEncoder()

// A server of streams: each request for one is kept, and what it says is for the test to say.
function server() {
  const asked: { lastID: string | undefined; say: (s: string) => void; cut: () => void; ends: AbortSignal }[] = []
  vi.stubGlobal('fetch', async (_: string, o: { headers: Record<string, string>; signal: AbortSignal }) => {
    let out: ReadableStreamDefaultController<Uint8Array> | undefined
    const body = new ReadableStream<Uint8Array>({
      start(c) {
        out = c
      },
    })
    asked.push({
      lastID: o.headers['Last-Event-ID'],
      ends: o.signal,
      say: (s) => out?.enqueue(text.encode(s)),
      cut: () => out?.error(new Error('cut')),
    })
    return new Response(body)
  })
  return asked
}

const event = (id: number) => `id: ${id}\ndata: ${JSON.stringify({ id, kind: 'host.changed', hostID: `h${id}` })}\n\n`

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

test('a stream that is cut goes on after the last event that was whole', async () => {
  const asked = server()
  const live = new Live(new QueryClient())
  const heard: number[] = []
  live.on((e: Event) => heard.push(e.id))
  live.start()
  await vi.advanceTimersByTimeAsync(0)
  const half = event(8)
  asked[0]?.say(event(7) + half.slice(0, 20))
  await vi.advanceTimersByTimeAsync(0)
  expect(live.line).toBe('live')
  asked[0]?.cut()
  await vi.advanceTimersByTimeAsync(0)
  expect(live.line).toBe('polling')
  await vi.advanceTimersByTimeAsync(500)
  expect(asked.map((a) => a.lastID)).toEqual([undefined, '7'])
  asked[1]?.say(event(8).slice(0, 9))
  asked[1]?.say(event(8).slice(9) + event(9))
  await vi.advanceTimersByTimeAsync(0)
  expect(live.line).toBe('live')
  expect(heard).toEqual([7, 8, 9])
  live.end()
})

test('a stream that says nothing for too long is opened again, after its last event', async () => {
  const asked = server()
  const live = new Live(new QueryClient())
  live.start()
  await vi.advanceTimersByTimeAsync(0)
  asked[0]?.say(event(7))
  for (let i = 0; i < 4; i++) {
    await vi.advanceTimersByTimeAsync(15_000)
    asked[0]?.say(': alive\n\n')
  }
  expect(asked.length).toBe(1)
  asked[0]?.ends.addEventListener('abort', () => asked[0]?.cut()) // as a browser does
  await vi.advanceTimersByTimeAsync(40_500)
  expect(asked.map((a) => a.lastID)).toEqual([undefined, '7'])
  live.end()
})

test('a server that opens no stream says why, until it does', async () => {
  const none = { title: 'Service Unavailable', detail: 'no instance has the engine', hint: 'another takes it' }
  vi.stubGlobal('fetch', async () => Response.json(none, { status: 503 }))
  const live = new Live(new QueryClient())
  const lost: (string | undefined)[] = []
  live.onLost(() => lost.push(live.lost?.message))
  live.start()
  await vi.advanceTimersByTimeAsync(4_000)
  expect(live.lost?.hint).toBe('another takes it')
  server()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(lost).toEqual(['no instance has the engine', undefined])
  vi.stubGlobal('fetch', async () => Response.json({}, { status: 401 }))
  const out = new Live(new QueryClient())
  out.start()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(out.lost).toBeUndefined() // the login has ended, and its own page says so
  live.end()
  out.end()
})

test('events are gathered, and only what they touch is read anew', async () => {
  const asked = server()
  const queries = new QueryClient()
  const live = new Live(queries)
  live.start()
  await vi.advanceTimersByTimeAsync(0)
  const read = vi.spyOn(queries, 'invalidateQueries')
  for (let i = 1; i <= 50; i++) asked[0]?.say(event(i))
  await vi.advanceTimersByTimeAsync(250)
  expect(read).toHaveBeenCalledTimes(1)
  const is = read.mock.calls[0]?.[0]?.predicate as unknown as (q: { queryKey: string[] }) => boolean
  expect(['hosts', 'issues', 'audit', 'subnets', 'me'].map((noun) => is({ queryKey: [noun] }))).toEqual([
    true,
    true,
    true,
    false,
    false,
  ])
  expect(nounsOf({ kind: 'dhcp.ack' })).toContain('leases')
  live.end()
})

test('a change names the version that was seen, also as curl', async () => {
  const sent: (string | null)[] = []
  vi.stubGlobal('fetch', async (r: Request) => {
    sent.push(r.headers.get('If-Match'))
    return Response.json({})
  })
  vi.resetModules() // the client takes hold of fetch when it is made
  const { curlOf, send } = await import('./act')
  await send({ method: 'PATCH', path: '/hosts/a', body: {}, version: 7 })
  await send({ method: 'PATCH', path: '/hosts/a', body: {} })
  expect(sent).toEqual(['"7"', null])
  expect(curlOf({ method: 'PATCH', path: '/hosts/a', body: {}, version: 7 }, 'https://s')).toContain(`'If-Match: "7"'`)
})
