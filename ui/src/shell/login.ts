import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { send } from '../api/act'
import { api, must, onOut, Problem } from '../api/client'
import type { Me } from '../api/me'
import { keepDraftsOf } from '../parts/drafts'
import { onTold, tell } from './tabs'

// Where somebody is: not known yet, in, out, or out because the login has ended.
export type Whereabouts = 'unknown' | 'in' | 'out' | 'ended' | 'away'

// tryEvery is how often a page asks again that was loaded while the server could not answer.
const tryEvery = 3_000

// useLogin says whether somebody is logged in. The page stays where it is meanwhile, so that whoever comes in again goes on
// there.
export function useLogin() {
  const queries = useQueryClient()
  const [at, setAt] = useState<Whereabouts>('unknown')
  const [tryN, setTryN] = useState(0)
  const [who, setWho] = useState('') // had the page last; '' for nobody
  const [why, setWhy] = useState<unknown>() // it is not known who is here
  const [notLeft, setNotLeft] = useState<unknown>()
  useEffect(() => {
    if (tryN < 0) return
    let isOver = false
    must(api.GET('/api/v1/me')).then(
      (me) => {
        if (isOver) return
        keepDraftsOf(me.name)
        queries.setQueryData(['me'], me)
        setWho(me.name)
        setAt('in')
        tell() // a login at the organisation's own page ends with a page that is loaded
      },
      (err) => {
        if (isOver) return
        setWhy(err)
        setAt(err instanceof Problem && err.status === 401 ? 'out' : 'away')
      },
    )
    return () => {
      isOver = true
    }
  }, [queries, tryN])
  useEffect(() => {
    if (at !== 'away') return
    const timer = setInterval(() => setTryN((n) => n + 1), tryEvery)
    return () => clearInterval(timer)
  }, [at])
  useEffect(
    () =>
      onOut(() => {
        setAt((was) => (was === 'in' ? 'ended' : was))
      }),
    [],
  )
  const take = (me: Me) => {
    keepDraftsOf(me.name)
    if (me.name === who) {
      if (at !== 'in') void queries.invalidateQueries()
    } else {
      queries.clear() // another user may see other things
      setWho(me.name)
    }
    queries.setQueryData(['me'], me)
    setAt('in')
  }
  useEffect(() =>
    onTold(() => {
      must(api.GET('/api/v1/me')).then(take, () => {}) // nobody is in: onOut has heard that
    }),
  )
  return {
    at,
    why,
    notLeft,
    who,
    again: () => {
      setAt('unknown')
      setTryN((n) => n + 1)
    },
    entered: (me: Me) => {
      take(me)
      tell()
    },
    leave: async () => {
      setNotLeft(undefined)
      try {
        await send({ method: 'DELETE', path: '/logins/current' })
      } catch (err) {
        // The login still stands, and whoever sits here next would have it: it must not look as if it were gone.
        if (!(err instanceof Problem) || err.status !== 401) return setNotLeft(err)
      }
      keepDraftsOf()
      queries.clear()
      setWho('')
      setAt('out')
      tell()
    },
  }
}
