import { Button, Form, FormSelect, FormSelectOption, TextInput, Title, Tooltip } from '@patternfly/react-core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useSearchParams } from 'react-router'
import { type Call, send } from '../../api/act'
import { type Impact, type Layer, Problem } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useList, useOne } from '../../api/queries'
import { Ask, dryOf } from '../../parts/Ask'
import { Diff } from '../../parts/Diff'
import { Editor } from '../../parts/Editor'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { HostNames } from '../../parts/HostNames'
import { Rows } from '../../parts/Rows'
import { Unsaved } from '../../parts/Unsaved'
import { useDraft } from '../../parts/useDraft'
import { When } from '../../parts/When'
import { useCheck } from './check'
import { marksOf } from './draft'
import { Elsewhere, ImpactView } from './Impact'
import { Revisions } from './Revisions'
import { Meeting, Save } from './Save'

export const keyOf = (l: Pick<Layer, 'scope' | 'name'>) => (l.scope === 'global' ? 'global' : `${l.scope}/${l.name}`)

// linkTo is where a layer is edited.
const linkTo = (key: string) => `/profiles?tab=layers&layer=${encodeURIComponent(key)}`

// Layers lists what many hosts share, the widest first, and edits one.
export function Layers() {
  const [params] = useSearchParams()
  const key = params.get('layer')
  return key ? <OneLayer key={key} name={key} /> : <LayerList />
}

const order = ['global', 'site', 'rack', 'host']

function LayerList() {
  const layers = useList('layers')
  return (
    <>
      <p>
        Write settings that several hosts share once, in a layer: for all hosts, a site, a rack or one host. If two
        layers differ, the narrower one wins. A profile is narrower than a rack and wider than a host.
      </p>
      <NewLayer />
      <Loaded query={layers}>
        {(all) =>
          all.length === 0 ? (
            <Nothing title="There is no layer yet">
              Begin with the layer global, for the settings of all machines: DNS servers, time servers, your own SSH
              key.
            </Nothing>
          ) : (
            <Rows
              label="Layers"
              rows={all.toSorted((a, b) => order.indexOf(a.scope ?? '') - order.indexOf(b.scope ?? ''))}
              keyOf={keyOf}
              columns={[
                ['Layer', (l) => <Link to={linkTo(keyOf(l))}>{keyOf(l)}</Link>],
                ['Revision', (l) => l.revision],
                ['Lines', (l) => l.config.split('\n').length],
                ['Changed', (l) => <When at={l.updatedAt} />],
              ]}
            />
          )
        }
      </Loaded>
    </>
  )
}

function NewLayer() {
  const racks = useList('racks') // also those that are there because a host is placed in them
  const [scope, setScope] = useState('global')
  const [name, setName] = useState('')
  const [params, setParams] = useSearchParams()
  const places = [...new Set((racks.data ?? []).map((r) => (scope === 'site' ? r.site : r.name)).filter(Boolean))]
  const key = scope === 'global' ? 'global' : name.trim() && `${scope}/${name.trim()}`
  return (
    <Form
      className="profile-bar"
      onSubmit={(e) => {
        e.preventDefault()
        const next = new URLSearchParams(params)
        next.set('layer', key)
        if (key) setParams(next)
      }}
    >
      <FormSelect aria-label="Layer of" value={scope} onChange={(_, v) => setScope(v)} className="revision-pick">
        {order.map((s) => (
          <FormSelectOption key={s} value={s} label={s === 'global' ? 'all hosts (global)' : `a ${s}`} />
        ))}
      </FormSelect>
      {scope !== 'global' && (
        <>
          <TextInput
            aria-label={`Name of the ${scope}`}
            value={name}
            list="layer-names"
            onChange={(_, v) => setName(v)}
            autoComplete="off"
            className="revision-pick"
          />
          {scope === 'host' ? (
            <HostNames id="layer-names" typed={name} />
          ) : (
            <datalist id="layer-names">
              {places.slice(0, 1000).map((n) => (
                <option key={n} value={n} />
              ))}
            </datalist>
          )}
        </>
      )}
      <Button type="submit" variant="secondary" isDisabled={!key}>
        Edit the layer
      </Button>
    </Form>
  )
}

function OneLayer({ name }: { name: string }) {
  const layer = useOne('layers', name)
  const isNew =
    layer.error instanceof Problem && layer.error.status === 404 && /^there is no layer /.test(layer.error.message)
  const [part, setPart] = useState('edit')
  return (
    <>
      <p>
        <Link to="/profiles?tab=layers">All layers</Link>
      </p>
      <Title headingLevel="h2" size="lg">
        Layer {name}
        {isNew && ' (new)'}
      </Title>
      {layer.data && (
        <p>
          <Button variant="link" isInline onClick={() => setPart(part === 'edit' ? 'revisions' : 'edit')}>
            {part === 'edit' ? `Revisions (${layer.data.revision})` : 'Edit'}
          </Button>
        </p>
      )}
      {isNew ? (
        <LayerEditor name={name} />
      ) : (
        <Loaded query={layer}>
          {(l) =>
            part === 'edit' ? (
              <LayerEditor name={name} stored={l} />
            ) : (
              <Revisions<Layer>
                noun="layers"
                name={name}
                version={l.version}
                cli="slipway layer"
                compare={(a, b) => <Diff before={a?.config ?? ''} after={b.config} label="Changes of the layer" />}
              />
            )
          }
        </Loaded>
      )}
    </>
  )
}

