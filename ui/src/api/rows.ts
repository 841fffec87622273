import { useSyncExternalStore } from 'react'
import { api, type Event, isObject, must, type Nouns } from './client'
import type { Line } from './live'

// HostRow is a host in a list of many.
export type HostRow = Nouns['hostrows']

export interface HostRows {
  rows: readonly HostRow[] // in order of their names
  isWhole: boolean // every page was read
  error?: unknown // why the rows may be old
}

// What is read at once: what fits on a screen at first, then pages that the server answers within 50 ms at any time, and
// hosts by id later.
const firstSize = 100
const pageSize = 400
// sayEvery is how often those that are there already are shown while the rest is read.
const sayEvery = 250
// streamWait is how long the first stream may take to begin before all is read without it.
const streamWait = 3000
const idsAtOnce = 200
// gatherFor is how long touched hosts are gathered at least; when the server takes longer to answer, four times as long
// as that, so that a rack that boots never keeps it busy with us alone.
const gatherFor = 250
const wholeEvery = 60_000 // without stream: all rows anew

type Live = { on: (fn: (e: Event) => void) => () => void; onLine: (fn: (l: Line) => void) => () => void; line: Line }
type RowQuery = { after?: string; limit?: number; ids?: string }
type Get = (path: '/api/v1/hostrows', o: { params: { query: RowQuery } }) => Promise<{ data?: Page }>

// Rows keeps all hosts as rows. It reads the list once, then only the hosts that events name: at ten thousand hosts and a
// hundred changes a second, nothing else holds. A row that did not change stays the same object.
export class Rows {
  private byID = new Map<string, HostRow>()
  private state: HostRows = { rows: [], isWhole: false }
  private touched = new Set<string>()
  private timer: ReturnType<typeof setTimeout> | undefined
  private every: ReturnType<typeof setInterval> | undefined
  private wait = gatherFor
  private isReading = false
  private again = false
  private listeners = new Set<() => void>()
  private unfollow: (() => void)[] = []
  private stopped: ReturnType<typeof setTimeout> | undefined

  constructor(
    private live: Live | undefined,
    private get: Get = api.GET,
  ) {}

  // subscribe begins to follow with the first who looks, and ends some time after the last.
  subscribe = (fn: () => void) => {
    this.listeners.add(fn)
    clearTimeout(this.stopped)
    if (this.listeners.size === 1 && this.unfollow.length === 0) this.follow()
    return () => {
      this.listeners.delete(fn)
      if (this.listeners.size === 0) this.stopped = setTimeout(() => this.end(), 30_000)
    }
  }

  snapshot = () => this.state

  // refresh reads all rows anew.
  refresh = () => void this.readAll()

  end() {
    for (const u of this.unfollow) u()
    this.unfollow = []
    clearTimeout(this.timer)
    clearInterval(this.every)
    this.timer = undefined
  }

  private follow() {
    if (!this.live) return // it is about to come
    let first: ReturnType<typeof setTimeout> | undefined
    this.unfollow.push(
      this.live.on((e) => this.take(e)),
      this.live.onLine((l) => {
        clearTimeout(first)
        clearInterval(this.every)
        this.refresh() // what happened while there was no stream
        if (l !== 'live') this.every = setInterval(this.refresh, this.byID.size > 2000 ? wholeEvery : 5000)
      }),
      () => clearTimeout(first),
    )
    void this.showEarly()
    // All is read once the stream is there: what is read before may be old by then.
    if (this.live.line === 'connecting') first = setTimeout(this.refresh, streamWait)
    else void this.readAll()
  }

  // take notes whom an event concerns.
  take(e: Pick<Event, 'hostID' | 'kind' | 'data'>) {
    if (e.hostID) this.touched.add(e.hostID)
    const ids = isObject(e.data) ? e.data.hostIDs : undefined
    if (Array.isArray(ids)) for (const id of ids) this.touched.add(String(id))
    if (this.touched.size > 0) this.timer ??= setTimeout(() => void this.flush(), this.wait)
  }

  private say(more: Partial<HostRows>) {
    this.state = { ...this.state, ...more }
    for (const fn of this.listeners) fn()
  }

  private page(query: RowQuery) {
    return must(this.get('/api/v1/hostrows', { params: { query } }))
  }

