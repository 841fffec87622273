import { Button, ClipboardCopy, Spinner } from '@patternfly/react-core'
import { memo, useCallback, useDeferredValue, useEffect, useMemo, useState } from 'react'
import { useNavigate } from 'react-router'
import { askEarly, type HostRow, useRows } from '../../api/rows'
import { useLive } from '../../api/useLive'
import { Failure, Nothing, Stale } from '../../parts/Failure'
import { useCalm, useLatest } from '../../parts/latest'
import { Screen } from '../../parts/Screen'
import { inOrder, type Sort, VirtualTable } from '../../parts/VirtualTable'
import { BulkBar } from './BulkBar'
import { columnOf, groupOf, usual } from './columns'
import { Facets } from './Facets'
import { matches, parse, type Search, selectorOf, turned } from './filter'
import { SearchBox } from './SearchBox'
import { Tools } from './Tools'
import { useTyped } from './typed'
import { type URLState, useShown } from './useShown'
import { type Shown, Views } from './Views'
import './hosts.css'

askEarly()

// Hosts is every machine that was heard of: searched, grouped, kept as views, and acted on many at once.
export function Hosts() {
  const { rows, isWhole, error, refresh } = useRows(useLive())
  const url = useShown()
  return (
    <Screen title="Hosts" about="All servers that have sent a packet to Slipway, and those that you added.">
      {error !== undefined &&
        (isWhole ? <Stale error={error} again={refresh} /> : <Failure error={error} again={refresh} />)}
      {rows.length === 0 && !isWhole ? (
        error === undefined && <Spinner aria-label="Loading" />
      ) : rows.length === 0 ? (
        <Nothing title="No host has sent a packet yet">
          Switch on a machine that boots from the network. To try Slipway without hardware: sudo slipway try
        </Nothing>
      ) : (
        <Found rows={rows} isWhole={isWhole} url={url} />
      )}
    </Screen>
  )
}

const sortOf = (text: string): Sort =>
  text.startsWith('-') ? { key: text.slice(1), down: true } : { key: text || 'name' }

function Found({ rows, isWhole, url }: { rows: readonly HostRow[]; isWhole: boolean; url: URLState }) {
  const go = useNavigate()
  const [typed, type] = useTyped(url)
  const [isUnfolded, unfold] = useState(false) // on small screens
  const read = useMemo(() => parse(typed), [typed])
  const found = useFound(rows, useDeferredValue(read))
  const late = useDeferredValue(typed) // for what need not keep up with the keys
  const isDrawn = useDeferredValue(true, false) // the table comes first
  const columns = useMemo(() => {
    const some = (url.columns ? url.columns.split(',') : usual).map(columnOf).filter((c) => c !== undefined)
    return some.length ? some : usual.map(columnOf).filter((c) => c !== undefined)
  }, [url.columns])
  const sort = useMemo(() => sortOf(url.sort), [url.sort])
  const shown = useMemo(() => {
    const by = columnOf(sort.key)
    const sorted = sort.key === 'name' && !sort.down ? found : inOrder(found, by ? [by] : [], sort)
    if (!url.group) return sorted
    const group = { key: 'group', name: '', cell: () => null, sort: (h: HostRow) => groupOf(h, url.group) }
    return inOrder(sorted, [group], { key: 'group' })
  }, [found, sort, url.group])
  const [selected, select] = useState<ReadonlySet<string>>(new Set())
  const hosts = useSelected(rows, selected, select)
  const [closed, close] = useState<ReadonlySet<string>>(new Set())
  const groups = useMemo(
    () =>
      url.group
        ? {
            of: (h: HostRow) => groupOf(h, url.group),
            closed,
            turn: (g: string) =>
              close((old) => {
                const next = new Set(old)
                if (!next.delete(g)) next.add(g)
                return next
              }),
          }
        : undefined,
    [url.group, closed],
  )
  const hidden = useMemo(() => {
    if (selected.size === 0) return 0
    const there = new Set(shown.map(keyOf))
    return hosts.filter((h) => !there.has(h.id)).length
  }, [shown, hosts, selected])
  const selector = useMemo(
    () => (hosts.length > 0 && hidden === 0 && hosts.length === found.length ? selectorOf(late, rows) : undefined),
    [hidden, hosts, found, late, rows],
  )
  const cli = useMemo(() => cliOf(late, rows), [late, rows])
  const view: Shown = useMemo(
    () => ({ query: late, columns: url.columns ? url.columns.split(',') : [], group: url.group, sort: url.sort }),
    [late, url.columns, url.group, url.sort],
  )
  const getRows = useLatest(rows)
  const getShown = useLatest(shown)
  const set = url.set
  const turn = useCallback((k: string, v: string) => type((old) => turned(old, k, v)), [type])
  const clear = useCallback(() => select(new Set()), [])
  return (
    <div className="hosts">
      <aside className="hosts-side" aria-label="Narrow down" data-unfolded={isUnfolded || undefined}>
        <Button
          variant="link"
          isInline
          className="hosts-fold"
          aria-expanded={isUnfolded}
          onClick={() => unfold(!isUnfolded)}
        >
          <span aria-hidden>{isUnfolded ? '▾' : '▸'}</span> Views and counts
        </Button>
        <div className="hosts-folded">
          {isDrawn && <Side view={view} set={set} found={found} search={late} turn={turn} />}
        </div>
      </aside>
      <div>
        <SearchBox value={typed} change={type} rows={getRows} read={read} />
        <div className="hosts-top">
          <span aria-live="polite">
            {found.length} of {rows.length} hosts{!isWhole && ', more are coming'}
          </span>
          <Tools url={url} rows={getShown} all={getRows} columns={columns} />
        </div>
        <BulkBar hosts={hosts} hidden={hidden} selector={selector} clear={clear} />
        <VirtualTable
          label="Hosts"
          columns={columns}
          rows={shown}
          keyOf={keyOf}
          nameOf={nameOf}
          sort={sort}
          onSort={(s) => set({ sort: s.key === 'name' && !s.down ? '' : `${s.down ? '-' : ''}${s.key}` })}
          selected={selected}
          onSelect={select}
          onOpen={(h) => go(`/hosts/${encodeURIComponent(h.name)}`)}
          groups={groups}
        />
        {found.length === 0 && (
          <Nothing title="No host matches">
            <Button variant="link" onClick={() => type('')}>
              Show all {rows.length}
            </Button>
          </Nothing>
        )}
        {isDrawn && <Cli cli={cli} />}
      </div>
    </div>
  )
}

