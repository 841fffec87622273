// @vitest-environment happy-dom
import { QueryClient } from '@tanstack/react-query'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Event } from './client'
import { Live, nounsOf } from './live'

const text = new TextEncoder()

// A server of streams: each request for one is kept, and what it says is for the test to say.
function server() {
  const asked: { lastID: string | undefined; say: (s: string) => void; cut: () => void }[] = []
  vi.stubGlobal('fetch', async (_: string, o: { headers: Record<string, string> }) => {
    let out: ReadableStreamDefaultController<Uint8Array> | undefined
    const body = new ReadableStream<Uint8Array>({
      start(c) {
        out = c
      },
    })
    asked.push({
      lastID: o.headers['Last-Event-ID'],
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
