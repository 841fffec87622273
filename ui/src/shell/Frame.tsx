import {
  Button,
  Label,
  Masthead,
  MastheadBrand,
  MastheadContent,
  MastheadLogo,
  MastheadMain,
  MastheadToggle,
  Nav,
  NavItem,
  NavList,
  Page,
  PageSidebar,
  PageSidebarBody,
  PageToggleButton,
  SkipToContent,
} from '@patternfly/react-core'
import { BarsIcon } from '@patternfly/react-icons'
import { type ReactNode, useState } from 'react'
import { Link, useLocation } from 'react-router'
import { useLine } from './App'

export const places = [
  ['/', 'Overview'],
  ['/hosts', 'Hosts'],
  ['/machines', 'Machines'],
  ['/operations', 'Operations'],
  ['/issues', 'Issues'],
] as const

export function Frame({ leave, children }: { leave: () => void; children: ReactNode }) {
  const { pathname } = useLocation()
  const [isDark, setDark] = useState(() => document.documentElement.classList.contains('pf-v6-theme-dark'))
  const turn = () => {
    document.documentElement.classList.toggle('pf-v6-theme-dark', !isDark)
    localStorage.setItem('slipway-theme', isDark ? 'light' : 'dark')
    setDark(!isDark)
  }
  return (
    <Page
      isManagedSidebar
      mainContainerId="main"
      skipToContent={<SkipToContent href="#main">Skip to content</SkipToContent>}
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
          <MastheadContent style={{ marginInlineStart: 'auto', gap: '0.75rem' }}>
            <LineLabel />
            <Button variant="plain" onClick={turn} aria-label={isDark ? 'Light colours' : 'Dark colours'}>
              {isDark ? '☀' : '☾'}
            </Button>
            <Button variant="secondary" onClick={leave}>
              Log out
            </Button>
          </MastheadContent>
        </Masthead>
      }
      sidebar={
        <PageSidebar>
          <PageSidebarBody>
            <Nav aria-label="Screens">
              <NavList>
                {places.map(([path, name]) => (
                  <NavItem key={path} isActive={path === '/' ? pathname === '/' : pathname.startsWith(path)}>
                    <Link to={path}>{name}</Link>
                  </NavItem>
                ))}
              </NavList>
            </Nav>
          </PageSidebarBody>
        </PageSidebar>
      }
    >
      {children}
    </Page>
  )
}

function LineLabel() {
  const line = useLine()
  const colour = line === 'live' ? 'green' : line === 'polling' ? 'orange' : 'grey'
  const words = line === 'polling' ? 'no event stream: asks every 5 s' : line
  return (
    <Label color={colour} isCompact aria-live="polite">
      {words}
    </Label>
  )
}
