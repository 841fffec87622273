import { useQuery } from '@tanstack/react-query'
import { api, must, type Schemas } from '../../api/client'
import { Loaded } from '../../parts/Failure'

type RangeUse = Schemas['RangeUse']

const parts = ['leased', 'kept', 'reserved', 'conflict', 'free'] as const

const meanings: Record<(typeof parts)[number], string> = {
  leased: 'leased',
  kept: 'kept for its last owner',
  reserved: 'reserved, not in use',
  conflict: 'in conflict',
  free: 'free',
}

function Bar({ use, label }: { use: RangeUse; label: string }) {
  const said = parts.filter((p) => use[p] > 0).map((p) => `${use[p]} ${meanings[p]}`)
  return (
    <div className="use-bar" role="img" aria-label={`${label}: ${said.join(', ') || 'nothing'}`}>
      {parts
        .filter((p) => use[p] > 0)
        .map((p) => (
          <span key={p} className={`use-${p}`} style={{ flex: `${use[p]} 0 0` }} title={`${use[p]} ${meanings[p]}`} />
        ))}
    </div>
  )
}

function Words({ use }: { use: RangeUse }) {
  return (
    <div className="use-words">
      {parts
        .filter((p) => use[p] > 0)
        .map((p) => (
          <span key={p}>
            <i className={`use-${p}`} aria-hidden />
            {use[p]} {meanings[p]}
          </span>
        ))}
    </div>
  )
}

// UseBars shows what the addresses of a subnet are doing; in brief, all ranges as one.
export function UseBars({ subnet, isBrief }: { subnet: string; isBrief?: boolean }) {
  const use = useQuery({
    queryKey: ['leases', 'usage', subnet],
    queryFn: () => must(api.GET('/api/v1/subnets/{name}/usage', { params: { path: { name: subnet } } })),
  })
  return (
    <Loaded query={use}>
      {({ ranges: all, outside }) => {
        if (isBrief) {
          const sum = all.reduce<RangeUse>(
            (a, r) => ({
              total: a.total + r.total,
              free: a.free + r.free,
              leased: a.leased + r.leased,
              kept: a.kept + r.kept,
              reserved: a.reserved + r.reserved,
              conflict: a.conflict + r.conflict,
            }),
            { total: 0, free: 0, leased: 0, kept: 0, reserved: 0, conflict: 0 },
          )
          if (sum.total === 0) return <>no range; {outside.leased + outside.reserved} reserved</>
          return (
            <>
              <Bar use={sum} label={subnet} />
              <small>
                {sum.leased + sum.reserved + sum.conflict} of {sum.total} used
              </small>
            </>
          )
        }
        return (
          <section aria-label="Ranges">
            {all.length === 0 && <p>The subnet has no range: only machines with a reservation get an address.</p>}
            {all.map((r) => (
              <div key={r.first} className="use-range">
                <strong>
                  {r.first} - {r.last}
                </strong>{' '}
                ({r.total} addresses)
                <Bar use={r} label={`${r.first} to ${r.last}`} />
                <Words use={r} />
              </div>
            ))}
            {outside.total > 0 && (
              <div className="use-range">
                <strong>Outside of the ranges</strong>
                <Words use={outside} />
              </div>
            )}
          </section>
        )
      }}
    </Loaded>
  )
}
