import type { QueryClient } from '@tanstack/react-query'
import { type Event, headers, out, Problem, problemOf } from './client'

export type Line = 'live' | 'connecting' | 'polling'

// pollFor is how often what is shown is read anew while there is no stream.
const pollFor = 5_000
// quietFor is how long a stream may say nothing, though the server gives a sign of life every 15 seconds. Its other end is gone then, or hangs.
const quietFor = 40_000
// gatherFor is how long events are gathered before what they touch is read anew: a rack that boots sends hundreds a second.
const gatherFor = 250
const flushMax = 5_000

type Listener = (e: Event) => void

// Live follows the server's events. Whatever they touch is read anew; nothing is guessed. A stream that breaks goes on
// where it ended; while there is none, everything shown is polled, and the page says so.
export class Live {
  private last = ''
  private touched = new Set<string>()
  private timer: ReturnType<typeof setTimeout> | undefined
  private poll: ReturnType<typeof setInterval> | undefined
  private stop = new AbortController()
  private listeners = new Set<Listener>()
  private lines = new Set<(l: Line) => void>()
  private losses = new Set<() => void>()
  line: Line = 'connecting'
  // lost is why the server opens no stream. A stream that breaks and comes back at once is no loss.
  lost: Problem | undefined

  constructor(private queries: QueryClient) {}

  start() {
    void this.run()
  }

  end() {
    this.stop.abort()
    clearTimeout(this.timer)
    clearInterval(this.poll)
  }

  on(fn: Listener) {
    this.listeners.add(fn)
    return () => void this.listeners.delete(fn)
  }

  onLine(fn: (l: Line) => void) {
    this.lines.add(fn)
    return () => void this.lines.delete(fn)
  }

  onLost(fn: () => void) {
    this.losses.add(fn)
    return () => void this.losses.delete(fn)
  }

  private lose(why: Problem | undefined) {
    if (why?.message === this.lost?.message && why?.hint === this.lost?.hint) return
    this.lost = why
    for (const fn of this.losses) fn()
  }

  private say(l: Line) {
    if (l === this.line) return
    this.line = l
    clearInterval(this.poll)
    if (l === 'polling') this.poll = setInterval(() => void this.queries.invalidateQueries(), pollFor)
    for (const fn of this.lines) fn(l)
  }

  private async run() {
    for (let wait = 500; !this.stop.signal.aborted; wait = Math.min(wait * 2, pollFor)) {
      let isOpen = false
      try {
        await this.follow(() => {
          isOpen = true
          wait = 500
          this.say('live')
          this.lose(undefined)
        })
      } catch (err) {
        // It is tried again below.
        const why = err instanceof Problem ? err : new Problem(0, 'No answer', 'the server does not answer')
        if (!isOpen && why.isOutage) this.lose(why)
      }
      if (this.stop.signal.aborted) return
      this.say('polling')
      await new Promise((r) => setTimeout(r, wait))
    }
  }

  private async follow(opened: () => void) {
    const more: Record<string, string> = { Accept: 'text/event-stream' }
    if (this.last) more['Last-Event-ID'] = this.last
    const quiet = new AbortController()
    let timer = setTimeout(() => quiet.abort(), quietFor)
    try {
      const signal = AbortSignal.any([this.stop.signal, quiet.signal])
      const r = await fetch('/api/v1/events', { headers: headers(more), signal })
      if (r.status === 401) out()
      if (!r.ok || !r.body) throw await problemOf(r)
      opened()
      if (!this.last) void this.queries.invalidateQueries() // what happened before the stream began
      const reader = r.body.pipeThrough(new TextDecoderStream()).getReader()
      for (let rest = ''; ; ) {
        const { value, done } = await reader.read()
        if (done) return
        clearTimeout(timer)
        timer = setTimeout(() => quiet.abort(), quietFor)
        const blocks = (rest + value).split('\n\n')
        rest = blocks.pop() ?? ''
        for (const b of blocks) this.take(b)
      }
    } finally {
      clearTimeout(timer)
    }
  }

  private take(block: string) {
    let data = ''
    for (const line of block.split('\n')) {
      if (line.startsWith('id:')) this.last = line.slice(3).trim()
      if (line.startsWith('data:')) data += line.slice(5).trimStart()
    }
    if (!data) return
    const e: Event = JSON.parse(data)
    for (const fn of this.listeners) fn(e)
    for (const noun of nounsOf(e)) this.touched.add(noun)
    this.timer ??= setTimeout(() => void this.flush(), gatherFor)
  }

  // flush reads anew what events touched, and only then gathers again, four times as long as that took: lists that take
  // long to read are not read over and over.
  private async flush() {
    const nouns = this.touched
    this.touched = new Set()
    const began = performance.now()
    const read = this.queries.invalidateQueries({ predicate: (q) => nouns.has(String(q.queryKey[0])) })
    await Promise.race([read, new Promise((r) => setTimeout(r, flushMax))])
    this.timer = undefined
    if (this.touched.size > 0 && !this.stop.signal.aborted) {
      const wait = Math.max(gatherFor, Math.min(flushMax, 4 * (performance.now() - began)))
      this.timer = setTimeout(() => void this.flush(), wait)
    }
  }
}

// nounsOf says what an event may have changed, in the words of query keys.
export function nounsOf(e: Pick<Event, 'kind' | 'hostID' | 'subject'>): string[] {
  const nouns = ['events']
  if (e.hostID) nouns.push('hosts', 'operations', 'sessions', 'issues')
  const noun = e.subject?.split('/')[0]
  if (noun) nouns.push(`${noun}s`, 'issues')
  if (noun === 'duty') nouns.push('instances')
  if (noun && ['machine', 'subnet', 'profile', 'layer'].includes(noun)) nouns.push('addresses')
  if (e.kind.startsWith('dhcp')) nouns.push('leases')
  else nouns.push('audit')
  return nouns
}