  private async readAll() {
    if (this.isReading) {
      this.again = true
      return
    }
    this.isReading = true
    try {
      const seen = new Set<string>()
      let saidAt = Number.NEGATIVE_INFINITY
      for (let after = ''; ; ) {
        const p = await this.page({ limit: after === '' ? firstSize : pageSize, ...(after && { after }) })
        for (const r of p.items) {
          seen.add(r.id)
          this.keep(r)
        }
        // Rows show as they come; those that were there before stay until all are known.
        if (!this.state.isWhole && p.next && performance.now() - saidAt >= sayEvery) {
          this.say({ rows: this.sorted() })
          saidAt = performance.now()
        }
        if (!p.next) break
        after = p.next
      }
      for (const id of this.byID.keys()) if (!seen.has(id) && !this.touched.has(id)) this.byID.delete(id)
      this.say({ rows: this.sorted(), isWhole: true, error: undefined })
    } catch (error) {
      this.say({ error })
    } finally {
      this.isReading = false
      if (this.again) {
        this.again = false
        void this.readAll()
      }
    }
  }

  // showEarly shows the first page as soon as it is there. It is read again with the others.
  private async showEarly() {
    const rows = (await early())?.items ?? []
    if (this.state.rows.length > 0 || rows.length === 0) return
    for (const r of rows) this.keep(r)
    this.say({ rows: this.sorted() })
  }

  // keep stores a row, and says whether it is another than before.
  private keep(r: HostRow): boolean {
    const old = this.byID.get(r.id)
    if (old && JSON.stringify(old) === JSON.stringify(r)) return false
    this.byID.set(r.id, r)
    return true
  }

  private async flush() {
    if (this.isReading) {
      this.timer = setTimeout(() => void this.flush(), gatherFor)
      return
    }
    const ids = [...this.touched]
    this.touched = new Set()
    const began = performance.now()
    try {
      const changed = new Map<string, HostRow | undefined>()
      for (let i = 0; i < ids.length; i += idsAtOnce) {
        const part = ids.slice(i, i + idsAtOnce)
        const p = await this.page({ ids: part.join(','), limit: idsAtOnce })
        const there = new Set(p.items.map((r) => r.id))
        for (const r of p.items) {
          const old = this.byID.get(r.id)
          if (this.keep(r)) changed.set(r.id, old && old.name === r.name ? r : undefined)
        }
        for (const id of part) if (!there.has(id) && this.byID.delete(id)) changed.set(id, undefined)
      }
      this.patch(changed)
    } catch (error) {
      for (const id of ids) this.touched.add(id) // they are asked for again
      this.say({ error })
    }
    this.wait = Math.max(gatherFor, Math.min(5000, 4 * (performance.now() - began)))
    this.timer = undefined
    if (this.touched.size > 0) this.timer = setTimeout(() => void this.flush(), this.wait)
  }

  // patch puts changed rows into their places. undefined stands for a host that came, went or has another name: only then
  // the order is made anew.
  private patch(changed: Map<string, HostRow | undefined>) {
    if (changed.size === 0) {
      if (this.state.error) this.say({ error: undefined })
      return
    }
    const isSame = [...changed.values()].every((r) => r !== undefined)
    const rows = isSame ? this.state.rows.map((r) => changed.get(r.id) ?? r) : this.sorted()
    this.say({ rows, error: undefined })
  }

  private sorted() {
    return [...this.byID.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  }
}

type Page = { items: HostRow[]; next?: string | undefined }
let asked: Promise<Page | undefined> | undefined

// askEarly asks for the first page while the screen that shows it is still being made.
export function askEarly() {
  asked ??= fetch(`/api/v1/hostrows?limit=${firstSize}`)
    .then((r): Promise<Page> | undefined => (r.ok ? r.json() : undefined))
    .catch(() => undefined)
}

// early takes what was asked for early, once.
async function early(): Promise<Page | undefined> {
  const page = asked
  asked = undefined
  return page
}

const kept = new WeakMap<object, Rows>()

// rowsOf is the one Rows of a stream: screens share it.
export function rowsOf(live: Live | undefined): Rows {
  const key = live ?? rowsOf
  let rows = kept.get(key)
  if (!rows) {
    rows = new Rows(live)
    kept.set(key, rows)
  }
  return rows
}

// useRows gives all hosts, kept as the server tells.
export function useRows(live: Live | undefined): HostRows & { refresh: () => void } {
  const rows = rowsOf(live)
  const state = useSyncExternalStore(rows.subscribe, rows.snapshot)
  return { ...state, refresh: rows.refresh }
}
