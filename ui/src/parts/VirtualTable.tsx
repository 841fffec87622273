import { useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, memo, type ReactNode, useEffect, useId, useMemo, useRef, useState } from 'react'
import './VirtualTable.css'

// Column is one column: its cell shows what it says of a row, sort what rows are put in order by.
export interface Column<T> {
  key: string
  name: string
  min?: number // width in rem, below which the table scrolls instead: 8
  grow?: number // its share of what is left: 1
  cell: (row: T) => ReactNode
  sort?: (row: T) => string | number // without it the column is not sorted by
}

export interface Sort {
  key: string
  down?: boolean
}

// Groups puts rows under headings. Rows come ordered by group; a group that is closed shows its heading only.
export interface Groups<T> {
  of: (row: T) => string
  closed: ReadonlySet<string>
  turn: (group: string) => void
  heading?: (group: string, n: number) => ReactNode
}

interface Table<T> {
  label: string
  columns: Column<T>[]
  rows: readonly T[]
  keyOf: (row: T) => string
  nameOf?: (row: T) => string // for the row's checkbox; its key
  sort?: Sort | undefined
  onSort?: (s: Sort) => void
  selected?: ReadonlySet<string> // keys
  onSelect?: (keys: ReadonlySet<string>) => void // without it nothing is selected
  onOpen?: (row: T) => void // Enter, or a double click
  groups?: Groups<T> | undefined
  height?: string // CSS; without it what the window leaves
}

type Line<T> = { is: 'group'; group: string; n: number } | { is: 'row'; row: T; at: number }
// Lines are what the table shows, made when they are looked at: of ten thousand rows a screen shows thirty.
type Lines<T> = { length: number; at: (line: number) => Line<T> | undefined }

const rowHeight = 40
// printMax is how many rows are printed at most: a printer gets all rows, not only those in view.
const printMax = 2000

