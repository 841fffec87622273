import { Button, Label, type LabelProps, Progress } from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useState } from 'react'
import { Link } from 'react-router'
import type { Operation } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useHostNames } from '../../api/names'
import { Ask } from '../../parts/Ask'
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
      warns="The host is quarantined where it would not be safe to go on from there."
      close={close}
    />
  )
}

export function OperationTable({ operations, label = 'Operations' }: { operations: Operation[]; label?: string }) {
  const named = useHostNames(operations.map((o) => o.hostID))
  const me = useMe()
  const [asked, setAsked] = useState<Operation>()
  return (
    <>
      <Table aria-label={label} variant="compact">
        <Thead>
          <Tr>
            <Th modifier="nowrap">Operation</Th>
            <Th>Host</Th>
            <Th modifier="nowrap">Machine</Th>
            <Th width={20}>Step</Th>
            <Th>State</Th>
            <Th width={25}>Reason</Th>
            <Th>Began</Th>
            <Th screenReaderText="Actions" />
          </Tr>
        </Thead>
        <Tbody>
          {operations.map((o) => {
            const host = named(o.hostID)
            const why = me && mayNot(me, 'operator', o.pool || undefined)
            return (
              <Tr key={o.id}>
                <Td dataLabel="Operation">
                  <Link to={`/operations/${o.id}`} aria-label={`${o.kind} of ${host}`}>
                    {o.kind}
                  </Link>
                </Td>
                <Td dataLabel="Host">
                  <Link to={`/hosts/${encodeURIComponent(host)}`}>{host}</Link>
                </Td>
                <Td dataLabel="Machine">
                  {o.machine && <Link to={`/machines/${encodeURIComponent(o.machine)}`}>{o.machine}</Link>}
                </Td>
                <Td dataLabel="Step">
                  <HowFar operation={o} of={host} />
                </Td>
                <Td dataLabel="State">
                  <OperationState state={o.state} />
                </Td>
                <Td dataLabel="Reason">
                  {o.reason} {o.hint && <small>{o.hint}</small>}
                </Td>
                <Td dataLabel="Began">
                  <When at={o.startedAt} />
                </Td>
                <Td isActionCell>
                  {isOpen(o) && (
                    <Button
                      variant="link"
                      isInline
                      isDanger
                      isAriaDisabled={why !== undefined}
                      title={why ?? ''}
                      aria-label={`Cancel ${o.kind} of ${host}${why ? `: ${why}` : ''}`}
                      onClick={() => !why && setAsked(o)}
                    >
                      Cancel
                    </Button>
                  )}
                </Td>
              </Tr>
            )
          })}
        </Tbody>
      </Table>
      {asked && <CancelOperation operation={asked} host={named(asked.hostID)} close={() => setAsked(undefined)} />}
    </>
  )
}
