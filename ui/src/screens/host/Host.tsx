import {
  CodeBlock,
  CodeBlockCode,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Tab,
  TabContentBody,
  Tabs,
  TabTitleText,
} from '@patternfly/react-core'
import type { ReactNode } from 'react'
import { useParams, useSearchParams } from 'react-router'
import type { Host as HostRow, Schemas } from '../../api/client'
import { useList, useOne } from '../../api/queries'
import { Loaded, Nothing } from '../../parts/Failure'
import { Screen } from '../../parts/Screen'
import { State } from '../../parts/State'
import { When } from '../../parts/When'
import { Actions } from './Actions'
import { Timeline } from './Timeline'

export function Host() {
  const { name = '' } = useParams()
  const host = useOne('hosts', name)
  const [params, setParams] = useSearchParams()
  const tab = params.get('tab') ?? 'timeline'
  return (
    <Screen
      title={name}
      about={host.data && <Summary host={host.data} />}
      actions={host.data && <Actions host={host.data} />}
    >
      <Loaded query={host}>
        {(h) => (
          <Tabs
            activeKey={tab}
            onSelect={(_, k) => setParams({ tab: String(k) })}
            aria-label="Parts of the host"
            mountOnEnter
            unmountOnExit
          >
            <Tab eventKey="timeline" title={<TabTitleText>Timeline</TabTitleText>}>
              <TabContentBody hasPadding>
                <Timeline host={h} />
              </TabContentBody>
            </Tab>
            <Tab eventKey="hardware" title={<TabTitleText>Hardware</TabTitleText>}>
              <TabContentBody hasPadding>
                <Hardware host={h} />
              </TabContentBody>
            </Tab>
            <Tab eventKey="boot" title={<TabTitleText>Boot preview</TabTitleText>}>
              <TabContentBody hasPadding>
                <BootPreview name={h.name} />
              </TabContentBody>
            </Tab>
            <Tab eventKey="sessions" title={<TabTitleText>Boots</TabTitleText>}>
              <TabContentBody hasPadding>
                <Sessions name={h.name} />
              </TabContentBody>
            </Tab>
            <Tab eventKey="json" title={<TabTitleText>JSON</TabTitleText>}>
              <TabContentBody hasPadding>
                <CodeBlock>
                  <CodeBlockCode>{JSON.stringify(h, null, 2)}</CodeBlockCode>
                </CodeBlock>
              </TabContentBody>
            </Tab>
          </Tabs>
        )}
      </Loaded>
    </Screen>
  )
}

function Summary({ host: h }: { host: HostRow }) {
  return (
    <>
      <State state={h.state} /> {h.stateReason} · last seen <When at={h.lastSeenAt} />
      {h.machine && ` · machine ${h.machine}`}
      {h.isProtected && ' · protected'}
      {h.inMaintenance && ' · in maintenance'}
    </>
  )
}

function Facts({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <DescriptionList isHorizontal isCompact>
      {rows
        .filter(([, v]) => v !== undefined && v !== '' && v !== 0)
        .map(([term, v]) => (
          <DescriptionListGroup key={term}>
            <DescriptionListTerm>{term}</DescriptionListTerm>
            <DescriptionListDescription>{v}</DescriptionListDescription>
          </DescriptionListGroup>
        ))}
    </DescriptionList>
  )
}

function Hardware({ host: h }: { host: HostRow }) {
  return (
    <Facts
      rows={[
        ['Manufacturer', h.manufacturer],
        ['Product', h.product],
        ['Serial', h.serial],
        ['UUID', h.uuid],
        ['Architecture', h.arch],
        ['Firmware', h.firmware],
        ['Memory', h.memoryMiB && `${Math.round(h.memoryMiB / 1024)} GiB`],
        [
          'Place',
          [h.place.site, h.place.row, h.place.rack, h.place.unit && `U${h.place.unit}`].filter(Boolean).join(' / '),
        ],
        ['Network', (h.nics ?? []).map((n) => `${n.mac} ${n.vendor ?? ''}${n.isBoot ? ' (boots)' : ''}`).join(', ')],
        [
          'Labels',
          Object.entries(h.labels ?? {})
            .map(([k, v]) => `${k}=${v}`)
            .join(', '),
        ],
        ...Object.entries(h.facts ?? {}).map(([k, v]): [string, string] => [k, v]),
      ]}
    />
  )
}

function BootPreview({ name }: { name: string }) {
  const e = useOne<'hosts', Schemas['Explanation']>('hosts', name, '/explain')
  return (
    <Loaded query={e}>
      {(x) => (
        <>
          <p>
            It would boot <strong>{x.boot}</strong> now: {x.reason}
          </p>
          {x.hint && <p>{x.hint}</p>}
          <CodeBlock>
            <CodeBlockCode>{x.script}</CodeBlockCode>
          </CodeBlock>
        </>
      )}
    </Loaded>
  )
}

function Sessions({ name }: { name: string }) {
  const sessions = useList('sessions', { host: name })
  return (
    <Loaded query={sessions}>
      {(all) =>
        all.length === 0 ? (
          <Nothing title="It has not booted from here yet" />
        ) : (
          <ul className="timeline">
            {all.map((s) => (
              <li key={s.id}>
                <When at={s.startedAt} />
                <span>{s.boot}</span>
                <span>
                  {s.reason} {s.outcome && <strong>{s.outcome}</strong>}
                </span>
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  )
}
