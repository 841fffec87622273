import { createContext, useContext, useEffect, useState } from 'react'
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
