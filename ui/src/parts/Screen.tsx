import { Content, PageSection, Title } from '@patternfly/react-core'
import { type ReactNode, useEffect } from 'react'

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
  return (
    <PageSection>
      <div
        style={{
          display: 'flex',
          justifyContent: 'space-between',
          gap: '1rem',
          flexWrap: 'wrap',
          marginBlockEnd: '1rem',
        }}
      >
        <div>
          <Title headingLevel="h1">{title}</Title>
          {about && <Content component="p">{about}</Content>}
        </div>
        {actions}
      </div>
      {children}
    </PageSection>
  )
}
