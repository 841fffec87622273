import {
  Button,
  Masthead,
  MastheadBrand,
  MastheadContent,
  MastheadLogo,
  MastheadMain,
  MastheadToggle,
  Nav,
  NavGroup,
  NavItem,
  NavList,
  Page,
  PageSidebar,
  PageSidebarBody,
  PageToggleButton,
  SkipToContent,
} from '@patternfly/react-core'
import { BarsIcon } from '@patternfly/react-icons'
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from 'react'
import { Link, useLocation, useNavigate } from 'react-router'
import { Bell, BellList, Toasts, useSeen } from './Bell'
import { Boundary } from './Boundary'
import { doingOf, isTyping } from './keys'
import { LineStatus } from './LineStatus'
import { Lost } from './Lost'
import { linkOf, type Place, places } from './places'
import { Search } from './Search'
import { Tray } from './Tray'
import { Updated } from './Updated'
import { UserMenu } from './UserMenu'

const Help = lazy(async () => ({ default: (await import('./Help')).Help }))

// gFor is how long a g waits for its letter.
const gFor = 1_500

export function Frame({ leave, children }: { leave: () => void; children: ReactNode }) {
  const { pathname } = useLocation()
  const search = useRef<HTMLInputElement>(null)
  const [isHelp, setHelp] = useState(false)
  const [isBell, setBell] = useState(false)
  const { seen, see } = useSeen()
  useKeys(
    () => search.current?.focus(),
    () => setHelp(true),
  )
  const turnBell = () => {
    if (isBell) see()
    setBell(!isBell)
  }
  return (
    <Page
      isManagedSidebar
      mainContainerId="main"
      mainAriaLabel="Screen"
      skipToContent={<SkipToContent href="#main">Skip to content</SkipToContent>}
      isNotificationDrawerExpanded={isBell}
      notificationDrawer={<BellList seen={seen} close={turnBell} />}
      banner={
        <>
          <Lost />
          <Updated />
        </>
      }
      masthead={
        <Masthead>
          <MastheadMain>
            <MastheadToggle>
              <PageToggleButton aria-label="Navigation" variant="plain">
                <BarsIcon />
              </PageToggleButton>
            </MastheadToggle>
            <MastheadBrand>
              <MastheadLogo component={(props) => <Link {...props} to="/" />}>Slipway</MastheadLogo>
            </MastheadBrand>
          </MastheadMain>
          <MastheadContent className="masthead-right">
            <Search input={search} />
            <LineStatus />
            <Bell seen={seen} isOpen={isBell} turn={turnBell} />
            <Colours />
            <UserMenu leave={leave} help={() => setHelp(true)} />
          </MastheadContent>
        </Masthead>
      }
      sidebar={
        <PageSidebar>
          <PageSidebarBody>
            <Nav aria-label="Screens">
              {groups().map(([group, items]) =>
                group === '' ? (
                  <NavList key={items[0]?.path}>{items.map((p) => link(p, pathname))}</NavList>
                ) : (
                  <NavGroup key={group} title={group}>
                    {items.map((p) => link(p, pathname))}
                  </NavGroup>
                ),
              )}
            </Nav>
          </PageSidebarBody>
        </PageSidebar>
      }
    >
      <Boundary at={pathname}>{children}</Boundary>
      <Tray />
      <Toasts />
      <Suspense>{isHelp && <Help close={() => setHelp(false)} />}</Suspense>
    </Page>
  )
}

function link(p: Place, pathname: string) {
  const to = linkOf(p)
  const isHere = to === '/' ? pathname === '/' : pathname === to || pathname.startsWith(`${to}/`)
  return (
    <NavItem key={p.path} isActive={isHere}>
      <Link to={to}>{p.name}</Link>
    </NavItem>
  )
}

// groups puts screens under their group's name.
function groups(): [string, Place[]][] {
  const all: [string, Place[]][] = []
  for (const p of places.filter((p) => p.name !== '')) {
    const group = p.group ?? ''
    const same = group !== '' && all.find(([name]) => name === group)
    if (same) same[1].push(p)
    else all.push([group, [p]])
  }
  return all
}

// useKeys hears the keys that work on every screen.
function useKeys(search: () => void, help: () => void) {
  const go = useNavigate()
  const before = useRef({ key: '', at: 0 })
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || isTyping(e.target)) return
      const isLate = e.timeStamp - before.current.at > gFor
      const doing = doingOf(e.key, isLate ? '' : before.current.key, places)
      before.current = { key: e.key, at: e.timeStamp }
      if (doing === undefined) return
      e.preventDefault()
      if (doing === 'search') search()
      else if (doing === 'help') help()
      else if (doing !== 'wait') go(doing.go)
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
}

function Colours() {
  const [isDark, setDark] = useState(() => document.documentElement.classList.contains('pf-v6-theme-dark'))
  const turn = () => {
    document.documentElement.classList.toggle('pf-v6-theme-dark', !isDark)
    localStorage.setItem('slipway-theme', isDark ? 'light' : 'dark')
    setDark(!isDark)
  }
  return (
    <Button variant="plain" onClick={turn} aria-label={isDark ? 'Light colours' : 'Dark colours'}>
      {isDark ? '☀' : '☾'}
    </Button>
  )
}
