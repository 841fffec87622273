import { Spinner } from '@patternfly/react-core'
import { useQueryClient } from '@tanstack/react-query'
import { createContext, Suspense, useContext, useEffect, useState } from 'react'
import { Route, Routes } from 'react-router'
import { type Line, Live } from '../api/live'
import { Nothing } from '../parts/Failure'
import { Screen } from '../parts/Screen'
import { Frame } from './Frame'
import { Login } from './Login'
import { useLogin } from './login'
import { places } from './places'

const LiveContext = createContext<Live | undefined>(undefined)
export const useLive = () => useContext(LiveContext)

export function useLine(): Line {
  const live = useLive()
  const [line, setLine] = useState<Line>(live?.line ?? 'connecting')
  useEffect(() => live?.onLine(setLine), [live])
  return line
}

export function App() {
  const { at, entered, again, leave } = useLogin()
  const isIn = at === 'in'
  const queries = useQueryClient()
  const [live, setLive] = useState<Live>()
  useEffect(() => {
    if (!isIn) return
    const l = new Live(queries)
    l.start()
    setLive(l)
    return () => l.end()
  }, [isIn, queries])
  if (at === 'unknown') return <Spinner aria-label="Loading" />
  if (!isIn) return <Login at={at} entered={entered} again={again} />
  return (
    <LiveContext value={live}>
      <Frame leave={() => void leave()}>
        <Routes>
          {places.map((p) => (
            <Route
              key={p.path}
              path={p.path}
              element={
                <Suspense fallback={<Spinner aria-label="Loading" />}>
                  <p.screen />
                </Suspense>
              }
            />
          ))}
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
