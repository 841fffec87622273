import { Spinner, Tab, Tabs, TabTitleText } from '@patternfly/react-core'
import { lazy, type ReactNode, Suspense } from 'react'
import { useSearchParams } from 'react-router'
import { nouns } from '../../api/nouns'
import { NounList } from '../../parts/NounList'
import { Screen } from '../../parts/Screen'

type Page = [key: string, title: string, content: ReactNode]

const Account = lazy(async () => ({ default: (await import('./Account')).Account }))
const Users = lazy(async () => ({ default: (await import('./Users')).Users }))
const Tokens = lazy(async () => ({ default: (await import('./Tokens')).Tokens }))
const Secrets = lazy(async () => ({ default: (await import('./Secrets')).Secrets }))
const Backup = lazy(async () => ({ default: (await import('./Backup')).Backup }))
const TLS = lazy(async () => ({ default: (await import('./TLS')).TLS }))
const About = lazy(async () => ({ default: (await import('./About')).About }))

const pages: Page[] = [
  ['account', 'Account', <Account key="account" />],
  ['users', 'Users', <Users key="users" />],
  ['tokens', 'Tokens', <Tokens key="tokens" />],
  ['secrets', 'Secrets', <Secrets key="secrets" />],
  ...Object.values(nouns).flatMap((d): Page[] => (d.tab ? [[d.many, d.tab, <NounList key={d.many} d={d} />]] : [])),
  ['backup', 'Backup', <Backup key="backup" />],
  ['tls', 'TLS', <TLS key="tls" />],
  ['about', 'About', <About key="about" />],
]

// Settings are pages of their own under one heading; ?tab= says which is shown.
export function Settings() {
  const [params, setParams] = useSearchParams()
  const asked = params.get('tab')
  const shown = pages.some(([key]) => key === asked) ? asked : 'account'
  return (
    <Screen title="Settings">
      <Tabs
        activeKey={shown ?? ''}
        onSelect={(_, key) => setParams({ tab: String(key) })}
        aria-label="Settings"
        isOverflowHorizontal={false}
      >
        {pages.map(([key, title, content]) => (
          <Tab key={key} eventKey={key} title={<TabTitleText>{title}</TabTitleText>}>
            {key === shown && (
              <div style={{ paddingBlockStart: '1rem' }}>
                <Suspense fallback={<Spinner aria-label="Loading" />}>{content}</Suspense>
              </div>
            )}
          </Tab>
        ))}
      </Tabs>
    </Screen>
  )
}
