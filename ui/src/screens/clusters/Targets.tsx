import {
  Button,
  Card,
  CardBody,
  CardHeader,
  CardTitle,
  ClipboardCopy,
  Content,
  ExpandableSection,
} from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useSearchParams } from 'react-router'
import { api, headers, must, problemOf, type Target } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useHostNames } from '../../api/names'
import { nouns } from '../../api/nouns'
import { useList } from '../../api/queries'
import { Act } from '../../parts/Act'
import { Ask, dryOf } from '../../parts/Ask'
import { Command } from '../../parts/Command'
import { Facts } from '../../parts/Facts'
import { Loaded, Nothing } from '../../parts/Failure'
import { NounForm } from '../../parts/NounForm'
import { Rows } from '../../parts/Rows'
import { When } from '../../parts/When'
import { Results } from './Results'

export function Targets() {
  const targets = useList('targets')
  const me = useMe()
  const [params] = useSearchParams()
  const why = me && mayNot(me, 'admin', '')
  const [isNew, setNew] = useState(false)
  const only = params.get('target')
  return (
    <div style={{ paddingBlockStart: '1rem' }}>
      <Act text="Add a join target" variant="primary" not={why} act={() => setNew(true)} />
      <div style={{ marginBlock: '1rem' }}>
        <Loaded query={targets}>
          {(all) =>
            all.length === 0 ? (
              <Nothing title="No join target yet">
                <Content component="p">
                  A join target is a kubeadm cluster in which machines become nodes. If it has a kubeconfig, Slipway
                  makes a token for each machine that asks, and approves only the certificate of that machine.
                </Content>
                <code>
                  slipway target add prod --endpoint 10.0.0.9:6443 --kubernetes 1.35.0 --ca ca.crt --kubeconfig SECRET
                </code>
              </Nothing>
            ) : (
              all.filter((t) => !only || t.name === only).map((t) => <One key={t.name} target={t} why={why} />)
            )
          }
        </Loaded>
        {only && <Link to="/clusters?tab=targets">All targets</Link>}
      </div>
      <Command cli="slipway target list" />
      {isNew && <NounForm d={nouns.targets} close={() => setNew(false)} />}
    </div>
  )
}

type Shown = 'check' | 'rbac' | 'tokens'

function One({ target: t, why: role }: { target: Target; why: string | undefined }) {
  const [asked, setAsked] = useState<'edit' | 'delete'>()
  const [shown, setShown] = useState<Shown>()
  const why = role ?? (t.owner ? `it belongs to ${t.owner}` : undefined)
  const turn = (what: Shown) => setShown(shown === what ? undefined : what)
  return (
    <Card style={{ marginBlockEnd: '1rem' }} component="section" aria-label={`Target ${t.name}`}>
      <CardHeader
        actions={{
          actions: (
            <>
              <Act text="Edit" variant="secondary" not={why} act={() => setAsked('edit')} />
              <Act text="Delete" variant="secondary" isDanger not={why} act={() => setAsked('delete')} />
            </>
          ),
        }}
      >
        <CardTitle component="h2">{t.name}</CardTitle>
      </CardHeader>
      <CardBody>
        <Facts
          rows={[
            ['Endpoint', t.endpoint],
            ['Kubernetes', t.kubernetes],
            [
              'Tokens',
              t.kubeconfig
                ? `made with secret ${t.kubeconfig}`
                : t.token
                  ? `secret ${t.token}`
                  : 'none: nobody can join',
            ],
            ['Token lifetime', t.tokenFor || '30m'],
            [
              'Control planes',
              t.pki ? `with secret ${t.pki}` : t.certificateKey ? `with secret ${t.certificateKey}` : '',
            ],
            ['Shared address', t.vip],
            ['Pods', t.podCIDR],
            ['Services', t.serviceCIDR],
            ['Kept for', t.owner],
          ]}
        />
        <div style={{ display: 'flex', gap: '0.5rem', flexWrap: 'wrap', marginBlock: '0.5rem' }}>
          <Button variant="tertiary" aria-expanded={shown === 'check'} onClick={() => turn('check')}>
            Check
          </Button>
          <Button variant="tertiary" aria-expanded={shown === 'rbac'} onClick={() => turn('rbac')}>
            Rights for Slipway
          </Button>
          <Button variant="tertiary" aria-expanded={shown === 'tokens'} onClick={() => turn('tokens')}>
            Tokens of machines
          </Button>
        </div>
        {shown === 'check' && <Check name={t.name} />}
        {shown === 'rbac' && <Rbac name={t.name} />}
        {shown === 'tokens' && <Tokens name={t.name} />}
        {asked === 'edit' && <NounForm d={nouns.targets} one={t} close={() => setAsked(undefined)} />}
        {asked === 'delete' && (
          <Ask
            title={`Delete target ${t.name}?`}
            verb="Delete"
            foresees={dryOf({ method: 'DELETE', path: `/targets/${encodeURIComponent(t.name)}`, version: t.version })}
            call={{ method: 'DELETE', path: `/targets/${encodeURIComponent(t.name)}`, version: t.version }}
            cli={`slipway target delete ${t.name}`}
            close={() => setAsked(undefined)}
          />
        )}
      </CardBody>
    </Card>
  )
}

