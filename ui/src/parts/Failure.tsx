import { Alert, Button, EmptyState, EmptyStateBody, Spinner } from '@patternfly/react-core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Problem } from '../api/client'
import { useLost } from '../api/useLive'

// Failure says what the server said: what is wrong, what to do, and the request's name in the log.
export function Failure({ error, again }: { error: unknown; again?: () => void }) {
  const p = error instanceof Problem ? error : new Problem(0, 'Error', String(error))
  const more = p.fields.filter((f) => f.message !== p.message)
  return (
    <Alert
      variant="danger"
      isInline
      title={p.message}
      actionLinks={
        again && (
          <Button variant="link" isInline onClick={again}>
            Try again
          </Button>
        )
      }
    >
      {p.hint && <p>{p.hint}</p>}
      {more.map((f) => (
        <p key={f.location ?? f.message}>
          {f.location}: {f.message}
        </p>
      ))}
      {p.requestID && <small>request {p.requestID}</small>}
    </Alert>
  )
}

// Stale says why what is shown could not be read again. While the server as a whole cannot answer, the banner says it once.
export function Stale({ error, again }: { error: unknown; again: () => void }) {
  const lost = useLost()
  return lost && error instanceof Problem && error.isOutage ? null : <Failure error={error} again={again} />
}

// Loaded shows what was asked for once it is there.
export function Loaded<T>({ query, children }: { query: UseQueryResult<T>; children: (data: T) => ReactNode }) {
  if (query.data !== undefined) {
    return (
      <>
        {query.error && <Stale error={query.error} again={() => void query.refetch()} />}
        {children(query.data)}
      </>
    )
  }
  if (query.error) return <Failure error={query.error} again={() => void query.refetch()} />
  return <Spinner aria-label="Loading" />
}

export function Nothing({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <EmptyState titleText={title} headingLevel="h2">
      <EmptyStateBody>{children}</EmptyStateBody>
    </EmptyState>
  )
}
