import { SearchInput } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, type RefObject, useDeferredValue, useEffect, useId, useState } from 'react'
import { useNavigate } from 'react-router'
import { api, must, readPage } from '../api/client'
import { linkOf, places } from './places'

interface Hit {
  kind: string
  name: string
  about: string
  to: string
}

const each = 6

const has = (text: string | undefined, part: string) => (text ?? '').toLowerCase().includes(part)

// find asks the server for what a word may mean: a host by name, MAC, serial or address, a machine, a profile, a screen.
async function find(word: string): Promise<Hit[]> {
  const part = word.toLowerCase()
  const isAddress = /^\d{1,3}(\.\d{1,3}){3}$/.test(word)
  const none = { items: [] }
  const [{ items: hosts }, { items: machines }, { items: profiles }, lease] = await Promise.all([
    readPage('hosts', { search: word, limit: each }),
    readPage('machines', { limit: 1000 }).catch(() => none),
    readPage('profiles', { limit: 1000 }).catch(() => none),
    isAddress
      ? must(api.GET('/api/v1/leases/{name}', { params: { path: { name: word } } })).catch(() => undefined)
      : undefined,
  ])
  const hits: Hit[] = hosts.map((h) => ({
    kind: 'host',
    name: h.name,
    about: [h.state, h.serial, h.nics?.[0]?.mac].filter(Boolean).join(' · '),
    to: `/hosts/${encodeURIComponent(h.name)}`,
  }))
  if (lease)
    hits.push({
      kind: 'host',
      name: word,
      about: `leased to ${lease.mac}`,
      to: `/hosts/${encodeURIComponent(lease.mac)}`,
    })
  for (const m of machines.filter((m) => has(m.name, part)).slice(0, each))
    hits.push({ kind: 'machine', name: m.name, about: m.phase, to: `/machines/${encodeURIComponent(m.name)}` })
  for (const p of profiles.filter((p) => has(p.name, part)).slice(0, each))
    hits.push({ kind: 'profile', name: p.name, about: p.image ?? '', to: `/profiles/${encodeURIComponent(p.name)}` })
  for (const p of places.filter((p) => p.name !== '' && has(p.name, part)))
    hits.push({ kind: 'screen', name: p.name, about: p.key ? `g ${p.key}` : '', to: linkOf(p) })
  return hits
}

// Search finds anything by a piece of its name, from every screen.
export function Search({ input }: { input: RefObject<HTMLInputElement | null> }) {
  const [text, setText] = useState('')
  const [isOpen, setOpen] = useState(false)
  const [at, setAt] = useState(0)
  const id = useId()
  const go = useNavigate()
  const word = useDeferredValue(text.trim())
  const found = useQuery({
    queryKey: ['search', word],
    queryFn: () => find(word),
    enabled: isOpen && word.length > 1,
    staleTime: 2_000,
    placeholderData: (before) => before,
  })
  const hits = word.length > 1 ? (found.data ?? []) : []
  const isShown = isOpen && word.length > 1
  // biome-ignore lint/correctness/useExhaustiveDependencies: another word begins at its first hit
  useEffect(() => setAt(0), [word])
  const take = (h: Hit | undefined) => {
    if (!h) return
    setOpen(false)
    setText('')
    go(h.to)
  }
  const press = (e: KeyboardEvent) => {
    if (e.key === 'ArrowDown') setAt((n) => Math.min(n + 1, hits.length - 1))
    else if (e.key === 'ArrowUp') setAt((n) => Math.max(n - 1, 0))
    else if (e.key === 'Enter') take(hits[at])
    else if (e.key === 'Escape') {
      setOpen(false)
      setText('')
      input.current?.blur()
    } else return
    e.preventDefault()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only hears what bubbles up from the field in it
    <div className="search" onKeyDown={press}>
      <SearchInput
        ref={input}
        aria-label="Search everything"
        placeholder="Search ( / )"
        value={text}
        onChange={(_, v) => {
          setText(v.slice(0, 200))
          setOpen(true)
        }}
        onClear={() => setText('')}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        searchInputId={`${id}-field`}
        role="combobox"
        aria-expanded={isShown}
        aria-controls={`${id}-hits`}
        aria-autocomplete="list"
        {...(isShown && hits[at] && { 'aria-activedescendant': `${id}-${at}` })}
        autoComplete="off"
      />
      {isShown && (
        <div className="search-hits" id={`${id}-hits`} role="listbox" aria-label="What was found">
          {hits.map((h, i) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
            <div
              key={`${h.kind} ${h.to}`}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === at}
              className="search-hit"
              onMouseDown={(e) => e.preventDefault()}
              onClick={() => take(h)}
            >
              <span className="search-kind">{h.kind}</span> <strong>{h.name}</strong> <small>{h.about}</small>
            </div>
          ))}
          {hits.length === 0 && (
            <div className="search-hit" role="option" aria-selected={false} aria-disabled>
              {found.isFetching ? 'Searching…' : `Nothing has ${word} in its name, MAC, serial or address`}
            </div>
          )}
        </div>
      )}
    </div>
  )
}
