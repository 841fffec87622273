import { Button, Label, Progress, Title } from '@patternfly/react-core'
import { Link } from 'react-router'
import { useAct } from '../../api/act'
import type { Job } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { bytesOf, restOf } from '../../parts/bytes'
import { Failure, Loaded } from '../../parts/Failure'
import { When } from '../../parts/When'
import { isEnded, useImports } from './imports'

// Imports shows those under way and those that ended, newest first.
export function Imports() {
  const imports = useImports()
  return (
    <Loaded query={imports}>
      {(all) =>
        all.length > 0 && (
          <section aria-label="Imports" className="imports">
            <Title headingLevel="h2" size="lg">
              Imports
            </Title>
            <ul>
              {all.slice(0, 20).map((j) => (
                <Import key={j.id} job={j} isLast={all.find((x) => x.image === j.image) === j} />
              ))}
            </ul>
            {all.length > 20 && <small>and {all.length - 20} older ones</small>}
          </section>
        )
      }
    </Loaded>
  )
}

const looks = { waiting: 'grey', running: 'blue', done: 'green', failed: 'red' } as const
const steps: Record<string, string> = {
  resolve: 'looking for the files',
  fetch: 'fetching',
  check: 'checking',
  store: 'storing',
}

// Import is one import. Trying again makes a new one: an older one of the same image is only what was.
function Import({ job: j, isLast }: { job: Job; isLast: boolean }) {
  const act = useAct()
  const not = mayNot(useMe(), 'operator', '')
  const p = j.progress
  const total = p.totalBytes ?? 0
  const rest = restOf(p.bytes, total, p.bytesPerSecond ?? 0)
  return (
    <li aria-label={`Import of ${j.image}`}>
      <div className="import-head">
        <strong>{j.state === 'done' ? <Link to={`/images/${j.image}`}>{j.image}</Link> : j.image}</strong>
        <Label color={looks[j.state]} isCompact>
          {j.state}
        </Label>
        <span>
          {j.state === 'running' &&
            `${steps[p.step] ?? p.step} ${p.file ?? ''} ${p.filesN ? `(file ${p.fileN} of ${p.filesN})` : ''}`}
        </span>
        <When at={j.endedAt ?? j.startedAt ?? j.createdAt} />
        {!isEnded(j) && (
          <Button
            variant="link"
            isInline
            isDisabled={not !== undefined || act.isPending}
            onClick={() => act.mutate({ method: 'DELETE', path: `/imports/${j.id}` })}
          >
            Cancel
          </Button>
        )}
        {j.state === 'failed' && isLast && (
          <Button
            variant="link"
            isInline
            isDisabled={not !== undefined || act.isPending}
            onClick={() => act.mutate({ method: 'POST', path: `/imports/${j.id}/retry` })}
          >
            Try again
          </Button>
        )}
        {j.state === 'failed' && !isLast && <small>started again later</small>}
        {not && <small>{not}</small>}
      </div>
      {j.state === 'running' && total > 0 && (
        <Progress
          aria-label={`${p.file} of ${j.image}`}
          value={Math.min(100, Math.round((100 * p.bytes) / total))}
          size="sm"
        />
      )}
      {j.state === 'running' && p.bytes > 0 && (
        <small>
          {bytesOf(p.bytes)}
          {total > 0 && ` of ${bytesOf(total)}`}
          {p.bytesPerSecond ? `, ${bytesOf(p.bytesPerSecond)}/s` : ''}
          {rest && `, ${rest}`}
        </small>
      )}
      {p.note && !isEnded(j) && <p className="import-note">{p.note}</p>}
      {j.error && (
        <p className="import-error">
          <span aria-hidden>✕</span> {j.error} {j.hint && <small>{j.hint}</small>}
        </p>
      )}
      {act.error && <Failure error={act.error} />}
    </li>
  )
}
