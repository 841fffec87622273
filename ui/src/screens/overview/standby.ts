import type { Schemas } from '../../api/client'
import { bytesOf } from '../../parts/bytes'

// standbyText says how a standby follows the primary. Without pg_read_all_stats nobody knows its state and its lag.
export function standbyText(s: Schemas['DatabaseStandby']): string {
  const name = [s.name, s.address].filter(Boolean).join(' ')
  if (!s.state) return `${name}: not known`
  const lag = s.lagBytes === 0 ? 'no lag' : `${bytesOf(s.lagBytes)} behind`
  const late = s.lagSeconds >= 0.001 ? `, ${s.lagSeconds.toFixed(3)} s` : ''
  return `${name}: ${[s.state, s.sync].filter(Boolean).join(', ')}, ${lag}${late}`
}
