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
export type Image = Schemas['Image']
export type Artefact = Schemas['Artefact']
export type Job = Schemas['Job']
export type CatalogueEntry = Schemas['Entry']
export type Profile = Known<'Profile', 'name'>
export type Layer = Schemas['Layer']
export type Secret = Known<'Secret', 'name'>
export type AcceptRule = Known<'AcceptRule', 'name'>
export type Golden = Known<'Golden', 'name'>
export type Impact = Schemas['Impact']
export type Finding = Schemas['Finding']
export type User = Known<'User', 'name' | 'grants'>
export type Token = Known<'Token', 'name' | 'grants'>
export type Pool = Known<'Pool', 'name'>
export type Cluster = Known<'Cluster', 'name'>
export type Target = Known<'JoinTarget', 'name'>

// Nouns are the lists of the API by their names.
export interface Nouns {
  hosts: Host
  machines: Machine
  operations: Operation
  events: Event
  issues: Issue
  sessions: Session
  images: Image
  artefacts: Artefact
  catalogue: CatalogueEntry
  profiles: Profile
  layers: Layer
  secrets: Secret
  acceptrules: AcceptRule
  goldens: Golden
  users: User
  tokens: Token
  pools: Pool
  clusters: Cluster
  targets: Target
  racks: Schemas['Rack']
  subnets: Schemas['Subnet']
  reservations: Schemas['Reservation']
  leases: Schemas['Lease']
  addresses: Schemas['Address']
  classes: Schemas['Class']
  views: Schemas['KeptView'] & { name: string }
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
    readonly findings: Schemas['Finding'][] = [],
  ) {
    super(detail)
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
    const p = (await r.json()) as Partial<Schemas['Problem']>
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
