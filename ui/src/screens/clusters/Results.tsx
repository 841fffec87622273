import { Alert, Label } from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import type { Schemas } from '../../api/client'

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
      <Table variant="compact" aria-label="Checks of the cluster">
        <Thead>
          <Tr>
            <Th>Is good</Th>
            <Th>What</Th>
            <Th>Found</Th>
          </Tr>
        </Thead>
        <Tbody>
          {(results ?? []).map((r) => (
            <Tr key={r.name}>
              <Td dataLabel="Is good">
                <Label isCompact color={r.isGood ? 'green' : 'red'}>
                  {r.isGood ? '● yes' : '✕ no'}
                </Label>
              </Td>
              <Td dataLabel="What">{r.name}</Td>
              <Td dataLabel="Found">
                {r.detail} {r.hint && <small>{r.hint}</small>}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </div>
  )
}