function Check({ name }: { name: string }) {
  const check = useQuery({
    queryKey: ['targetcheck', name],
    staleTime: 0,
    queryFn: () => must(api.GET('/api/v1/targets/{name}/check', { params: { path: { name } } })),
  })
  return (
    <Loaded query={check}>
      {(k) => (
        <Results
          isGood={k.isGood}
          results={k.results}
          good={`Hosts can join; its version is ${k.version ?? 'unknown'}`}
        />
      )}
    </Loaded>
  )
}

function Rbac({ name }: { name: string }) {
  const [isWhole, setWhole] = useState(false)
  const rbac = useQuery({
    queryKey: ['rbac', name],
    queryFn: async () => {
      const r = await fetch(`/api/v1/targets/${encodeURIComponent(name)}/rbac?nodes=true`, { headers: headers() })
      if (!r.ok) throw await problemOf(r)
      return r.text()
    },
  })
  const cli = `slipway target rbac ${name} --nodes | kubectl apply -f -`
  return (
    <Loaded query={rbac}>
      {(text) => (
        <>
          <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel="Command that applies it">
            {cli}
          </ClipboardCopy>
          <ExpandableSection
            toggleText="The rights that this gives Slipway"
            isExpanded={isWhole}
            onToggle={(_, on) => setWhole(on)}
          >
            {isWhole && <pre className="mono">{text}</pre>}
          </ExpandableSection>
        </>
      )}
    </Loaded>
  )
}

function Tokens({ name }: { name: string }) {
  const tokens = useQuery({
    queryKey: ['jointokens', name],
    staleTime: 0,
    queryFn: async () => (await must(api.GET('/api/v1/targets/{name}/tokens', { params: { path: { name } } }))).items,
  })
  const named = useHostNames((tokens.data ?? []).map((k) => k.hostID))
  return (
    <Loaded query={tokens}>
      {(all) =>
        all.length === 0 ? (
          <Content component="p">No machine has asked for a token yet.</Content>
        ) : (
          <Rows
            label="Tokens"
            rows={all.slice(0, 200)}
            keyOf={(k) => k.id}
            columns={[
              ['Token', (k) => <code>{k.id}</code>],
              ['Node', (k) => k.nodeName],
              ['Host', (k) => <Link to={`/hosts/${encodeURIComponent(named(k.hostID))}`}>{named(k.hostID)}</Link>],
              ['State', (k) => k.state],
              ['Expires', (k) => <When at={k.expiresAt} />],
            ]}
          />
        )
      }
    </Loaded>
  )
}
