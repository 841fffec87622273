import { Label } from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useQuery } from '@tanstack/react-query'
import { api, must, type Schemas } from '../api/client'

export type Check = Schemas['Check']

// useChecks has the server look itself over, which takes seconds: it listens for other DHCP servers.
export function useChecks() {
  return useQuery({
    queryKey: ['selfcheck'],
    staleTime: 300_000,
    queryFn: async () => (await must(api.GET('/api/v1/selfcheck'))).items,
  })
}

const looks = { ok: ['green', '●'], warning: ['orange', '◒'], error: ['red', '✕'] } as const

// Checks lists what was looked at; the worst first.
export function Checks({ checks }: { checks: Check[] }) {
  const order = ['error', 'warning', 'ok']
  const all = [...checks].sort((a, b) => order.indexOf(a.status) - order.indexOf(b.status))
  return (
    <Table variant="compact" aria-label="Self-check">
      <Thead>
        <Tr>
          <Th>State</Th>
          <Th>What</Th>
          <Th>Found</Th>
        </Tr>
      </Thead>
      <Tbody>
        {all.map((c) => (
          <Tr key={`${c.name} ${c.detail}`}>
            <Td dataLabel="State">
              <Label isCompact color={looks[c.status][0]}>
                {looks[c.status][1]} {c.status}
              </Label>
            </Td>
            <Td dataLabel="What">{c.name}</Td>
            <Td dataLabel="Found">
              {c.detail}
              {c.hint && (
                <>
                  <br />
                  <small>{c.hint}</small>
                </>
              )}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  )
}
