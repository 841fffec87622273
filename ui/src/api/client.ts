import createClient from 'openapi-fetch'
import type { components, paths } from './schema'

export type Schemas = components['schemas']
type Known<K extends keyof Schemas, F extends keyof Schemas[K]> = Schemas[K] & {
  [P in F]-?: NonNullable<Schemas[K][P]>
}
// What the server always says of a thing, though a request may leave it out.
export type Host = Known<'Host', 'id' | 'name' | 'state' | 'place'>
export type Machine = Known<'Machine', 'name' | 'uid' | 'phase'>
export type Operation = Schemas['Operation']
export type Event = Schemas['Event']
export type Issue = Schemas['Issue']
export type Session = Schemas['BootSession']

// Nouns are the lists of the API by their names.
export interface Nouns {
  hosts: Host
  machines: Machine
  operations: Operation
  events: Event
  issues: Issue
  sessions: Session
}

// Problem is what the server says when it refuses: what is wrong, what to do next, and the request's name in its log.
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    detail: string,
    readonly hint = '',
    readonly requestID = '',
    readonly fields: { location?: string; message: string }[] = [],
  ) {
    super(detail)
  }
}

const key = 'slipway-token'

// The token lives as long as the browser's tab.
export const token = {
  get: () => sessionStorage.getItem(key) ?? '',
  set: (value: string) => (value ? sessionStorage.setItem(key, value) : sessionStorage.removeItem(key)),
}

export function headers(more: Record<string, string> = {}): Record<string, string> {
  return token.get() ? { ...more, Authorization: `Bearer ${token.get()}` } : more
}

export const api = createClient<paths>({ baseUrl: '' })
api.use({
  onRequest({ request }) {
    for (const [name, value] of Object.entries(headers())) request.headers.set(name, value)
    return request
  },
  async onResponse({ response }) {
    if (!response.ok) throw await problemOf(response)
  },
  onError({ error }) {
    return new Problem(0, 'No answer', 'The server does not answer.', `Is it running? ${String(error)}`)
  },
})

export async function problemOf(r: Response): Promise<Problem> {
  try {
    const p = (await r.json()) as Partial<Schemas['Problem']>
    return new Problem(r.status, p.title ?? r.statusText, p.detail ?? r.statusText, p.hint, p.requestID, p.errors ?? [])
  } catch {
    return new Problem(r.status, r.statusText || 'Error', `The server answered ${r.status}.`)
  }
}

// must gives the body of an answer; the middleware has thrown whatever is none.
export async function must<T>(call: Promise<{ data?: T }>): Promise<T> {
  const { data } = await call
  return data as T
}
