import { Button, Card, CardBody, CardHeader, CardTitle, Content, Label, type LabelProps } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'react-router'
import { type Call, send } from '../../api/act'
import { api, type Cluster, must, type Schemas } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Act } from '../../parts/Act'
import { Ask, dryOf } from '../../parts/Ask'
import { Command } from '../../parts/Command'
import { flags } from '../../parts/cli'
import { Facts } from '../../parts/Facts'
import { Loaded, Nothing } from '../../parts/Failure'
import { CheckField, TextField, useFields } from '../../parts/Fields'
import { When } from '../../parts/When'
import { wordsOf } from '../../parts/written'
import { AttachForm } from './AttachForm'
import { Results } from './Results'

const looks: Record<string, [LabelProps['color'], string]> = {
  attaching: ['blue', '◔'],
  attached: ['green', '●'],
  standby: ['grey', '○'],
  unreachable: ['orange', '◒'],
  failed: ['red', '✕'],
}

export function Attached() {
  const clusters = useList('clusters')
  const me = useMe()
  const why = me && mayNot(me, 'admin', '')
  const [isNew, setNew] = useState(false)
  return (
    <div style={{ paddingBlockStart: '1rem' }}>
      <Act text="Attach a cluster" variant="primary" not={why} act={() => setNew(true)} />
      <div style={{ marginBlock: '1rem' }}>
        <Loaded query={clusters}>
          {(all) =>
            all.length === 0 ? (
              <Nothing title="No cluster is attached">
                <Content component="p">
                  In an attached cluster you ask for servers with MetalMachine objects or with Cluster API. MetalHost
                  objects show the hosts. Slipway installs only its custom resources, an admission policy and roles
                  there. If you detach the cluster, every server continues to run.
                </Content>
                <code>slipway cluster attach --kubeconfig ~/.kube/config</code>
              </Nothing>
            ) : (
              all.map((c) => <One key={c.name} cluster={c} why={why} />)
            )
          }
        </Loaded>
      </div>
      <Command cli="slipway cluster list" />
      {isNew && <AttachForm close={() => setNew(false)} />}
    </div>
  )
}

function One({ cluster: c, why }: { cluster: Cluster; why: string | undefined }) {
  const [isChecked, setChecked] = useState(false)
  const [isDetaching, setDetaching] = useState(false)
  const [isGranting, setGranting] = useState(false)
  const access = useQuery({
    queryKey: ['clusters', 'access', c.name],
    queryFn: () => send<Access>({ method: 'GET', path: `/clusters/${encodeURIComponent(c.name)}/access` }),
    enabled: why === undefined,
  })
  const [colour, glyph] = looks[c.state] ?? ['grey', '·']
  return (
    <Card style={{ marginBlockEnd: '1rem' }} component="section" aria-label={`Cluster ${c.name}`}>
      <CardHeader
        actions={{
          actions: (
            <>
              <Button variant="secondary" onClick={() => setChecked(true)}>
                Check
              </Button>
              <Act text="Access" variant="secondary" not={why} act={() => setGranting(true)} />
              <Act text="Detach" variant="secondary" isDanger not={why} act={() => setDetaching(true)} />
            </>
          ),
        }}
      >
        <CardTitle component="h2">
          {c.name}{' '}
          <Label isCompact color={colour ?? 'grey'}>
            <span aria-hidden>{glyph}</span> {c.state}
          </Label>
        </CardTitle>
      </CardHeader>
      <CardBody>
        {c.reason && (
          <p>
            {c.reason} {c.hint && <small>{c.hint}</small>}
          </p>
        )}
        <Facts
          rows={[
            ['Kubernetes', c.kubernetes],
            ['Answered', c.seenAt && <When key="s" at={c.seenAt} />],
            ['Controllers', c.modes?.join(', ') || 'all: MetalMachine and its kin, and Cluster API'],
            ['Namespaces', c.namespaces?.join(', ') || 'all'],
            ['Watch filter', c.watchFilter],
            [
              'Hosts',
              access.data && (access.data.pools?.length ? `of ${access.data.pools.join(', ')}` : 'of all pools'),
            ],
            ['Takes machines over from', access.data && (access.data.takesFrom?.join(', ') || 'no other cluster')],
            [
              'Kubeconfig',
              <Link key="k" to="/settings?tab=secrets">
                secret {c.kubeconfig}
              </Link>,
            ],
          ]}
        />
        {isChecked && <Check name={c.name} />}
        {isGranting && access.data && <Grant cluster={c} access={access.data} close={() => setGranting(false)} />}
        {isDetaching && <Detach cluster={c} close={() => setDetaching(false)} />}
      </CardBody>
    </Card>
  )
}

type Access = Schemas['ClusterAccess']

// Grant says which hosts a cluster may use, and from which clusters it may take machines over.
function Grant({ cluster: c, access, close }: { cluster: Cluster; access: Access; close: () => void }) {
  const [{ pools, from }, of] = useFields({
    pools: (access.pools ?? []).join(' '),
    from: (access.takesFrom ?? []).join(' '),
  })
  const body = { pools: wordsOf(pools), takesFrom: wordsOf(from) }
  const cli = flags({
    pool: body.pools,
    'all-pools': body.pools.length === 0,
    'take-from': body.takesFrom,
    'no-take': body.takesFrom.length === 0,
  })
  return (
    <Ask
      title={`What may ${c.name} do?`}
      verb="Save"
      call={{ method: 'PUT', path: `/clusters/${encodeURIComponent(c.name)}/access`, body }}
      cli={`slipway cluster access ${c.name}${cli}`}
      close={close}
    >
      <TextField label="Pools whose hosts it sees, uses and changes" {...of('pools')} placeholder="all pools" />
      <TextField
        label="Clusters whose machines it may take over"
        {...of('from')}
        placeholder="none"
        help="For clusterctl move. Write local for machines that people created. A claim id alone is never enough."
      />
    </Ask>
  )
}

function Check({ name }: { name: string }) {
  const check = useQuery({
    queryKey: ['clustercheck', name],
    staleTime: 0,
    queryFn: () => must(api.GET('/api/v1/clusters/{name}/check', { params: { path: { name } } })),
  })
  return (
    <Loaded query={check}>
      {(k) => (
        <Results isGood={k.isGood} results={k.results} good={`Nothing is missing; its version is ${k.kubernetes}`} />
      )}
    </Loaded>
  )
}

function Detach({ cluster: c, close }: { cluster: Cluster; close: () => void }) {
  const [{ purge, force }, of] = useFields({ purge: false, force: false })
  const query = [purge && 'purge=true', force && 'force=true'].filter(Boolean).join('&')
  const call: Call = {
    method: 'DELETE',
    path: `/clusters/${encodeURIComponent(c.name)}${query && `?${query}`}`,
    version: c.version,
  }
  return (
    <Ask
      title={`Detach ${c.name}?`}
      verb="Detach"
      foresees={dryOf(call)}
      {...(purge && { typed: c.name })}
      call={call}
      cli={`slipway cluster detach ${c.name}${flags({ purge, force })}`}
      close={close}
    >
      <CheckField
        label="Also delete Slipway's custom resource definitions, with all their objects (the servers continue to run)"
        {...of('purge')}
      />
      <CheckField
        label="Also if the cluster does not answer. Its objects keep Slipway's finalizers: nobody can delete them before you remove these by hand"
        {...of('force')}
      />
    </Ask>
  )
}
