import createClient from 'openapi-fetch'
import type { components, paths } from './schema'

export type Schemas = components['schemas']
// Answer is what the description of the API says that a GET of a path gives.
type Answer<P> = P extends keyof paths
  ? paths[P] extends { get: { responses: { 200: { content: { 'application/json': infer T } } } } }
    ? T
    : never
  : never

// Listed are the lists of the API by their names.
type Listed = {
  [P in keyof paths]: P extends `/api/v1/${infer N}`
    ? N extends `${string}/${string}`
      ? never
      : Answer<P> extends { items: unknown[] }
        ? N
        : never
    : never
}[keyof paths]

// Given are the fields that the server always gives of what is in a list, though a request may leave them out. Of the other
// lists that is the name.
interface Given {
  hosts: 'id' | 'name' | 'state' | 'place'
  machines: 'name' | 'uid' | 'phase'
  users: 'name' | 'grants'
  racks: 'name' | 'height'
  subnets: 'name' | 'mode' | 'leaseFor' | 'bootLeaseFor' | 'unknown'
  reservations: 'address' | 'subnet'
  audit: never // an entry need not be about a thing with a name
}
type GivenOf<N> = N extends keyof Given ? Given[N] : 'name'

// Nouns are what is in those lists.
export type Nouns = {
  [N in Listed]: Answer<`/api/v1/${N}`> extends { items: (infer T)[] }
    ? T & { [F in GivenOf<N> & keyof T]-?: NonNullable<T[F]> }
    : never
}

// Part is what is below one of them, such as /uses of a secret; '' is the thing itself.
export type Part<N extends keyof Nouns, P extends string> = P extends ''
  ? Nouns[N]
  : Answer<`/api/v1/${N}/{${'name' | 'host' | 'id'}}${P}`>

export type Host = Nouns['hosts']
export type Machine = Nouns['machines']
export type Operation = Nouns['operations']
export type Event = Nouns['events']
export type Issue = Nouns['issues']
export type Image = Nouns['images']
export type Artefact = Nouns['artefacts']
export type Job = Nouns['imports']
export type CatalogueEntry = Nouns['catalogue']
export type Profile = Nouns['profiles']
export type Layer = Nouns['layers']
export type Secret = Nouns['secrets']
export type User = Nouns['users']
export type Token = Nouns['tokens']
export type Pool = Nouns['pools']
export type Cluster = Nouns['clusters']
export type Target = Nouns['targets']
export type Impact = Schemas['Impact']
export type Finding = Schemas['Finding']

// Problem is what the server says when it refuses: what is wrong, what to do next, and the request's name in its log.
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    detail: string,
    readonly hint = '',
    readonly requestID = '',
    readonly fields: { location?: string; message: string }[] = [],
    readonly findings: Schemas['Finding'][] = [],
  ) {
    super(detail)
  }

  // isOutage says whether the server as a whole cannot answer, such as one whose database is away.
  get isOutage() {
    return this.status === 0 || this.status >= 502
  }
}

// headers are what every request brings. Who asks is in a cookie, which no script can read.
export function headers(more: Record<string, string> = {}): Record<string, string> {
  return more
}

const outs = new Set<() => void>()

// onOut calls fn when the server says that nobody is logged in any more.
export function onOut(fn: () => void): () => void {
  outs.add(fn)
  return () => void outs.delete(fn)
}

// out is to be called with a 401 that came another way than through api.
export function out() {
  for (const fn of outs) fn()
}

export const api = createClient<paths>({ baseUrl: '' })
api.use({
  onRequest({ request }) {
    for (const [name, value] of Object.entries(headers())) request.headers.set(name, value)
    return request
  },
  async onResponse({ response }) {
    if (response.status === 401 && !response.url.endsWith('/api/v1/logins')) out()
    if (!response.ok) throw await problemOf(response)
  },
  onError({ error }) {
    return new Problem(0, 'No answer', 'The server does not answer.', `Is it running? ${String(error)}`)
  },
})

export async function problemOf(r: Response): Promise<Problem> {
  try {
    const p: Partial<Schemas['Problem']> = await r.json()
    return new Problem(
      r.status,
      p.title ?? r.statusText,
      p.detail ?? r.statusText,
      p.hint,
      p.requestID,
      p.errors ?? [],
      p.findings ?? [],
    )
  } catch {
    return new Problem(r.status, r.statusText || 'Error', `The server answered ${r.status}.`)
  }
}

// must gives the body of an answer; the middleware has thrown whatever is none.
export async function must<T>(call: Promise<{ data?: T }>): Promise<T> {
  const { data } = await call
  return data as T
}

// isObject says whether a value that the API does not describe has fields.
export const isObject = (v: unknown): v is Record<string, unknown> =>
  typeof v === 'object' && v !== null && !Array.isArray(v)

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Untyped = (path: string, options: object) => Promise<{ data?: unknown }>

// ask sends a request whose path is put together. T is what the description of the API says of its answer; where the path
// is a constant, api knows that itself.
export async function ask<T>(method: Method, path: string, options: object = {}): Promise<T> {
  return (await must((api[method] as Untyped)(`/api/v1${path}`, options))) as T
}

export type Query = Record<string, string | number | boolean>

// readPage reads one page of a list.
export const readPage = <N extends keyof Nouns>(noun: N, query: Query) =>
  ask<{ items: Nouns[N][]; next?: string }>('GET', `/${noun}`, { params: { query } })
