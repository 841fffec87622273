import {
  Button,
  Card,
  CardBody,
  CardHeader,
  CardTitle,
  Checkbox,
  Content,
  Label,
  type LabelProps,
} from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'react-router'
import { api, type Cluster, must, type Schemas } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Ask } from '../../parts/Ask'
import { Command } from '../../parts/Command'
import { flags } from '../../parts/cli'
import { Facts } from '../../parts/Facts'
import { Loaded, Nothing } from '../../parts/Failure'
import { When } from '../../parts/When'
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
      <Button isAriaDisabled={why !== undefined} title={why ?? ''} onClick={() => !why && setNew(true)}>
        Attach a cluster
      </Button>
      <div style={{ marginBlock: '1rem' }}>
        <Loaded query={clusters}>
          {(all) =>
            all.length === 0 ? (
              <Nothing title="No cluster is attached">
                <Content component="p">
                  In an attached cluster, MetalMachine objects or Cluster API say which servers are wanted, and
                  MetalHost objects show those that are there. Nothing is installed in it but our kinds; detaching
                  leaves every server running.
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
  const [colour, glyph] = looks[c.state] ?? ['grey', '·']
  return (
    <Card style={{ marginBlockEnd: '1rem' }} component="section" aria-label={`Cluster ${c.name}`}>
      <CardHeader
        actions={{
          actions: (
            <>
              <Button variant="secondary" onClick={() => setChecked(true)}>
                Look it over
              </Button>
              <Button
                variant="secondary"
                isDanger
                isAriaDisabled={why !== undefined}
                title={why ?? ''}
                onClick={() => !why && setDetaching(true)}
              >
                Detach
              </Button>
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
              'Kubeconfig',
              <Link key="k" to="/settings?tab=secrets">
                secret {c.kubeconfig}
              </Link>,
            ],
          ]}
        />
        {isChecked && <Check name={c.name} />}
        {isDetaching && <Detach cluster={c} close={() => setDetaching(false)} />}
      </CardBody>
    </Card>
  )
}

function Check({ name }: { name: string }) {
  const check = useQuery({
    queryKey: ['clustercheck', name],
    staleTime: 0,
    queryFn: async () =>
      (await must(
        (api.GET as (p: string) => Promise<{ data?: unknown }>)(`/api/v1/clusters/${encodeURIComponent(name)}/check`),
      )) as Schemas['ClusterCheck'],
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
  const [purge, setPurge] = useState(false)
  const [force, setForce] = useState(false)
  const query = [purge && 'purge=true', force && 'force=true'].filter(Boolean).join('&')
  return (
    <Ask
      title={`Detach ${c.name}?`}
      verb="Detach"
      warns="What its objects want is not done any more. Every server runs on."
      {...(purge && { typed: c.name })}
      call={{
        method: 'DELETE',
        path: `/clusters/${encodeURIComponent(c.name)}${query && `?${query}`}`,
        version: c.version,
      }}
      cli={`slipway cluster detach ${c.name}${flags({ purge, force })}`}
      close={close}
    >
      <Checkbox
        id="purge"
        label="Take our kinds away as well, and with them all objects of them"
        isChecked={purge}
        onChange={(_, on) => setPurge(on)}
      />
      <Checkbox
        id="force"
        label="Even when it does not answer: its objects keep our finalizers then"
        isChecked={force}
        onChange={(_, on) => setForce(on)}
      />
    </Ask>
  )
}
