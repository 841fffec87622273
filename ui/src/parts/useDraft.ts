import { useEffect, useRef, useState } from 'react'
import { useMe } from '../api/me'
import { draftKey } from './drafts'

interface Kept<T> {
  draft: T
  base: T
  version: number | undefined
  at: string
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

function read<T>(key: string): Kept<T> | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}

// useDraft keeps what is edited, and what it began from, until it is saved or thrown away: also when the page is loaded
// anew, the server is away, the login ends, or another page is looked at meanwhile. It lives as long as the tab, and until
// whoever typed it logs out.
export function useDraft<T>(name: string, stored: T, version: number | undefined) {
  const who = useMe()?.name ?? ''
  const key = useRef(draftKey(who, name)).current // as it was at first: a login that ends does not hand the text on
  const [kept, setKept] = useState<Kept<T>>(() => read<T>(key) ?? { draft: stored, base: stored, version, at: '' })
  const wasKept = useRef(kept.at).current
  const isDirty = !same(kept.draft, kept.base)
  useEffect(() => {
    try {
      if (isDirty) sessionStorage.setItem(key, JSON.stringify(kept))
      else sessionStorage.removeItem(key)
    } catch {
      // it is too large to be kept; the question below still guards it
    }
  }, [kept, isDirty, key])
  useEffect(() => {
    if (!isDirty) return
    const ask = (e: BeforeUnloadEvent) => e.preventDefault()
    addEventListener('beforeunload', ask)
    return () => removeEventListener('beforeunload', ask)
  }, [isDirty])
  // What was not touched, or says what is stored by now, follows what is stored.
  useEffect(() => {
    setKept((k) =>
      k.version !== version && (same(k.draft, k.base) || same(k.draft, stored))
        ? { draft: stored, base: stored, version, at: '' }
        : k,
    )
  }, [stored, version])
  return {
    draft: kept.draft,
    base: kept.base,
    version: kept.version,
    isDirty,
    keptAt: wasKept,
    isBehind: kept.version !== version,
    edit: (draft: T) => setKept((k) => ({ ...k, draft, at: new Date().toISOString() })),
    // rest takes what is given as stored, and goes on with the draft upon it.
    rest: (base: T, v: number | undefined, draft: T) =>
      setKept({ draft, base, version: v, at: new Date().toISOString() }),
    forget: () => {
      sessionStorage.removeItem(key)
      setKept({ draft: stored, base: stored, version, at: '' })
    },
  }
}