function LayerEditor({ name, stored }: { name: string; stored?: Layer }) {
  const queries = useQueryClient()
  const d = useDraft<string>(`layer/${name}`, stored?.config ?? '', stored?.version)
  const [asks, setAsks] = useState('')
  const path = `/layers/${encodeURIComponent(name)}`
  const check = useCheck({ method: 'POST', path: `${path}/check`, body: { config: d.draft } })
  const findings = check.impact?.findings ?? []
  const { here, elsewhere } = marksOf(findings, `layer ${name}`)
  const call: Call = { method: 'PUT', path, body: { config: d.draft }, version: d.version }
  const role = mayNot(useMe(), 'operator', '')
  const isOld = d.isBehind && stored !== undefined && d.isDirty
  const not =
    role ??
    (isOld
      ? 'somebody else has saved it meanwhile: choose above'
      : d.draft.trim() === ''
        ? 'it is empty: delete it instead'
        : undefined) ??
    (!d.isDirty
      ? 'nothing is changed'
      : check.error
        ? 'see what is wrong below'
        : !check.isNow
          ? 'it is being checked'
          : undefined) ??
    (findings.some((f) => f.severity === 'error') ? 'it has errors' : undefined)
  const save = (
    <Button isAriaDisabled={not !== undefined} onClick={() => not === undefined && setAsks('save')}>
      Save
    </Button>
  )
  return (
    <>
      {d.isDirty && d.keptAt && <Unsaved since={d.keptAt} forget={d.forget} />}
      {isOld && stored && (
        <Meeting
          what={`layer ${name}`}
          changes={<Diff before={d.base} after={stored.config} label="What they changed" />}
          clashes="the same text"
          both={() => undefined}
          mine={() => d.rest(stored.config, stored.version, d.draft)}
          theirs={() => d.rest(stored.config, stored.version, stored.config)}
        />
      )}
      <Editor
        label="Layer"
        value={d.draft}
        onChange={d.edit}
        marks={here}
        {...(!check.isNow && { state: 'checking…' })}
      />
      <Elsewhere marks={elsewhere} />
      {check.error && <Failure error={check.error} again={check.again} />}
      {check.impact && !check.error && <ImpactView impact={check.impact} />}
      <div className="profile-bar">
        {not ? <Tooltip content={not}>{save}</Tooltip> : save}
        {d.isDirty && (
          <Button variant="link" onClick={d.forget}>
            Discard the changes
          </Button>
        )}
        {stored && (
          <Button variant="link" isDanger isDisabled={role !== undefined} onClick={() => setAsks('delete')}>
            Delete the layer
          </Button>
        )}
        {not && <small>Not yet: {not}.</small>}
      </div>
      {asks === 'save' && (
        <Save<Layer>
          title={`Save layer ${name}?`}
          call={call}
          cli={`slipway layer set ${name} layer.yaml`}
          impact={check.impact}
          close={() => setAsks('')}
          behind={() => void queries.invalidateQueries({ queryKey: ['layers'] })}
          done={(l) => d.rest(l.config, l.version, l.config)}
        >
          <Diff before={d.base} after={d.draft} label="Changes of the layer" />
        </Save>
      )}
      {asks === 'delete' && (
        <DeleteLayer name={name} version={stored?.version} close={() => setAsks('')} forget={d.forget} />
      )}
    </>
  )
}

function DeleteLayer({
  name,
  version,
  close,
  forget,
}: {
  name: string
  version: number | undefined
  close: () => void
  forget: () => void
}) {
  const [params, setParams] = useSearchParams()
  const call: Call = { method: 'DELETE', path: `/layers/${encodeURIComponent(name)}`, version }
  const preview = useQuery({
    queryKey: ['check', call],
    queryFn: () => send<{ impact?: Impact }>({ ...call, path: `${call.path}?dryRun=true` }),
    retry: false,
    gcTime: 0,
  })
  return (
    <Ask
      title={`Delete layer ${name}?`}
      verb="Delete"
      foresees={dryOf(call)}
      cli={`slipway layer delete ${name}`}
      call={call}
      close={close}
      done={() => {
        forget()
        const next = new URLSearchParams(params)
        next.delete('layer')
        setParams(next)
      }}
    >
      {preview.data?.impact && <ImpactView impact={preview.data.impact} />}
      {preview.error && <Failure error={preview.error} />}
    </Ask>
  )
}