// Side is what narrows down: views that are kept, and counts.
const Side = memo(function Side({
  view,
  set,
  found,
  search,
  turn,
}: {
  view: Shown
  set: URLState['set']
  found: readonly HostRow[]
  search: string
  turn: (key: string, value: string) => void
}) {
  const show = useCallback(
    (v: Shown) =>
      set({ q: v.query ?? '', columns: v.columns?.join(',') ?? '', group: v.group ?? '', sort: v.sort ?? '' }),
    [set],
  )
  const counted = useCalm(useDeferredValue(found), useDeferredValue(search)) // the table comes first
  return (
    <>
      <Views shown={view} show={show} />
      <Facets rows={counted} search={search} turn={turn} />
    </>
  )
})

const keyOf = (h: HostRow) => h.id
const nameOf = (h: HostRow) => h.name
const none: HostRow[] = []

// useFound gives the hosts that a search finds. A host that did not change is not looked at again, unless time itself
// changes what is found.
function useFound(rows: readonly HostRow[], read: Search): readonly HostRow[] {
  const [, tick] = useState(0)
  useEffect(() => {
    if (!read.hasTime) return
    const timer = setInterval(() => tick((n) => n + 1), 10_000)
    return () => clearInterval(timer)
  }, [read])
  const known = useMemo(() => ({ read, of: new WeakMap<HostRow, boolean>() }), [read])
  const stamp = read.hasTime ? Math.floor(Date.now() / 10_000) : 0
  return useMemo(() => {
    void stamp
    if (read.any.every((t) => t.length === 0)) return rows
    return rows.filter((h) => {
      if (read.hasTime) return matches(h, read)
      let is = known.of.get(h)
      if (is === undefined) {
        is = matches(h, read)
        known.of.set(h, is)
      }
      return is
    })
  }, [rows, read, known, stamp])
}

// useSelected gives the selected hosts as they are now. One that is gone is selected no more.
function useSelected(
  rows: readonly HostRow[],
  selected: ReadonlySet<string>,
  select: (s: ReadonlySet<string>) => void,
): HostRow[] {
  const hosts = useMemo(() => (selected.size ? rows.filter((h) => selected.has(h.id)) : none), [rows, selected])
  useEffect(() => {
    if (hosts.length < selected.size) select(new Set(hosts.map(keyOf)))
  }, [hosts, selected, select])
  return hosts
}

// cliOf is the command that lists the hosts of a search, undefined when there is none.
function cliOf(search: string, rows: readonly HostRow[]): string | undefined {
  if (search.trim() === '') return 'slipway host list'
  const selector = selectorOf(search, rows)
  return selector && `slipway host list --selector '${selector.replaceAll("'", `'\\''`)}'`
}

// Cli shows the command that lists the same hosts, where there is one.
const Cli = memo(function Cli({ cli }: { cli: string | undefined }) {
  return cli ? (
    <ClipboardCopy
      isReadOnly
      hoverTip="Copy"
      clickTip="Copied"
      textAriaLabel="Command that lists the same"
      className="hosts-tools"
    >
      {cli}
    </ClipboardCopy>
  ) : (
    <small className="hosts-tools">No single command lists exactly these hosts. The export has them.</small>
  )
})
