import { Label } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { api, must, type Schemas } from '../api/client'
import { Rows } from './Rows'

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
    <Rows
      label="Self-check"
      rows={all}
      keyOf={(c) => `${c.name} ${c.instance ?? ''} ${c.detail}`}
      columns={[
        [
          'State',
          (c) => (
            <Label isCompact color={looks[c.status][0]}>
              {looks[c.status][1]} {c.status}
            </Label>
          ),
        ],
        ['What', (c) => (c.instance ? `${c.name}, instance ${c.instance}` : c.name)],
        [
          'Found',
          (c) => (
            <>
              {c.detail}
              {c.hint && (
                <>
                  <br />
                  <small>{c.hint}</small>
                </>
              )}
            </>
          ),
        ],
      ]}
    />
  )
}
