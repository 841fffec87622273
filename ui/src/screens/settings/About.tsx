import { ExpandableSection, SearchInput, Title } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, must } from '../../api/client'
import { Command } from '../../parts/Command'
import { Facts } from '../../parts/Facts'
import { Failure, Loaded } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
import { When } from '../../parts/When'

// Licence is a part of the program and under what it may be used, as the build found it.
interface Licence {
  kind: 'Go' | 'npm'
  name: string
  version: string
  licence: string
  text: string
}

// About says what this Slipway is, and what it is made of.
export function About() {
  const about = useQuery({
    queryKey: ['about'],
    queryFn: () => must(api.GET('/api/v1/about')),
  })
  const licences = useQuery({
    queryKey: ['licences'],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const r = await fetch('/licences.json')
      if (!r.ok || !r.headers.get('content-type')?.includes('json'))
        throw new Error('The list of licences is not in this build.')
      const all: Licence[] = await r.json()
      return all
    },
  })
  const [part, setPart] = useState('')
  return (
    <>
      <Title headingLevel="h2" style={{ marginBlockEnd: '0.5rem' }}>
        This server
      </Title>
      <Loaded query={about}>
        {(a) => (
          <Facts
            rows={[
              ['Version', a.version],
              ['Runs on', a.platform],
              ['Built with', a.go],
              ['Since', <When key="s" at={a.startedAt} />],
              ['Its own licence', 'Apache-2.0'],
            ]}
          />
        )}
      </Loaded>
      <Title headingLevel="h2" style={{ marginBlock: '1.5rem 0.5rem' }}>
        Libraries
      </Title>
      {licences.error && <Failure error={licences.error} />}
      {licences.data && (
        <>
          <SearchInput
            aria-label="Search parts"
            placeholder="part of a name or licence"
            value={part}
            onChange={(_, v) => setPart(v)}
            onClear={() => setPart('')}
          />
          <Parts
            all={licences.data.filter((l) => `${l.name} ${l.licence}`.toLowerCase().includes(part.toLowerCase()))}
          />
        </>
      )}
      {licences.error && about.data && (
        <Parts all={about.data.parts.map((p) => ({ ...p, kind: 'Go', licence: 'see its source', text: '' }))} />
      )}
      <Command cli="slipway version" />
    </>
  )
}

function Parts({ all }: { all: Licence[] }) {
  return (
    <>
      <p>{all.length} parts</p>
      <Rows
        label="Parts"
        rows={all}
        keyOf={(l) => `${l.kind} ${l.name} ${l.version}`}
        columns={[
          ['Part', (l) => l.name],
          ['Version', (l) => l.version],
          ['For', (l) => (l.kind === 'Go' ? 'the server and the agent' : 'this page')],
          ['Licence', (l) => (l.text ? <LicenceText licence={l} /> : l.licence), { width: 50 }],
        ]}
      />
    </>
  )
}

// LicenceText keeps texts out of the page until somebody reads them.
function LicenceText({ licence: l }: { licence: Licence }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <ExpandableSection toggleText={l.licence} isExpanded={isOpen} onToggle={(_, on) => setOpen(on)}>
      {isOpen && <pre className="mono">{l.text}</pre>}
    </ExpandableSection>
  )
}