// VirtualTable shows any number of rows and keeps only those in view in the page. The keyboard moves through it: arrows,
// Home, End, PgUp and PgDn; Space selects, with Shift a range, Ctrl-A all; Enter opens.
export function VirtualTable<T>(p: Table<T>) {
  const { rows, keyOf, onSelect, selected, groups } = p
  const id = useId()
  const scroller = useRef<HTMLDivElement>(null)
  const [active, setActive] = useState(-1) // line
  const anchor = useRef(-1) // row at which a range began
  const isPrinted = usePrinted()
  const lines = useMemo(() => linesOf(rows, groups), [rows, groups])
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollPaddingStart: rowHeight,
  })
  const at = Math.min(active, lines.length - 1)

  // select turns one row, or with isRange all from where the last selection was.
  const select = (row: number, isRange: boolean) => {
    const r = rows[row]
    if (!onSelect || r === undefined) return
    const next = new Set(selected)
    if (isRange && anchor.current >= 0) {
      const [from, to] = [Math.min(anchor.current, row), Math.max(anchor.current, row)]
      for (const x of rows.slice(from, to + 1)) next.add(keyOf(x))
    } else {
      if (!next.delete(keyOf(r))) next.add(keyOf(r))
      anchor.current = row
    }
    onSelect(next)
  }
  const now = useRef({ select, open: p.onOpen })
  now.current = { select, open: p.onOpen }
  const stable = useMemo(
    () => ({
      select: (row: number, isRange: boolean) => now.current.select(row, isRange),
      open: (row: T) => now.current.open?.(row),
    }),
    [],
  )

  const go = (line: number) => {
    const to = Math.max(0, Math.min(lines.length - 1, line))
    setActive(to)
    virtual.scrollToIndex(to)
    return to
  }
  const page = () => Math.max(1, Math.floor((scroller.current?.clientHeight ?? 400) / rowHeight) - 2)
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.target !== scroller.current || lines.length === 0) return
    const line = lines.at(at)
    const move = movesTo(e.key, at, lines.length, page())
    if (move !== undefined) {
      if (e.shiftKey && onSelect && anchor.current < 0 && line?.is === 'row') select(line.at, false)
      const to = lines.at(go(move))
      if (e.shiftKey && to?.is === 'row') select(to.at, true)
    } else if (e.key === ' ' && line?.is === 'row' && onSelect) select(line.at, e.shiftKey)
    else if (e.key === 'a' && (e.ctrlKey || e.metaKey) && onSelect) onSelect(new Set(rows.map(keyOf)))
    else if (e.key === 'Escape' && selected?.size && onSelect) onSelect(new Set())
    else if (e.key === 'Enter' && line?.is === 'row' && p.onOpen) p.onOpen(line.row)
    else if (line?.is === 'group' && ['Enter', ' ', 'ArrowLeft', 'ArrowRight'].includes(e.key)) groups?.turn(line.group)
    else return
    e.preventDefault()
  }

  const tracks = [
    ...(onSelect ? ['2rem'] : []),
    // Paper cannot be scrolled: all columns share its width.
    ...p.columns.map((c) => (isPrinted ? `minmax(0, ${c.min ?? 8}fr)` : `minmax(${c.min ?? 8}rem, ${c.grow ?? 1}fr)`)),
  ].join(' ')
  const least = isPrinted ? 0 : p.columns.reduce((sum, c) => sum + (c.min ?? 8) + 0.75, onSelect ? 5 : 2)
  const items = isPrinted
    ? Array.from({ length: Math.min(lines.length, printMax) }, (_, index) => ({
        index,
        start: (index + 1) * rowHeight,
      }))
    : virtual.getVirtualItems()
  const total = isPrinted ? Math.min(lines.length, printMax) * rowHeight : virtual.getTotalSize()
  return (
    <div
      ref={scroller}
      className="vt-scroller"
      role="grid"
      aria-label={p.label}
      aria-rowcount={lines.length + 1}
      aria-colcount={p.columns.length + (onSelect ? 1 : 0)}
      {...(onSelect && { 'aria-multiselectable': true })}
      {...(at >= 0 && { 'aria-activedescendant': `${id}-${at}` })}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onFocus={(e) => e.target === scroller.current && at < 0 && setActive(0)}
      style={isPrinted ? { blockSize: 'auto' } : p.height ? { blockSize: p.height } : undefined}
    >
      <Head {...p} tracks={tracks} least={least} />
      <div role="rowgroup" className="vt-body" style={{ height: total, minInlineSize: `${least}rem` }}>
        {items.map((v) => {
          const line = lines.at(v.index)
          if (!line) return null // the rows are fewer since
          const place = {
            gridTemplateColumns: tracks,
            height: rowHeight,
            transform: `translateY(${v.index * rowHeight}px)`,
          }
          if (line.is === 'group') {
            const isOpen = !groups?.closed.has(line.group)
            return (
              <div
                role="row"
                id={`${id}-${v.index}`}
                key={`group ${line.group}`}
                className={v.index === at ? 'vt-row vt-group vt-active' : 'vt-row vt-group'}
                aria-rowindex={v.index + 2}
                style={{ ...place, gridTemplateColumns: '1fr' }}
              >
                <span role="gridcell" aria-colspan={p.columns.length + (onSelect ? 1 : 0)}>
                  <button
                    type="button"
                    className="vt-turn"
                    tabIndex={-1}
                    aria-expanded={isOpen}
                    onClick={() => groups?.turn(line.group)}
                  >
                    <span aria-hidden>{isOpen ? '▾' : '▸'}</span>{' '}
                    {groups?.heading?.(line.group, line.n) ?? `${line.group} (${line.n})`}
                  </button>
                </span>
              </div>
            )
          }
          const key = keyOf(line.row)
          return (
            <Row
              key={key}
              id={`${id}-${v.index}`}
              row={line.row}
              at={line.at}
              line={v.index}
              columns={p.columns as Column<unknown>[]}
              tracks={tracks}
              name={onSelect ? (p.nameOf ?? keyOf)(line.row) : ''}
              isActive={v.index === at}
              isSelected={selected?.has(key) ?? false}
              maySelect={onSelect !== undefined}
              on={stable as On}
              activate={setActive}
            />
          )
        })}
      </div>
    </div>
  )
}

function Head<T>({
  columns,
  sort,
  onSort,
  rows,
  keyOf,
  selected,
  onSelect,
  label,
  tracks,
  least,
}: Table<T> & { tracks: string; least: number }) {
  const chosen = useMemo(
    () => (onSelect && selected?.size ? rows.reduce((n, r) => n + (selected.has(keyOf(r)) ? 1 : 0), 0) : 0),
    [onSelect, selected, rows, keyOf],
  )
  return (
    <div
      role="row"
      className="vt-row vt-head"
      aria-rowindex={1}
      style={{ gridTemplateColumns: tracks, height: rowHeight, minInlineSize: `${least}rem` }}
    >
      {onSelect && (
        <span role="columnheader">
          <input
            type="checkbox"
            aria-label={`Select all ${rows.length} ${label.toLowerCase()} shown`}
            checked={rows.length > 0 && chosen === rows.length}
            ref={(e) => {
              if (e) e.indeterminate = chosen > 0 && chosen < rows.length
            }}
            onChange={(e) => onSelect(e.target.checked ? new Set(rows.map(keyOf)) : new Set())}
          />
        </span>
      )}
      {columns.map((c) => {
        const is = sort?.key === c.key ? (sort.down ? 'descending' : 'ascending') : undefined
        return (
          <span role="columnheader" key={c.key} {...(is && { 'aria-sort': is })}>
            {c.sort && onSort ? (
              <button
                type="button"
                className="vt-turn"
                onClick={() => onSort({ key: c.key, down: is === 'ascending' })}
              >
                {c.name} <span aria-hidden>{is === 'ascending' ? '↑' : is === 'descending' ? '↓' : ''}</span>
              </button>
            ) : (
              c.name
            )}
          </span>
        )
      })}
    </div>
  )
}

