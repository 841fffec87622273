import { Content, PageSection, Title } from '@patternfly/react-core'
import { type ReactNode, useEffect } from 'react'
import { useLocation } from 'react-router'

// focusedAt is where the heading was focused last: on another screen it is again, so that a screen reader says where one
// is and Tab begins there.
let focusedAt = location.pathname

export function Screen({
  title,
  about,
  actions,
  children,
}: {
  title: string
  about?: ReactNode
  actions?: ReactNode
  children: ReactNode
}) {
  useEffect(() => {
    document.title = `${title} · Slipway`
  }, [title])
  const { pathname } = useLocation()
  useEffect(() => {
    if (pathname === focusedAt) return
    focusedAt = pathname
    document.querySelector<HTMLElement>('#main h1')?.focus()
  }, [pathname])
  return (
    <PageSection>
      <div className="screen-head">
        <div>
          <Title headingLevel="h1" tabIndex={-1}>
            {title}
          </Title>
          {about && <Content component="p">{about}</Content>}
        </div>
        {actions}
      </div>
      {children}
    </PageSection>
  )
}
