import { Button, Modal, ModalBody, ModalFooter, ModalHeader, Spinner, Title } from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useState } from 'react'
import { Link, useNavigate, useParams } from 'react-router'
import { type Change, type Entry, useEntry, useUndoPreview, type WholeEntry } from '../../api/audit'
import { mayNot, useMe } from '../../api/me'
import { Ask } from '../../parts/Ask'
import { Command } from '../../parts/Command'
import { Diff } from '../../parts/Diff'
import { Facts } from '../../parts/Facts'
import { Failure, Loaded } from '../../parts/Failure'
import { Screen } from '../../parts/Screen'
import { When } from '../../parts/When'
import { About, Outcome } from './AuditTable'
import { isText, plainOf, what } from './words'

// EntryPage is one entry with what it changed, and the way to take it back.
export function EntryPage() {
  const { id = '' } = useParams()
  const entry = useEntry(id)
  return (
    <Screen
      title={`Audit entry ${id}`}
      about={<Link to="/audit">All entries</Link>}
      actions={entry.data?.change && <Undo entry={entry.data} />}
    >
      <Loaded query={entry}>
        {(e) => (
          <>
            <Told entry={e} />
            {e.change && (
              <>
                <Title headingLevel="h2" style={{ marginBlock: '1.5rem 0.5rem' }}>
                  What it changed
                </Title>
                <Changes changes={e.changes} label="Changes" />
              </>
            )}
            <Command cli={`slipway audit show ${e.id}`} />
          </>
        )}
      </Loaded>
    </Screen>
  )
}

function Told({ entry: e }: { entry: WholeEntry }) {
  return (
    <Facts
      rows={[
        ['When', <When key="at" at={e.at} />],
        ['Who', `${e.actor}${e.role ? `, then ${e.role}` : ''}`],
        ['Came by', `${e.via}${e.source ? ` from ${e.source}` : ''}`],
        ['What', what(e.operation)],
        ['About', <About key="about" entry={e} />],
        ['Outcome', <Outcome key="outcome" entry={e} />],
        ['Detail', e.detail],
        [
          'Undo of',
          e.undoOf && (
            <Link key="of" to={`/audit/${e.undoOf}`}>
              entry {e.undoOf}
            </Link>
          ),
        ],
        ['Undo', e.change && e.notUndoable && `not possible: ${e.notUndoable}`],
        ['Request', e.requestID],
      ]}
    />
  )
}

// Changes shows what an edit changed, field by field; texts of several lines as lines.
export function Changes({ changes, label }: { changes: Change[]; label: string }) {
  if (changes.length === 0) return <p>The audit never shows values of secrets.</p>
  return (
    <Table aria-label={label} variant="compact">
      <Thead>
        <Tr>
          <Th>Field</Th>
          <Th>Before</Th>
          <Th>After</Th>
        </Tr>
      </Thead>
      <Tbody>
        {changes.map((c) => (
          <Tr key={c.field}>
            <Td dataLabel="Field">{c.field}</Td>
            {isText(c.from) || isText(c.to) ? (
              <Td colSpan={2} dataLabel="Before and after">
                <Diff before={plainOf(c.from)} after={plainOf(c.to)} label={`Change of ${c.field}`} />
              </Td>
            ) : (
              <>
                <Td dataLabel="Before" modifier="breakWord">
                  <Value v={c.from} />
                </Td>
                <Td dataLabel="After" modifier="breakWord">
                  <Value v={c.to} />
                </Td>
              </>
            )}
          </Tr>
        ))}
      </Tbody>
    </Table>
  )
}

const longest = 2000

function Value({ v }: { v: unknown }) {
  const text = plainOf(v)
  if (text === '') return <em>none</em>
  return <span className="mono">{text.length > longest ? `${text.slice(0, longest)} …` : text}</span>
}

function Undo({ entry: e }: { entry: WholeEntry }) {
  const me = useMe()
  const [isAsked, setAsked] = useState(false)
  const why = e.notUndoable || (me && mayNot(me, 'operator'))
  return (
    <>
      <Button variant="secondary" isAriaDisabled={!!why} title={why ?? ''} onClick={() => !why && setAsked(true)}>
        Undo{why ? `: ${why}` : ''}
      </Button>
      {isAsked && <AskUndo entry={e} close={() => setAsked(false)} />}
    </>
  )
}

// AskUndo shows what the undo would change, as the server says it, before it is done.
function AskUndo({ entry: e, close }: { entry: Entry; close: () => void }) {
  const preview = useUndoPreview(e.id, true)
  const navigate = useNavigate()
  const title = `Undo "${what(e.operation)}" of ${e.noun} ${e.name ?? ''}?`
  if (preview.data) {
    return (
      <Ask
        title={title}
        verb="Undo"
        call={{ method: 'POST', path: `/audit/${e.id}/undo` }}
        cli={`slipway audit undo ${e.id}`}
        close={close}
        done={(made: Entry) => void navigate(`/audit/${made.id}`)}
      >
        <Changes changes={preview.data.changes} label="What the undo would change" />
      </Ask>
    )
  }
  return (
    <Modal isOpen variant="small" onClose={close} aria-labelledby="undo-title">
      <ModalHeader labelId="undo-title" title={title} />
      <ModalBody>{preview.error ? <Failure error={preview.error} /> : <Spinner aria-label="Loading" />}</ModalBody>
      <ModalFooter>
        <Button variant="link" onClick={close}>
          Close
        </Button>
      </ModalFooter>
    </Modal>
  )
}