interface On {
  select: (row: number, isRange: boolean) => void
  open: (row: unknown) => void
}

// Row is drawn anew only when something of it is new: ten thousand hosts that change should not redraw the ones that do not.
const Row = memo(function Row(p: {
  id: string
  row: unknown
  at: number
  line: number
  columns: Column<unknown>[]
  tracks: string
  name: string
  isActive: boolean
  isSelected: boolean
  maySelect: boolean
  on: On
  activate: (line: number) => void
}) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid takes the keys
    <div
      role="row"
      id={p.id}
      className={`vt-row${p.isActive ? ' vt-active' : ''}${p.isSelected ? ' vt-selected' : ''}`}
      aria-rowindex={p.line + 2}
      {...(p.maySelect && { 'aria-selected': p.isSelected })}
      style={{ gridTemplateColumns: p.tracks, height: rowHeight, transform: `translateY(${p.line * rowHeight}px)` }}
      onClick={() => p.activate(p.line)}
      onDoubleClick={() => p.on.open(p.row)}
    >
      {p.maySelect && (
        <span role="gridcell">
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label={`Select ${p.name}`}
            checked={p.isSelected}
            onChange={() => {}}
            onClick={(e) => p.on.select(p.at, e.shiftKey)}
          />
        </span>
      )}
      {p.columns.map((c) => (
        <span role="gridcell" key={c.key}>
          {c.cell(p.row)}
        </span>
      ))}
    </div>
  )
})

function linesOf<T>(rows: readonly T[], groups: Groups<T> | undefined): Lines<T> {
  if (!groups)
    return {
      length: rows.length,
      at: (line) => {
        const row = rows[line]
        return row === undefined ? undefined : { is: 'row', row, at: line }
      },
    }
  const lines: Line<T>[] = []
  let heading: (Line<T> & { is: 'group' }) | undefined
  rows.forEach((row, at) => {
    const group = groups.of(row)
    if (heading?.group !== group) {
      heading = { is: 'group', group, n: 0 }
      lines.push(heading)
    }
    heading.n++
    if (!groups.closed.has(group)) lines.push({ is: 'row', row, at })
  })
  return { length: lines.length, at: (line) => lines[line] }
}

// movesTo says which line a key goes to.
function movesTo(key: string, at: number, n: number, page: number): number | undefined {
  switch (key) {
    case 'ArrowDown':
      return at + 1
    case 'ArrowUp':
      return at - 1
    case 'Home':
      return 0
    case 'End':
      return n - 1
    case 'PageDown':
      return at + page
    case 'PageUp':
      return at - page
  }
}

// usePrinted says whether the page is being printed now.
function usePrinted(): boolean {
  const [is, set] = useState(false)
  useEffect(() => {
    const [before, after] = [() => set(true), () => set(false)]
    window.addEventListener('beforeprint', before)
    window.addEventListener('afterprint', after)
    return () => {
      window.removeEventListener('beforeprint', before)
      window.removeEventListener('afterprint', after)
    }
  }, [])
  return is
}

// inOrder sorts rows by a column; equal ones stay as they were. Texts with numbers in them go by the numbers.
const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' })
export function inOrder<T>(rows: readonly T[], columns: Column<T>[], sort: Sort | undefined): readonly T[] {
  const by = columns.find((c) => c.key === sort?.key)?.sort
  if (!by) return rows
  const keyed = rows.map((row) => ({ row, key: by(row) }))
  const sign = sort?.down ? -1 : 1
  keyed.sort((a, b) => {
    if (a.key === b.key) return 0
    // What is empty stands at the end either way.
    if (a.key === '') return 1
    if (b.key === '') return -1
    if (typeof a.key === 'number' && typeof b.key === 'number') return sign * (a.key - b.key)
    return sign * collator.compare(String(a.key), String(b.key))
  })
  return keyed.map((k) => k.row)
}
