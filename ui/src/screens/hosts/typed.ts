import { useEffect, useState } from 'react'
import { useLocation } from 'react-router'

// Address is the search as the address of the page says it, and how to change that.
export interface Address {
  q: string
  set: (more: { q: string }) => void
}

// useTyped is the search as it is typed; the address follows when nobody types for a moment. It follows late where there is
// much to draw: an address that comes from here is not taken back into the box, or what was typed meanwhile would be lost.
export function useTyped(url: Address): [string, (v: string | ((old: string) => string)) => void] {
  const [typed, set] = useState(url.q)
  const [seen, see] = useState(url.q)
  const [sent, send] = useState<string[]>([url.q]) // the last is the newest
  if (url.q !== seen) {
    see(url.q)
    const at = sent.lastIndexOf(url.q)
    send(at >= 0 ? sent.slice(at) : [url.q])
    if (at < 0) set(url.q) // a view, a link, the way back
  }
  const put = url.set
  const { pathname } = useLocation()
  useEffect(() => {
    if (typed === sent.at(-1)) return
    const timer = setTimeout(() => {
      if (window.location.pathname !== pathname) return // somebody follows a link: the search must not call them back
      send((old) => [...old, typed])
      put({ q: typed })
    }, 200)
    return () => clearTimeout(timer)
  }, [typed, sent, put, pathname])
  return [typed, set]
}
