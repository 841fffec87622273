import { FocusTrap, Spinner } from '@patternfly/react-core'
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, Suspense, useEffect, useState } from 'react'
import { createPortal } from 'react-dom'
import { Route, Routes, useLocation } from 'react-router'
import { Live } from '../api/live'
import { LiveContext } from '../api/useLive'
import { Failure, Nothing } from '../parts/Failure'
import { Screen } from '../parts/Screen'
import { Frame } from './Frame'
import { LoggedIn, Login } from './Login'
import { useLogin } from './login'
import { places } from './places'
import { comesBack } from './tabs'

// Over hides the page and whatever dialog is open on it, and has the keyboard to itself.
function Over({ children }: { children: ReactNode }) {
  useEffect(() => {
    document.body.classList.add('login-ended')
    // A dialog that is open hides all that is beside it from screen readers, this too.
    const over = document.querySelector('.login-over')
    const show = () => over?.removeAttribute('aria-hidden')
    show()
    const watch = new MutationObserver(show)
    if (over) watch.observe(over, { attributeFilter: ['aria-hidden'] })
    return () => {
      watch.disconnect()
      document.body.classList.remove('login-ended')
    }
  }, [])
  return createPortal(
    <FocusTrap active className="login-over" tabIndex={-1} focusTrapOptions={{ fallbackFocus: '.login-over' }}>
      {children}
    </FocusTrap>,
    document.body,
  )
}

export function App() {
  const { at, why, entered, again, leave, notLeft, who } = useLogin()
  const isIn = at === 'in'
  const queries = useQueryClient()
  const { pathname } = useLocation()
  const [live, setLive] = useState<Live>()
  useEffect(() => {
    if (!isIn) return
    const l = new Live(queries)
    l.start()
    setLive(l)
    return () => l.end()
  }, [isIn, queries])
  if (at === 'unknown') return <Spinner aria-label="Loading" />
  // Behind a login that has ended the page stays as it is, with all that was typed, for whoever had it.
  const isEnded = at === 'ended' && who !== ''
  if (!isIn && !isEnded) return <Login at={at} why={why} entered={entered} again={again} />
  if (isIn && pathname === comesBack) return <LoggedIn />
  return (
    <LiveContext value={live} key={who}>
      {isEnded && (
        <Over>
          <Login at={at} why={why} entered={entered} again={again} />
        </Over>
      )}
      <Frame leave={() => void leave()}>
        {notLeft !== undefined && (
          <div role="alert" aria-label="Not logged out">
            <Failure error={notLeft} again={() => void leave()} />
            <p>You are still logged in.</p>
          </div>
        )}
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
                <Nothing title="There is no such page">The address may belong to another version.</Nothing>
              </Screen>
            }
          />
        </Routes>
      </Frame>
    </LiveContext>
  )
}
