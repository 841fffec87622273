import {
  Button,
  Checkbox,
  Dropdown,
  DropdownItem,
  DropdownList,
  MenuToggle,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from '@patternfly/react-core'
import { memo, useMemo, useState } from 'react'
import type { HostRow } from '../../api/rows'
import type { Column } from '../../parts/VirtualTable'
import { allColumns, csvOf, groupable, usual } from './columns'
import type { URLState } from './useShown'

interface Props {
  url: URLState
  rows: () => readonly HostRow[] // as shown
  all: () => readonly HostRow[]
  columns: Column<HostRow>[]
}

// Tools are grouping, the choice of columns, and the export of what is shown.
export const Tools = memo(function Tools({ url, rows, all, columns }: Props) {
  const [isChoosing, choose] = useState(false)
  return (
    <span className="hosts-top hosts-tools">
      <Menu
        title={url.group ? `Grouped by ${url.group}` : 'Group by'}
        items={[
          ['nothing', () => url.set({ group: '' })],
          ...groupable.map((g) => [g, () => url.set({ group: g })] as [string, () => void]),
        ]}
      />
      <Button variant="secondary" size="sm" onClick={() => choose(true)}>
        Columns
      </Button>
      <Menu
        title="Export"
        items={[
          [
            'CSV',
            () =>
              save(
                'hosts.csv',
                'text/csv',
                csvOf(
                  rows(),
                  columns.map((c) => c.key),
                ),
              ),
          ],
          ['JSON', () => save('hosts.json', 'application/json', JSON.stringify(rows(), null, 2))],
        ]}
      />
      {isChoosing && <Columns url={url} all={all} chosen={columns.map((c) => c.key)} close={() => choose(false)} />}
    </span>
  )
})

function Menu({ title, items }: { title: string; items: [string, () => void][] }) {
  const [isOpen, open] = useState(false)
  return (
    <Dropdown
      isOpen={isOpen}
      onOpenChange={open}
      onSelect={() => open(false)}
      isScrollable
      toggle={(ref) => (
        <MenuToggle ref={ref} size="sm" isExpanded={isOpen} onClick={() => open(!isOpen)}>
          {title}
        </MenuToggle>
      )}
    >
      <DropdownList>
        {items.map(([name, act]) => (
          <DropdownItem key={name} onClick={act}>
            {name}
          </DropdownItem>
        ))}
      </DropdownList>
    </Dropdown>
  )
}

// save gives the browser a file.
function save(name: string, type: string, text: string) {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const a = document.createElement('a')
  a.href = url
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

function Columns({
  url,
  all,
  chosen,
  close,
}: {
  url: URLState
  all: () => readonly HostRow[]
  chosen: string[]
  close: () => void
}) {
  const [keys, setKeys] = useState(chosen)
  const known = useMemo(() => {
    const labels = new Set<string>()
    for (const h of all()) for (const k of Object.keys(h.labels ?? {})) labels.add(k)
    return allColumns([...labels].sort().slice(0, 200))
  }, [all])
  const ordered = [
    ...keys.map((k) => known.find((c) => c.key === k)).filter((c) => c !== undefined),
    ...known.filter((c) => !keys.includes(c.key)),
  ]
  const move = (key: string, by: number) => {
    const at = keys.indexOf(key)
    const next = keys.filter((k) => k !== key)
    next.splice(Math.max(0, at + by), 0, key)
    setKeys(next)
  }
  const isUsual = keys.join() === usual.join()
  return (
    <Modal isOpen variant="small" onClose={close} aria-labelledby="columns-title">
      <ModalHeader labelId="columns-title" title="Columns" description="In this order." />
      <ModalBody>
        <ul className="hosts-list" aria-label="Columns">
          {ordered.map((c) => {
            const at = keys.indexOf(c.key)
            return (
              <li key={c.key}>
                <Checkbox
                  id={`column-${c.key}`}
                  label={c.name}
                  isChecked={at >= 0}
                  onChange={(_, is) => setKeys(is ? [...keys, c.key] : keys.filter((k) => k !== c.key))}
                />
                {at >= 0 && (
                  <span style={{ marginInlineStart: 'auto', whiteSpace: 'nowrap' }}>
                    <Button
                      variant="plain"
                      size="sm"
                      isDisabled={at === 0}
                      aria-label={`${c.name} further left`}
                      onClick={() => move(c.key, -1)}
                    >
                      ↑
                    </Button>
                    <Button
                      variant="plain"
                      size="sm"
                      isDisabled={at === keys.length - 1}
                      aria-label={`${c.name} further right`}
                      onClick={() => move(c.key, 1)}
                    >
                      ↓
                    </Button>
                  </span>
                )}
              </li>
            )
          })}
        </ul>
      </ModalBody>
      <ModalFooter>
        <Button
          isDisabled={keys.length === 0}
          onClick={() => {
            url.set({ columns: isUsual ? '' : keys.join(',') })
            close()
          }}
        >
          Show these
        </Button>
        <Button variant="secondary" onClick={() => setKeys([...usual])}>
          The usual ones
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  )
}
