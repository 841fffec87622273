import { SearchInput } from '@patternfly/react-core'
import { memo, useId, useRef, useState } from 'react'
import type { HostRow } from '../../api/rows'
import { completions, type Search } from './filter'

// SearchBox is the search with what the last word may become, and what is not understood.
export const SearchBox = memo(function SearchBox({
  value,
  change,
  rows,
  read,
}: {
  value: string
  change: (v: string) => void
  rows: () => readonly HostRow[]
  read: Search
}) {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const [isOpen, open] = useState(false)
  const [at, go] = useState(-1)
  const words = isOpen ? completions(value, rows()) : []
  const take = (w: string) => {
    change(w)
    go(-1)
    input.current?.focus()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it hears the keys of the box in it
    <div
      className="hosts-search"
      onKeyDown={(e) => {
        if (e.key === 'Escape') open(false)
        if (!words.length) return
        if (e.key === 'ArrowDown') go((at + 1) % words.length)
        else if (e.key === 'ArrowUp') go(((at + words.length) % (words.length + 1)) - 1)
        else if ((e.key === 'Tab' && !e.shiftKey) || (e.key === 'Enter' && at >= 0)) {
          const w = words[Math.max(0, at)] as string
          // Tab takes the only one, or the one chosen; otherwise it goes on to the next control.
          if (e.key === 'Tab' && at < 0 && words.length > 1) return
          take(w)
        } else return
        e.preventDefault()
      }}
      onBlur={(e) => e.currentTarget.contains(e.relatedTarget) || open(false)}
    >
      <SearchInput
        ref={input}
        aria-label="Search hosts"
        placeholder='rack=R3 memory>256G !label:gpu lastSeen>1h "free text"'
        value={value}
        onChange={(_, v) => {
          change(v)
          open(true)
          go(-1)
        }}
        onClear={() => change('')}
        aria-describedby={`${id}-faults`}
      />
      {words.length > 0 && (
        <ul className="hosts-words" aria-label="Completions">
          {words.map((w, i) => (
            <li key={w}>
              <button type="button" className={i === at ? 'vt-turn hosts-at' : 'vt-turn'} onClick={() => take(w)}>
                {w.slice(value.length - (/\S*$/.exec(value)?.[0].length ?? 0))}
              </button>
            </li>
          ))}
        </ul>
      )}
      <p id={`${id}-faults`} className="hosts-faults" role="status">
        {read.faults.length > 0 && <>Not understood: {read.faults.join('; ')}</>}
      </p>
    </div>
  )
})
