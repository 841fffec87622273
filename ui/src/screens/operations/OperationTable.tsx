import { Button, Label, type LabelProps, Progress } from '@patternfly/react-core'
import { useState } from 'react'
import { Link } from 'react-router'
import type { Operation } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useHostNames } from '../../api/names'
import { Ask } from '../../parts/Ask'
import { Rows } from '../../parts/Rows'
import { When } from '../../parts/When'

const colours: Record<string, LabelProps['color']> = {
  running: 'blue',
  waiting: 'orange',
  done: 'green',
  failed: 'red',
  cancelled: 'grey',
}
const glyphs: Record<string, string> = { running: '◑', waiting: '◔', done: '●', failed: '✕', cancelled: '○' }

export const isOpen = (o: Operation) => o.state === 'running' || o.state === 'waiting'

export function OperationState({ state }: { state: string }) {
  return (
    <Label isCompact color={colours[state] ?? 'grey'}>
      <span aria-hidden>{glyphs[state] ?? '·'}</span> {state}
    </Label>
  )
}

// stepNames are the words for steps whose name in the API is no everyday word.
const stepNames: Record<string, string> = { rest: 'switch off or wait' }

// HowFar is what an operation is at, in bytes where that means something. A finished one is at no step any more.
export function HowFar({ operation: o, of }: { operation: Operation; of: string }) {
  const { bytes = 0, total = 0, detail, bytesPerSecond = 0 } = o.progress ?? {}
  return (
    <>
      {o.state !== 'done' && (stepNames[o.step] ?? o.step)}
      {o.attemptN > 1 && <small> (attempt {o.attemptN})</small>}
      {isOpen(o) && total > 0 && (
        <Progress aria-label={`${o.step} of ${of}`} value={Math.min(100, (100 * bytes) / total)} size="sm" />
      )}
      {isOpen(o) && (detail || bytesPerSecond > 0) && (
        <small>
          {' '}
          {detail} {bytesPerSecond > 0 && `${(bytesPerSecond / 1e6).toFixed(1)} MB/s`}
        </small>
      )}
    </>
  )
}

// CancelOperation asks before an operation is ended.
export function CancelOperation({
  operation: o,
  host,
  close,
}: {
  operation: Operation
  host: string
  close: () => void
}) {
  return (
    <Ask
      title={`Cancel ${o.kind} of ${host}?`}
      verb="Cancel the operation"
      call={{ method: 'POST', path: `/operations/${encodeURIComponent(o.id)}/cancel` }}
      cli={`slipway operation cancel ${o.id}`}
      warns={lost(o.kind)}
      close={close}
    />
  )
}

// lost says what the end of an operation leaves behind.
const lost = (kind: string) =>
  kind === 'power' || kind === 'rotate'
    ? 'The host stays as it is.'
    : kind === 'inspect'
      ? 'The host is available after that.'
      : 'Slipway quarantines the host, because its disks may be half written or half wiped. Its machine, if it has one, fails.'

export function OperationTable({ operations, label = 'Operations' }: { operations: Operation[]; label?: string }) {
  const named = useHostNames(operations.map((o) => o.hostID))
  const me = useMe()
  const [asked, setAsked] = useState<Operation>()
  const cancel = (o: Operation) => {
    const why = me && mayNot(me, 'operator', o.pool || undefined)
    return (
      isOpen(o) && (
        <Button
          variant="link"
          isInline
          isDanger
          isAriaDisabled={why !== undefined}
          title={why ?? ''}
          aria-label={`Cancel ${o.kind} of ${named(o.hostID)}${why ? `: ${why}` : ''}`}
          onClick={() => !why && setAsked(o)}
        >
          Cancel
        </Button>
      )
    )
  }
  return (
    <>
      <Rows
        label={label}
        rows={operations}
        keyOf={(o) => o.id}
        columns={[
          [
            'Operation',
            (o) => (
              <Link to={`/operations/${o.id}`} aria-label={`${o.kind} of ${named(o.hostID)}`}>
                {o.kind}
              </Link>
            ),
            { modifier: 'nowrap' },
          ],
          ['Host', (o) => <Link to={`/hosts/${encodeURIComponent(named(o.hostID))}`}>{named(o.hostID)}</Link>],
          ['Machine', (o) => o.machine && <Link to={`/machines/${encodeURIComponent(o.machine)}`}>{o.machine}</Link>],
          ['Step', (o) => <HowFar operation={o} of={named(o.hostID)} />, { width: 20 }],
          ['State', (o) => <OperationState state={o.state} />],
          [
            'Reason',
            (o) => (
              <>
                {o.reason} {o.hint && <small>{o.hint}</small>}
              </>
            ),
            { width: 25 },
          ],
          ['Began', (o) => <When at={o.startedAt} />],
          ['Actions', cancel],
        ]}
      />
      {asked && <CancelOperation operation={asked} host={named(asked.hostID)} close={() => setAsked(undefined)} />}
    </>
  )
}
