import { Link } from 'react-router'
import type { HostRow } from '../../api/rows'
import { State, Tag } from '../../parts/State'
import type { Column } from '../../parts/VirtualTable'
import { When } from '../../parts/When'
import { keys, valuesOf } from './filter'

const flagColours: Record<string, 'blue' | 'orange' | 'grey' | 'red' | 'purple'> = {
  protected: 'blue',
  maintenance: 'orange',
  armed: 'red',
  adopted: 'purple',
}

export function memoryText(mib: number | undefined): string {
  if (!mib) return ''
  return mib >= 1024 ? `${Math.round(mib / 102.4) / 10} GiB` : `${mib} MiB`
}

const plain = (
  key: string,
  name: string,
  of: (h: HostRow) => string | undefined,
  min = 8,
  grow = 1,
): Column<HostRow> => ({
  key,
  name,
  min,
  grow,
  cell: (h) => <span title={of(h)}>{of(h)}</span>,
  sort: (h) => of(h) ?? '',
})

const time = (key: string, name: string, of: (h: HostRow) => string | undefined): Column<HostRow> => ({
  key,
  name,
  min: 8,
  cell: (h) => <When at={of(h)} />,
  sort: (h) => -Date.parse(of(h) ?? '0001-01-01T00:00:00Z'),
})

const all: Column<HostRow>[] = [
  {
    key: 'name',
    name: 'Name',
    min: 10,
    grow: 2,
    cell: (h) => (
      <Link to={`/hosts/${encodeURIComponent(h.name)}`} title={h.name} tabIndex={-1}>
        {h.name}
      </Link>
    ),
    sort: (h) => h.name,
  },
  { key: 'state', name: 'State', min: 6.5, cell: (h) => <State state={h.state} />, sort: (h) => h.state },
  {
    key: 'flag',
    name: 'Flags',
    min: 5,
    grow: 0.5,
    cell: (h) =>
      h.flags?.map((f) => (
        <Tag key={f} color={flagColours[f] ?? 'grey'}>
          {f}
        </Tag>
      )),
    sort: (h) => h.flags?.join() ?? '',
  },
  {
    key: 'issue',
    name: 'Issues',
    min: 5,
    grow: 0.5,
    cell: (h) =>
      h.issues?.length ? (
        <span title={h.issues.join(', ')}>
          <span aria-hidden>⚠ </span>
          {h.issues.join(', ')}
        </span>
      ) : null,
    sort: (h) => -(h.issues?.length ?? 0),
  },
  {
    key: 'place',
    name: 'Place',
    min: 10,
    cell: (h) => {
      const place = [h.place.site, h.place.row, h.place.rack, h.place.unit && `U${h.place.unit}`]
        .filter(Boolean)
        .join(' / ')
      return <span title={place}>{place}</span>
    },
    sort: (h) => [h.place.site, h.place.row, h.place.rack, h.place.unit ?? ''].join(' '),
  },
  plain('manufacturer', 'Manufacturer', (h) => h.manufacturer),
  plain('model', 'Model', (h) => [h.manufacturer, h.product].filter(Boolean).join(' '), 9, 2),
  {
    key: 'memory',
    name: 'Memory',
    min: 6,
    cell: (h) => memoryText(h.memoryMiB),
    sort: (h) => h.memoryMiB ?? '',
  },
  plain('cpu', 'Processor', (h) => h.cpu, 10, 2),
  plain('serial', 'Serial', (h) => h.serial),
  plain('asset', 'Asset tag', (h) => h.assetTag),
  plain('uuid', 'UUID', (h) => h.uuid, 18, 1),
  {
    key: 'mac',
    name: 'MAC',
    min: 11,
    cell: (h) => (
      <span title={h.macs?.join('\n')}>
        {h.macs?.[0]}
        {(h.macs?.length ?? 0) > 1 && ` +${(h.macs?.length ?? 0) - 1}`}
      </span>
    ),
    sort: (h) => h.macs?.[0] ?? '',
  },
  plain('vendor', 'Network card', (h) => h.vendor, 9),
  plain('ip', 'Address', (h) => h.address, 8),
  plain('switch', 'Switch port', (h) => h.switch, 9),
  plain('power', 'Power', (h) => h.power, 5),
  plain('driver', 'Powered by', (h) => h.driver, 6),
  plain('machine', 'Machine', (h) => h.machine, 8),
  plain('pool', 'Pool', (h) => h.pool, 7),
  plain('profile', 'Profile', (h) => h.profile, 7),
  plain('arch', 'Architecture', (h) => h.arch, 7),
  plain('firmware', 'Firmware', (h) => h.firmware, 6),
  time('lastSeen', 'Last seen', (h) => h.lastSeenAt),
  time('stateFor', 'In this state', (h) => h.stateSinceAt),
  plain('reason', 'Because', (h) => h.stateReason, 12, 3),
]

export const usual = [
  'name',
  'state',
  'flag',
  'issue',
  'place',
  'model',
  'serial',
  'mac',
  'ip',
  'power',
  'machine',
  'lastSeen',
]

const ofLabel = (label: string) => plain(`label:${label}`, label, (h) => h.labels?.[label])

// columnOf finds a column; label:KEY is one for every label there is.
export function columnOf(key: string): Column<HostRow> | undefined {
  if (key.startsWith('label:') && key.length > 6) return ofLabel(key.slice(6))
  return all.find((c) => c.key === key)
}

// allColumns are all that may be chosen, those of labels too.
export const allColumns = (labels: readonly string[]): Column<HostRow>[] => [...all, ...labels.map(ofLabel)]

// textOf is what an export says in a column.
export function textOf(h: HostRow, key: string): string {
  switch (key) {
    case 'place':
      return [h.place.site, h.place.row, h.place.rack, h.place.unit && `U${h.place.unit}`].filter(Boolean).join('/')
    case 'memory':
      return h.memoryMiB ? `${h.memoryMiB}` : ''
    case 'lastSeen':
      return h.lastSeenAt ?? ''
    case 'stateFor':
      return h.stateSinceAt ?? ''
    case 'reason':
      return h.stateReason ?? ''
    case 'model':
      return [h.manufacturer, h.product].filter(Boolean).join(' ')
  }
  return valuesOf(h, key).join(' ')
}

// csvOf writes rows as CSV (RFC 4180). What a spreadsheet would take for a formula gets an apostrophe before it: the texts
// are the machines' own.
export function csvOf(rows: readonly HostRow[], columns: readonly string[]): string {
  const cell = (t: string) => {
    const safe = /^[=+\-@\t\r]/.test(t) ? `'${t}` : t
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  }
  const line = (cells: string[]) => `${cells.map(cell).join(',')}\r\n`
  return line([...columns]) + rows.map((h) => line(columns.map((c) => textOf(h, c)))).join('')
}

// groupable are the keys that hosts are grouped and counted by.
export const groupable = [
  'state',
  'site',
  'row',
  'rack',
  'model',
  'manufacturer',
  'arch',
  'firmware',
  'pool',
  'profile',
  'power',
  'flag',
  'issue',
].filter((k) => keys[k])

// groupOf is the heading that a host stands under.
export function groupOf(h: HostRow, key: string): string {
  const values = valuesOf(h, key).filter((v) => v !== '')
  return values.length ? values.join(', ') : `no ${key.replace('label:', '')}`
}
