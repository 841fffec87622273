import { Spinner, Tab, Tabs, TabTitleText } from '@patternfly/react-core'
import { type ComponentType, type LazyExoticComponent, lazy, Suspense } from 'react'
import { useSearchParams } from 'react-router'
import { Screen } from '../../parts/Screen'

interface Page {
  key: string
  title: string
  component: string // what the file exports
  load: LazyExoticComponent<ComponentType>
}

// Every file beside this one may be a tab; those that are not there are not listed.
const files = import.meta.glob<Record<string, ComponentType>>('./*.tsx')

const titles: [key: string, title: string, component: string][] = [
  ['account', 'Account', 'Account'],
  ['users', 'Users', 'Users'],
  ['tokens', 'Tokens', 'Tokens'],
  ['secrets', 'Secrets', 'Secrets'],
  ['acceptrules', 'Accept rules', 'AcceptRules'],
  ['goldens', 'Golden hardware', 'Goldens'],
  ['backup', 'Backup', 'Backup'],
  ['tls', 'TLS', 'TLS'],
  ['about', 'About', 'About'],
]

const pages: Page[] = titles.flatMap(([key, title, component]) => {
  const load = files[`./${component}.tsx`]
  if (!load) return []
  return [{ key, title, component, load: lazy(async () => ({ default: (await load())[component] as ComponentType })) }]
})

// Settings are pages of their own under one heading; ?tab= says which is shown.
export function Settings() {
  const [params, setParams] = useSearchParams()
  const asked = params.get('tab')
  const shown = pages.find((p) => p.key === asked) ?? pages[0]
  return (
    <Screen title="Settings">
      <Tabs
        activeKey={shown?.key ?? ''}
        onSelect={(_, key) => setParams({ tab: String(key) })}
        aria-label="Settings"
        isOverflowHorizontal={false}
      >
        {pages.map((p) => (
          <Tab key={p.key} eventKey={p.key} title={<TabTitleText>{p.title}</TabTitleText>}>
            {p.key === shown?.key && (
              <div style={{ paddingBlockStart: '1rem' }}>
                <Suspense fallback={<Spinner aria-label="Loading" />}>
                  <p.load />
                </Suspense>
              </div>
            )}
          </Tab>
        ))}
      </Tabs>
    </Screen>
  )
}
