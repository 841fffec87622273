import { Alert, Label } from '@patternfly/react-core'
import type { Schemas } from '../../api/client'
import { Rows } from '../../parts/Rows'

type Result = Schemas['TargetCheckResult']

// Results lists what was looked at in a cluster, in that order.
export function Results({ isGood, results, good }: { isGood: boolean; results: Result[] | null; good: string }) {
  return (
    <div role="status">
      <Alert
        isInline
        variant={isGood ? 'success' : 'warning'}
        title={isGood ? good : 'Something has to be done first'}
        component="h3"
      />
      <Rows
        label="Checks of the cluster"
        rows={results ?? []}
        keyOf={(r) => r.name}
        columns={[
          [
            'Is good',
            (r) => (
              <Label isCompact color={r.isGood ? 'green' : 'red'}>
                {r.isGood ? '● yes' : '✕ no'}
              </Label>
            ),
          ],
          ['What', (r) => r.name],
          [
            'Found',
            (r) => (
              <>
                {r.detail} {r.hint && <small>{r.hint}</small>}
              </>
            ),
          ],
        ]}
      />
    </div>
  )
}
