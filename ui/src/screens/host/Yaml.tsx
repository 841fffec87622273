import { Alert, Button, CodeBlock, CodeBlockCode } from '@patternfly/react-core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { type Call, send } from '../../api/act'
import { type Host, isObject, Problem } from '../../api/client'
import { useMayNotOn, useMe } from '../../api/me'
import { Command } from '../../parts/Command'
import { Diff } from '../../parts/Diff'
import { hasDraft } from '../../parts/drafts'
import { Editor, type Mark } from '../../parts/Editor'
import { Failure } from '../../parts/Failure'
import { Unsaved } from '../../parts/Unsaved'
import { useDraft } from '../../parts/useDraft'
import { yamlOf } from './yaml'

// said are the fields that an admin says; all else the machine or the engine does.
const said = [
  'name',
  'profile',
  'profileRevision',
  'diskBoot',
  'isAdopted',
  'isCordoned',
  'isRetained',
  'uuid',
  'serial',
  'assetTag',
  'manufacturer',
  'product',
  'place',
  'labels',
  'taints',
  'rootDisk',
  'keepDisks',
  'nics',
] as const

// editable is what an admin says of a host.
export function editable(h: Host): Record<string, unknown> {
  const out: Record<string, unknown> = {}
  for (const k of said) if (h[k as keyof Host] !== undefined) out[k] = h[k as keyof Host]
  out.nics = h.nics.map((n) => ({ mac: n.mac, ...(n.name && { name: n.name }) }))
  return out
}

// merge makes a person's changes to what somebody else has stored meanwhile. Fields that both changed are the person's,
// and named.
export function merge(base: Record<string, unknown>, mine: Record<string, unknown>, theirs: Record<string, unknown>) {
  const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)
  const out: Record<string, unknown> = { ...theirs }
  const both: string[] = []
  for (const k of new Set([...Object.keys(base), ...Object.keys(mine)])) {
    if (same(base[k], mine[k])) continue
    if (!same(base[k], theirs[k]) && !same(mine[k], theirs[k])) both.push(k)
    if (mine[k] === undefined) delete out[k]
    else out[k] = mine[k]
  }
  return { merged: out, both }
}

const draftOf = (h: Host) => `host/${h.id}`

const json = (v: unknown) => `${JSON.stringify(v, null, 2)}\n`

export function Yaml({ host }: { host: Host }) {
  const me = useMe()
  const mayNot = useMayNotOn(host.name)
  const [isEdited, setEdited] = useState(() => hasDraft(me?.name ?? '', draftOf(host)))
  const refused = mayNot('operator')
  if (isEdited) return <Edit host={host} close={() => setEdited(false)} />
  return (
    <>
      <Button
        variant="secondary"
        isAriaDisabled={refused !== undefined}
        {...(refused && { title: refused })}
        onClick={() => setEdited(true)}
      >
        Edit
      </Button>
      <CodeBlock>
        <CodeBlockCode>{yamlOf(host)}</CodeBlockCode>
      </CodeBlock>
      <Command
        cli={`slipway host show ${host.name} -o yaml`}
        call={{ method: 'GET', path: `/hosts/${encodeURIComponent(host.name)}` }}
      />
    </>
  )
}

// Edit changes all that an admin says of a host at once. When somebody else was quicker, both changes are shown.
function Edit({ host, close }: { host: Host; close: () => void }) {
  const stored = json(editable(host))
  const d = useDraft<string>(draftOf(host), stored, host.version)
  const queries = useQueryClient()
  const { body, mark } = read(d.draft)
  const call: Call = { method: 'PUT', path: `/hosts/${encodeURIComponent(host.name)}`, body, version: d.version }
  const leave = () => {
    d.forget()
    close()
  }
  const save = useMutation({
    mutationFn: () => send(call),
    onSuccess: async () => {
      await queries.invalidateQueries()
      leave()
    },
    onError: (e) => {
      if (e instanceof Problem && e.status === 412) void queries.invalidateQueries({ queryKey: ['hosts', host.name] })
    },
  })
  // What the machine or the engine has changed is not among it, and nobody's choice.
  const isOnlyNewer = d.isBehind && d.base === stored
  useEffect(() => {
    if (isOnlyNewer) d.rest(stored, host.version, d.draft)
  })
  const isBehind = d.isBehind && !isOnlyNewer
  const theirs = editable(host)
  const base: Record<string, unknown> = JSON.parse(d.base)
  const joined = body && merge(base, body, theirs)
  const take = (v: Record<string, unknown>) => {
    d.rest(stored, host.version, json(v))
    save.reset()
  }
  return (
    <>
      {d.isDirty && d.keptAt && <Unsaved since={d.keptAt} forget={leave} />}
      <p>This is JSON, which is valid YAML. It does not have the machine's own reports, its state and its flags.</p>
      {isBehind && (
        <Alert isInline variant="warning" component="h2" title="Somebody else has changed the host meanwhile">
          <p>What they changed:</p>
          <Diff before={d.base} after={stored} label="What somebody else changed" />
          {joined && joined.both.length > 0 && (
            <p>Both of you changed {joined.both.join(', ')}. If you merge, your value wins.</p>
          )}
          <p className="host-buttons">
            <Button size="sm" isDisabled={!joined} onClick={() => joined && take(joined.merged)}>
              Merge my changes into theirs
            </Button>
            <Button size="sm" variant="secondary" onClick={() => take(theirs)}>
              Take theirs
            </Button>
            <Button size="sm" variant="danger" isDisabled={!body} onClick={() => body && take(body)}>
              Keep mine, undo theirs
            </Button>
          </p>
        </Alert>
      )}
      <Editor label={`Host ${host.name}`} value={d.draft} onChange={d.edit} marks={mark ? [mark] : []} rows={28} />
      {save.error && !isBehind && <Failure error={save.error} />}
      <p className="host-buttons">
        <Button
          onClick={() => save.mutate()}
          isLoading={save.isPending}
          isDisabled={!body || save.isPending || isBehind}
        >
          Save
        </Button>
        <Button variant="link" onClick={leave}>
          Cancel
        </Button>
        {isBehind && 'Choose above how to handle the other change.'}
      </p>
      <Command cli={`slipway apply -f ${host.name}.yaml`} {...(body && { call })} />
    </>
  )
}

function read(text: string): { body?: Record<string, unknown>; mark?: Mark } {
  try {
    const v: unknown = JSON.parse(text)
    if (isObject(v)) return { body: v }
    return { mark: { line: 1, severity: 'error', message: 'it has to be an object: { … }' } }
  } catch (e) {
    const message = e instanceof Error ? e.message : String(e)
    const at = Number(/position (\d+)/.exec(message)?.[1] ?? Number.NaN)
    const line = Number.isNaN(at) ? Number(/line (\d+)/.exec(message)?.[1] ?? 0) : text.slice(0, at).split('\n').length
    return { mark: { line, severity: 'error', message } }
  }
}
