import { useEffect, useState } from 'react'

// useLater gives a value once it has not changed for a while: what is typed is not asked about letter by letter.
export function useLater<T>(value: T, ms = 400): T {
  const [late, setLate] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setLate(value), ms)
    return () => clearTimeout(timer)
  }, [value, ms])
  return late
}
