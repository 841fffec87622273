import { Card, CardBody, CardTitle, Content, ExpandableSection, Grid, GridItem } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { api, must, type Schemas } from '../../api/client'
import { Loaded } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
import { When } from '../../parts/When'
import { Plot } from './Plot'
import { bytesText, perMinute, perSecond } from './rates'

type Sample = Schemas['Sample']

// Throughput is how busy the server was in the last hour.
export function Throughput() {
  const stats = useQuery({
    queryKey: ['stats'],
    refetchInterval: 15_000,
    staleTime: 0,
    queryFn: () => must(api.GET('/api/v1/stats', { params: { query: { step: 60 } } })),
  })
  return <Loaded query={stats}>{({ samples }) => <Plots samples={samples} />}</Loaded>
}

function Plots({ samples }: { samples: Sample[] }) {
  const [isTable, setTable] = useState(false)
  const drawn = useMemo(() => {
    const of = (pick: (s: Sample) => number) => samples.map(pick)
    return {
      at: samples.map((s) => Date.parse(s.at) / 1000),
      dhcp: [
        { name: 'answers', values: of((s) => s.dhcpReplies) },
        { name: 'dropped', values: of((s) => s.dhcpDrops) },
      ],
      bytes: [
        { name: 'HTTP', values: of((s) => s.httpBytes) },
        { name: 'TFTP', values: of((s) => s.tftpBytes) },
      ],
      boots: [{ name: 'boots', values: of((s) => s.boots * 60) }],
    }
  }, [samples])
  const last = samples.at(-1)
  if (!last) return <Content component="p">The server has just started: the first sample comes within seconds.</Content>
  return (
    <>
      <Grid hasGutter>
        <One title="DHCP" now={`${perSecond(last.dhcpReplies)} answers, ${perSecond(last.dhcpDrops)} dropped (dashed)`}>
          <Plot at={drawn.at} series={drawn.dhcp} unit={perSecond} />
        </One>
        <One title="Files" now={`HTTP ${bytesText(last.httpBytes)}, TFTP ${bytesText(last.tftpBytes)} (dashed)`}>
          <Plot at={drawn.at} series={drawn.bytes} unit={bytesText} />
        </One>
        <One title="Boots" now={perMinute(last.boots * 60)}>
          <Plot at={drawn.at} series={drawn.boots} unit={perMinute} />
        </One>
      </Grid>
      <ExpandableSection toggleText="The same as a table" isExpanded={isTable} onToggle={(_, on) => setTable(on)}>
        {isTable && <SampleTable samples={samples} />}
      </ExpandableSection>
    </>
  )
}

function One({ title, now, children }: { title: string; now: string; children: React.ReactNode }) {
  return (
    <GridItem lg={4}>
      <Card isCompact isFullHeight>
        <CardTitle component="h3">{title}</CardTitle>
        <CardBody>
          <small>now {now}</small>
          {children}
        </CardBody>
      </Card>
    </GridItem>
  )
}

function SampleTable({ samples }: { samples: Sample[] }) {
  return (
    <Rows
      label="Throughput by minute"
      rows={[...samples].reverse()}
      keyOf={(s) => s.at}
      columns={[
        ['Minute until', (s) => <When at={s.at} exact />],
        ['DHCP answers', (s) => perSecond(s.dhcpReplies)],
        ['DHCP dropped', (s) => perSecond(s.dhcpDrops)],
        ['HTTP', (s) => bytesText(s.httpBytes)],
        ['TFTP', (s) => bytesText(s.tftpBytes)],
        ['Boots', (s) => perMinute(s.boots * 60)],
      ]}
    />
  )
}
