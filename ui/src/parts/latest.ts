import { useCallback, useEffect, useRef, useState } from 'react'

// useLatest gives a function that always answers with the newest value: whoever needs it only when asked is not drawn anew
// with every change of it.
export function useLatest<T>(value: T): () => T {
  const ref = useRef(value)
  ref.current = value
  return useCallback(() => ref.current, [])
}

// useCalm gives a value that changes all the time at most once in ms; with another key it follows at once.
export function useCalm<T>(value: T, key: unknown, ms = 1000): T {
  const [shown, show] = useState({ value, key, at: Number.NEGATIVE_INFINITY })
  useEffect(() => {
    if (shown.value === value && shown.key === key) return
    const wait = shown.key === key ? Math.max(0, shown.at + ms - performance.now()) : 0
    const timer = setTimeout(() => show({ value, key, at: performance.now() }), wait)
    return () => clearTimeout(timer)
  }, [value, key, shown, ms])
  return shown.key === key ? shown.value : value
}
