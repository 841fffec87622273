import { Button, ExpandableSection, Form, Tooltip } from '@patternfly/react-core'
import { useQueryClient } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import type { Call } from '../../api/act'
import { Problem, type Profile } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { Diff } from '../../parts/Diff'
import { Editor } from '../../parts/Editor'
import { Failure } from '../../parts/Failure'
import { ChoiceField, same, TextField } from '../../parts/Fields'
import { Unsaved } from '../../parts/Unsaved'
import { useDraft } from '../../parts/useDraft'
import { Capabilities } from './Capabilities'
import { useCheck } from './check'
import { blank, changed, commandOf, type Draft, draftOf, marksOf, merged, sentOf, words } from './draft'
import { documentFormats, Fields } from './Fields'
import { Beside, besides, type Files } from './Files'
import { Elsewhere, ImpactView } from './Impact'
import { Meeting, Save } from './Save'

interface Edited {
  stored?: Profile // none for one that is new
  begin?: Draft // what a new one begins with
  from?: string // what that is a copy of
  done: (p: Profile) => void
}

const unnamed = 'not-named-yet'

// ProfileEditor edits a profile. What is typed is tried on its hosts all the time, and stays here until it is saved.
export function ProfileEditor({ stored, begin = blank, from = '', done }: Edited) {
  const queries = useQueryClient()
  const before = useMemo(() => (stored ? draftOf(stored) : begin), [stored, begin])
  const d = useDraft<Draft>(stored ? `profile/${stored.name}` : `profile-new/${from}`, before, stored?.version)
  const [newName, setName] = useState('')
  const [saves, setSaves] = useState(false)
  const name = stored?.name ?? newName.trim()
  const [files, setFiles] = useState<Files>({})
  const body = besides(sentOf(name || unnamed, d.draft), files)
  const check = useCheck(
    d.draft.image
      ? { method: 'POST', path: `/profiles/${encodeURIComponent(name || unnamed)}/check`, body }
      : undefined,
  )
  const set = (more: Partial<Draft>) => d.edit({ ...d.draft, ...more })
  const findings =
    check.error instanceof Problem && check.error.findings.length > 0
      ? check.error.findings
      : (check.impact?.findings ?? [])
  const { here, elsewhere } = marksOf(findings, `profile ${name || unnamed}`)
  const ofDocument = marksOf(findings, 'document')
  const rest = elsewhere.filter((m) => !m.about?.startsWith('document'))
  const hasErrors = findings.some((f) => f.severity === 'error')
  const call: Call = stored
    ? { method: 'PUT', path: `/profiles/${encodeURIComponent(name)}`, body, version: d.version }
    : { method: 'POST', path: '/profiles', body }
  const not =
    mayNot(useMe(), 'operator', '') ??
    (!name
      ? 'it has no name'
      : !d.draft.image
        ? 'it names no image'
        : stored && !d.isDirty && Object.keys(files).length === 0
          ? 'nothing is changed'
          : undefined) ??
    (d.isBehind && stored ? 'somebody else has saved it meanwhile: choose above' : undefined) ??
    (check.error
      ? 'see what is wrong below'
      : !check.isNow
        ? 'it is being checked'
        : hasErrors
          ? 'it has errors'
          : undefined)
  const save = (
    <Button isAriaDisabled={not !== undefined} onClick={() => not === undefined && setSaves(true)}>
      {stored ? 'Save' : 'Create'}
    </Button>
  )
  const state = !d.draft.image
    ? 'choose an image first; then Slipway checks it'
    : check.isNow
      ? check.error
        ? 'not checked'
        : undefined
      : 'checking…'
  const theirs = stored && d.isBehind ? draftOf(stored) : undefined
  const meeting = theirs && merged(d.base, d.draft, theirs)
  return (
    <Form onSubmit={(e) => e.preventDefault()}>
      {d.isDirty && d.keptAt && <Unsaved since={d.keptAt} forget={d.forget} />}
      {theirs && meeting && d.isDirty && (
        <Meeting
          what={`profile ${name}`}
          changes={<FieldDiffs before={d.base} after={theirs} />}
          clashes={meeting.clashes.map((f) => words[f]).join(', ')}
          both={() => d.rest(theirs, stored?.version, meeting.draft)}
          mine={() => d.rest(theirs, stored?.version, d.draft)}
          theirs={() => d.rest(theirs, stored?.version, theirs)}
        />
      )}
      {!stored && (
        <TextField
          label="Name"
          value={newName}
          set={setName}
          isRequired
          help="Small letters, digits and -. You cannot change it later."
        />
      )}
      <div className="profile-panes">
        <Fields draft={d.draft} set={set} name={name} />
        <div>
          <Editor
            label="Configuration"
            value={d.draft.config}
            onChange={(config) => set({ config })}
            marks={here}
            {...(state && { state })}
          />
          <ExpandableSection
            toggleText={
              d.draft.document
                ? 'Document of your own'
                : 'Use a cloud-config, Ignition, kickstart or preseed document instead'
            }
          >
            <ChoiceField
              label="Format of the document"
              value={d.draft.documentFormat}
              set={(documentFormat) => set({ documentFormat })}
              choices={[['', 'choose'], ...same(documentFormats)]}
              help="Slipway adds the layers to Butane, Ignition, cloud-config and Talos, and not to the other formats."
            />
            <Editor
              label="Document"
              value={d.draft.document}
              onChange={(document) => set({ document })}
              marks={ofDocument.here}
              rows={12}
              isText
            />
            {d.draft.documentFormat === 'butane' && <Beside files={files} set={setFiles} />}
          </ExpandableSection>
          <Elsewhere marks={rest} />
          {check.error && <Failure error={check.error} again={check.again} />}
          {check.impact && !check.error && <ImpactView impact={check.impact} />}
          <Capabilities image={d.draft.image} format={d.draft.format} />
        </div>
      </div>
      <div className="profile-bar">
        {not ? <Tooltip content={not}>{save}</Tooltip> : save}
        {d.isDirty && (
          <Button variant="link" onClick={d.forget}>
            Discard the changes
          </Button>
        )}
        {not && <small>Not yet: {not}.</small>}
      </div>
      {saves && (
        <Save<Profile>
          title={stored ? `Save profile ${name}?` : `Create profile ${name}?`}
          call={call}
          cli={commandOf(name, stored && d.base, d.draft)}
          impact={check.impact}
          close={() => setSaves(false)}
          behind={() => void queries.invalidateQueries({ queryKey: ['profiles'] })}
          done={(p) => {
            setFiles({})
            d.rest(draftOf(p), p.version, draftOf(p))
            if (!stored) d.forget()
            done(p)
          }}
        >
          {stored && <FieldDiffs before={d.base} after={d.draft} />}
        </Save>
      )}
    </Form>
  )
}

// FieldDiffs shows what differs between two drafts, field by field.
export function FieldDiffs({ before, after }: { before: Draft; after: Draft }) {
  const all = changed(before, after)
  if (all.length === 0) return <p>There are no changes.</p>
  return (
    <>
      {all.map((f) => (
        <div key={f}>
          <strong>{words[f]}</strong>
          <Diff before={before[f]} after={after[f]} label={`Changes of ${words[f]}`} />
        </div>
      ))}
    </>
  )
}
