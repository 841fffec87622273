import { useQueryClient } from '@tanstack/react-query'
import { createContext, useContext, useEffect, useState } from 'react'
import { Route, Routes } from 'react-router'
import { token } from '../api/client'
import { type Line, Live } from '../api/live'
import { Nothing } from '../parts/Failure'
import { Screen } from '../parts/Screen'
import { Host } from '../screens/host/Host'
import { Hosts } from '../screens/hosts/Hosts'
import { Issues } from '../screens/Issues'
import { Machines } from '../screens/Machines'
import { Operations } from '../screens/Operations'
import { Overview } from '../screens/Overview'
import { Frame } from './Frame'
import { Login } from './Login'

const LiveContext = createContext<Live | undefined>(undefined)
export const useLive = () => useContext(LiveContext)

export function useLine(): Line {
  const live = useLive()
  const [line, setLine] = useState<Line>(live?.line ?? 'connecting')
  useEffect(() => live?.onLine(setLine), [live])
  return line
}

export function App() {
  const [isIn, setIn] = useState(token.get() !== '')
  const queries = useQueryClient()
  const [live, setLive] = useState<Live>()
  useEffect(() => {
    if (!isIn) return
    const l = new Live(queries)
    l.start()
    setLive(l)
    return () => l.end()
  }, [isIn, queries])
  if (!isIn) return <Login entered={() => setIn(true)} />
  const leave = () => {
    token.set('')
    queries.clear()
    setIn(false)
  }
  return (
    <LiveContext value={live}>
      <Frame leave={leave}>
        <Routes>
          <Route path="/" element={<Overview />} />
          <Route path="/hosts" element={<Hosts />} />
          <Route path="/hosts/:name" element={<Host />} />
          <Route path="/machines" element={<Machines />} />
          <Route path="/operations" element={<Operations />} />
          <Route path="/issues" element={<Issues />} />
          <Route
            path="*"
            element={
              <Screen title="Not found">
                <Nothing title="There is no such page">The address may be from another version.</Nothing>
              </Screen>
            }
          />
        </Routes>
      </Frame>
    </LiveContext>
  )
}
