import { Button, Label, type LabelProps } from '@patternfly/react-core'
import { useState } from 'react'
import { Link } from 'react-router'
import { type AuditQuery, type Entry, useAudit } from '../../api/audit'
import { Loaded, Nothing } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
import { When } from '../../parts/When'
import { outcome, placeOf, what } from './words'

const colours: Record<string, LabelProps['color']> = {
  refused: 'red',
  created: 'green',
  changed: 'blue',
  deleted: 'orange',
  done: 'grey',
}
const glyphs: Record<string, string> = { refused: '✕', created: '+', changed: '±', deleted: '−', done: '●' }

export function Outcome({ entry: e }: { entry: Entry }) {
  const is = outcome(e)
  return (
    <Label isCompact color={colours[is] ?? 'grey'}>
      <span aria-hidden>{glyphs[is]}</span> {is}
      {is === 'refused' && ` (${e.status})`}
    </Label>
  )
}

// About is what an entry was about, with a way there.
export function About({ entry: e }: { entry: Entry }) {
  const place = placeOf(e)
  const name = `${e.noun} ${e.name ?? ''}`.trim()
  return place ? <Link to={place}>{name}</Link> : name
}

const step = 100
const most = 1000

// AuditTable lists entries, latest first.
export function AuditTable({ query, isHost }: { query: AuditQuery; isHost?: boolean }) {
  const [limit, setLimit] = useState(step)
  const list = useAudit(query, limit)
  return (
    <Loaded query={list}>
      {({ items, hasMore }) =>
        items.length === 0 ? (
          <Empty isFiltered={Object.keys(query).length > (isHost ? 1 : 0)} isHost={isHost ?? false} />
        ) : (
          <>
            <Rows
              label="Audit"
              rows={items}
              keyOf={(e) => e.id}
              columns={[
                ['When', (e) => <When at={e.at} />],
                ['Who', (e) => e.actor],
                ['What', (e) => <Link to={`/audit/${e.id}`}>{what(e.operation)}</Link>],
                ['About', (e) => <About entry={e} />],
                ['Outcome', (e) => <Outcome entry={e} />],
                [
                  'Detail',
                  (e) => (
                    <>
                      {e.undoOf && <Link to={`/audit/${e.undoOf}`}>undo of {e.undoOf}</Link>} {e.detail}
                    </>
                  ),
                  { width: 30, modifier: 'breakWord' },
                ],
              ]}
            />
            {hasMore && limit < most && (
              <Button variant="link" onClick={() => setLimit(limit + step)}>
                Show more
              </Button>
            )}
            {hasMore && limit >= most && <p>There are more entries: add a filter, or use the command below.</p>}
          </>
        )
      }
    </Loaded>
  )
}

function Empty({ isFiltered, isHost }: { isFiltered: boolean; isHost: boolean }) {
  if (isFiltered) return <Nothing title="No entry matches">Remove a filter to see more.</Nothing>
  return (
    <Nothing title={isHost ? 'There was no request about this host yet' : 'No request has come yet'}>
      Each change, action and refusal shows here, with its user and its effect. It does not matter whether it came from
      this page, the command line or a program.
    </Nothing>
  )
}
