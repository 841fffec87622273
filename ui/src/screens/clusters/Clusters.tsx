import { Tab, Tabs, TabTitleText } from '@patternfly/react-core'
import { useSearchParams } from 'react-router'
import { Screen } from '../../parts/Screen'
import { Attached } from './Attached'
import { Targets } from './Targets'

// Clusters are of two kinds: those whose objects say what is wanted, and those that machines join.
export function Clusters() {
  const [params, setParams] = useSearchParams()
  const tab = params.has('target') || params.get('tab') === 'targets' ? 'targets' : 'attached'
  return (
    <Screen title="Clusters" about="Kubernetes clusters. Slipway works without any.">
      <Tabs activeKey={tab} onSelect={(_, key) => setParams({ tab: String(key) })} aria-label="Clusters">
        <Tab eventKey="attached" title={<TabTitleText>Attached: they hold the custom resources</TabTitleText>}>
          {tab === 'attached' && <Attached />}
        </Tab>
        <Tab eventKey="targets" title={<TabTitleText>Join targets: machines become their nodes</TabTitleText>}>
          {tab === 'targets' && <Targets />}
        </Tab>
      </Tabs>
    </Screen>
  )
}
