import { useEffect, useState } from 'react'

const steps: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
]
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

export function ago(at: string, now = Date.now()): string {
  const seconds = Math.round((Date.parse(at) - now) / 1000)
  const [unit, size] = steps.find(([, s]) => Math.abs(seconds) >= s) ?? ['second', 1]
  return relative.format(Math.trunc(seconds / size), unit)
}

// When shows a time as people say it; hovering shows it exactly, in UTC.
export function When({ at, exact }: { at: string | undefined; exact?: boolean }) {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 10_000)
    return () => clearInterval(timer)
  }, [])
  if (!at || at.startsWith('0001')) return <span>never</span>
  return (
    <time dateTime={at} title={`${new Date(at).toISOString().replace('T', ' ').replace('Z', '')} UTC`}>
      {exact ? new Date(at).toLocaleTimeString() : ago(at)}
    </time>
  )
}
