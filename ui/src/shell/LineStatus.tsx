import { Label } from '@patternfly/react-core'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Problem } from '../api/client'
import { useLine } from '../api/useLive'

// ageText says how old something is, in as few letters as say it.
export function ageText(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000))
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min`
  return `${Math.floor(s / 3600)} h`
}

// LineStatus says whether what is shown follows the server, and how old it is where it does not.
export function LineStatus() {
  const line = useLine()
  const queries = useQueryClient()
  const [, tick] = useState(0)
  useEffect(() => {
    if (line === 'live') return
    const timer = setInterval(() => tick((n) => n + 1), 1_000)
    return () => clearInterval(timer)
  }, [line])
  if (line !== 'polling')
    return (
      <Label color={line === 'live' ? 'green' : 'grey'} isCompact aria-live="polite">
        {line}
      </Label>
    )
  const shown = queries.getQueryCache().findAll({ type: 'active' })
  const isDown = shown.some((q) => q.state.error instanceof Problem && q.state.error.status === 0)
  const oldest = Math.min(Date.now(), ...shown.map((q) => q.state.dataUpdatedAt).filter((t) => t > 0))
  return (
    <Label color={isDown ? 'red' : 'orange'} isCompact aria-live="polite">
      {isDown ? 'no event stream, and no answer' : 'no event stream: asks every 5 s'}
      <span aria-hidden>{`, shown is ${ageText(Date.now() - oldest)} old`}</span>
    </Label>
  )
}
