import { Button, Label, Tab, TabContentBody, Tabs, TabTitleText } from '@patternfly/react-core'
import { type ReactNode, useRef } from 'react'
import { Link, useParams, useSearchParams } from 'react-router'
import { type Host as HostRow, Problem } from '../../api/client'
import { useOne } from '../../api/queries'
import { Loaded, Nothing } from '../../parts/Failure'
import { Screen } from '../../parts/Screen'
import { State } from '../../parts/State'
import { When } from '../../parts/When'
import { Actions } from './Actions'
import { HostAudit } from './Audit'
import { Address, BMC, useController } from './BMC'
import { BootPreview } from './BootPreview'
import { ConfigPreview } from './ConfigPreview'
import { Console } from './Console'
import { Hardware } from './Hardware'
import { Network } from './Network'
import { Storage } from './Storage'
import { Timeline } from './Timeline'
import { Yaml } from './Yaml'
import './host.css'

const tabs: [key: string, title: string, body: (h: HostRow) => ReactNode][] = [
  ['timeline', 'Timeline', (h) => <Timeline host={h} />],
  ['hardware', 'Hardware', (h) => <Hardware host={h} />],
  ['network', 'Network', (h) => <Network host={h} />],
  ['storage', 'Storage', (h) => <Storage host={h} />],
  ['config', 'Config preview', (h) => <ConfigPreview host={h} />],
  ['boot', 'Boot preview', (h) => <BootPreview host={h} />],
  ['console', 'Console', (h) => <Console host={h} />],
  ['bmc', 'BMC', (h) => <BMC host={h} />],
  ['yaml', 'YAML', (h) => <Yaml host={h} />],
  ['audit', 'Audit', (h) => <HostAudit host={h} />],
]

export function Host() {
  const { name = '' } = useParams()
  const host = useOne('hosts', name)
  const last = useRef<HostRow>(undefined)
  if (host.data?.name === name) last.current = host.data
  const [params, setParams] = useSearchParams()
  const tab = tabs.find(([k]) => k === params.get('tab'))?.[0] ?? 'timeline'
  const isGone = host.error instanceof Problem && host.error.status === 404
  if (isGone) return <Gone name={name} />
  return (
    <Screen
      title={name}
      about={host.data && <Summary host={host.data} />}
      actions={host.data && <Actions host={host.data} />}
    >
      <Loaded query={host}>
        {(h) => (
          <div className="host-tabs">
            <Tabs
              activeKey={tab}
              onSelect={(_, k) => setParams({ tab: String(k) })}
              aria-label="Parts of the host"
              mountOnEnter
              unmountOnExit
            >
              {tabs.map(([key, title, body]) => (
                <Tab key={key} eventKey={key} title={<TabTitleText>{title}</TabTitleText>}>
                  <TabContentBody hasPadding className="host-part">
                    {tab === key && body(h)}
                  </TabContentBody>
                </Tab>
              ))}
            </Tabs>
          </div>
        )}
      </Loaded>
    </Screen>
  )
}

// Gone is for a host that was forgotten, also while this page was open.
function Gone({ name }: { name: string }) {
  return (
    <Screen title={name}>
      <Nothing title="There is no such host">
        <p>
          Somebody deleted or renamed it, or Slipway deleted it after a long silence. If the machine boots again, it is
          a new host.
        </p>
        <p>
          <Button variant="primary" component={(p) => <Link {...p} to={`/hosts?q=${encodeURIComponent(name)}`} />}>
            All hosts
          </Button>
        </p>
      </Nothing>
    </Screen>
  )
}

// Summary is the header: what it is, who has it, and how it stands.
function Summary({ host: h }: { host: HostRow }) {
  const bmc = useController(h.name).data
  const place = [h.place.site, h.place.row, h.place.rack, h.place.unit && `U${h.place.unit}`]
    .filter(Boolean)
    .join(' / ')
  const flags: [string, boolean | undefined][] = [
    ['protected', h.isProtected],
    ['in maintenance', h.inMaintenance],
    ['cordoned', h.isCordoned],
    ['adopted', h.isAdopted],
    ['keeps its disks', h.isRetained],
    ['armed for an installer', h.isArmed],
    ['to be wiped', h.isDirty && !h.machine],
  ]
  return (
    <span className="host-summary">
      <span>
        <State state={h.state} /> {h.stateReason}
      </span>
      <span>
        power {bmc?.power || 'unknown'}
        {bmc && (
          <>
            {' '}
            · controller: {bmc.driver} <Address of={bmc} />
            {!bmc.isReachable && bmc.checkedAt && (
              <Label isCompact color="orange">
                does not answer
              </Label>
            )}
          </>
        )}
      </span>
      {h.machine && (
        <span>
          machine <Link to={`/machines/${encodeURIComponent(h.machine)}`}>{h.machine}</Link>
        </span>
      )}
      {h.profile && (
        <span>
          profile <Link to={`/profiles/${encodeURIComponent(h.profile)}`}>{h.profile}</Link>
          {h.profileRevision ? `, revision ${h.profileRevision}` : ''}
        </span>
      )}
      {place && <span>{place}</span>}
      {[h.manufacturer, h.product, h.serial].some(Boolean) && (
        <span>{[h.manufacturer, h.product, h.serial && `S/N ${h.serial}`].filter(Boolean).join(' ')}</span>
      )}
      <span>
        last seen <When at={h.lastSeenAt} />
      </span>
      {flags
        .filter(([, on]) => on)
        .map(([word]) => (
          <Label key={word} isCompact color="purple">
            {word}
          </Label>
        ))}
    </span>
  )
}
