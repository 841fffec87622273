import { ExpandableSection } from '@patternfly/react-core'
import { createContext, memo, useContext, useMemo, useState } from 'react'
import type { HostRow } from '../../api/rows'
import { has, valuesOf } from './filter'

const facets: [string, string][] = [
  ['state', 'State'],
  ['site', 'Site'],
  ['row', 'Row'],
  ['rack', 'Rack'],
  ['issue', 'Open issues'],
  ['flag', 'Flags'],
  ['pool', 'Pool'],
  ['profile', 'Profile'],
  ['model', 'Model'],
  ['arch', 'Architecture'],
  ['firmware', 'Firmware'],
  ['power', 'Power'],
]
const shownAtFirst = 8
const shownMax = 200

// Counted are the hosts that are counted. Only facets that are open look at them: at a hundred changes a second the others are
// not drawn anew.
const Counted = createContext<readonly HostRow[]>([])

// Facets counts what is found under each value, and turns a value into a part of the search.
export const Facets = memo(function Facets({
  rows,
  search,
  turn,
}: {
  rows: readonly HostRow[]
  search: string
  turn: (key: string, value: string) => void
}) {
  const labels = useMemo(() => {
    const n = new Map<string, number>()
    for (const h of rows) for (const k of Object.keys(h.labels ?? {})) n.set(k, (n.get(k) ?? 0) + 1)
    return [...n]
      .sort((a, b) => b[1] - a[1])
      .slice(0, 12)
      .map(([k]) => [`label:${k}`, `Label ${k}`] as [string, string])
  }, [rows])
  return (
    <Counted value={rows}>
      {[...facets, ...labels].map(([key, title]) => (
        <Facet key={key} name={key} title={title} search={search} turn={turn} />
      ))}
    </Counted>
  )
})

interface One {
  name: string
  title: string
  search: string
  turn: (key: string, value: string) => void
}

const openAtFirst = ['state', 'rack', 'issue']

const Facet = memo(function Facet(p: One) {
  const [isOpen, open] = useState(openAtFirst.includes(p.name))
  return (
    <ExpandableSection toggleText={p.title} isExpanded={isOpen} onToggle={(_, v) => open(v)} className="hosts-facet">
      {isOpen && <Values {...p} />}
    </ExpandableSection>
  )
})

function Values({ name, title, search, turn }: One) {
  const rows = useContext(Counted)
  const [isAll, all] = useState(false)
  const counts = useMemo(() => {
    const n = new Map<string, number>()
    for (const h of rows) for (const v of valuesOf(h, name)) if (v) n.set(v, (n.get(v) ?? 0) + 1)
    return [...n].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
  }, [rows, name])
  return (
    <>
      {counts.length === 0 && <small>none</small>}
      <ul className="hosts-list" aria-label={title}>
        {counts.slice(0, isAll ? shownMax : shownAtFirst).map(([value, n]) => {
          const is = has(search, name, value)
          return (
            <li key={value}>
              <button
                type="button"
                className="vt-turn hosts-value"
                aria-pressed={is}
                title={value}
                onClick={() => turn(name, value)}
              >
                <bdi className="hosts-cut">{value}</bdi> <span className="hosts-n">{n}</span>
              </button>
            </li>
          )
        })}
      </ul>
      {counts.length > shownAtFirst && (
        <button type="button" className="vt-turn hosts-more" onClick={() => all(!isAll)}>
          {isAll ? 'fewer' : `${counts.length - shownAtFirst} more`}
        </button>
      )}
    </>
  )
}
