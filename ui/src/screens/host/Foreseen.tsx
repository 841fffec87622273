import { Alert } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { send } from '../../api/act'
import { isObject } from '../../api/client'
import { type BulkRequest, type BulkResult, foreseen } from '../hosts/verbs'
import type { Verb } from './verbs'

// Foreseen says what a verb will do to a host, in the server's own words: it tries the verb and undoes it, and says why it would refuse.
export function Foreseen({ host, ask }: { host: string; ask: BulkRequest | undefined }) {
  const q = useQuery({
    queryKey: ['hosts', host, '/foreseen', ask],
    enabled: ask !== undefined,
    retry: false,
    gcTime: 0,
    queryFn: () =>
      send<BulkResult>({ method: 'POST', path: '/hosts/bulk?dryRun=true', body: { ...ask, hosts: [host] } }),
  })
  const will = foreseen(q.data?.items ?? [], host)
  const not = q.data?.items?.find((i) => !i.acts)?.reason
  if (not) return <Alert isInline variant="warning" title={`It will be refused: ${not}`} />
  if (will.length === 0) return null
  return (
    <p>
      <strong>{will.join('; ')}.</strong>
    </p>
  )
}

const powers = ['on', 'off', 'shutdown', 'cycle', 'reset'] as const

// requestOf is what a verb asks for, as many hosts are asked; undefined for verbs that are for one host only.
export function requestOf(v: Pick<Verb, 'key' | 'call'>): BulkRequest | undefined {
  const body = isObject(v.call?.body) ? v.call.body : {}
  const [key, action] = v.key.split('-')
  switch (key) {
    case 'accept':
    case 'release':
    case 'confirm':
      return v.key === key ? { verb: key } : undefined
    case 'power':
      return powers.flatMap((p) => (p === action ? [{ verb: 'power' as const, action: p }] : []))[0]
    case 'maintain':
    case 'protect':
    case 'cordon':
    case 'retain':
    case 'adopt':
    case 'locate':
      return typeof body.on === 'boolean' ? { verb: key, on: body.on } : undefined
  }
  return undefined
}
