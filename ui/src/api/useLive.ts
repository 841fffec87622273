import { createContext, useContext, useEffect, useState, useSyncExternalStore } from 'react'
import type { Problem } from './client'
import type { Line, Live } from './live'

// LiveContext has the stream of events that the screens share.
export const LiveContext = createContext<Live | undefined>(undefined)
export const useLive = () => useContext(LiveContext)

// useLine says how the screens hear of changes at the moment.
export function useLine(): Line {
  const live = useLive()
  const [line, setLine] = useState<Line>(live?.line ?? 'connecting')
  useEffect(() => live?.onLine(setLine), [live])
  return line
}

// useLost says why the server does not follow this page at the moment; undefined while it does.
export function useLost(): Problem | undefined {
  const live = useLive()
  return useSyncExternalStore(
    (fn) => live?.onLost(fn) ?? (() => {}),
    () => live?.lost,
  )
}
