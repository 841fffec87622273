import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ask, type Method } from './client'

// Call is one request that changes something, as it is sent and as it is shown.
export interface Call {
  method: Method
  path: string // below /api/v1, with its query
  body?: unknown
  version?: number | undefined // what was seen: somebody else's change meanwhile is a 412, not lost
}

// send makes a call and gives what the server says.
export const send = <T = unknown>(c: Call): Promise<T> =>
  ask(c.method, c.path, {
    ...(c.body !== undefined && { body: c.body }),
    ...(c.version !== undefined && { headers: { 'If-Match': `"${c.version}"` } }),
  })

// saveOf is the call that makes one of a noun, or changes the one that was seen.
export const saveOf = (noun: string, old: { name: string; version: number } | undefined, body: unknown): Call =>
  old
    ? { method: 'PUT', path: `/${noun}/${encodeURIComponent(old.name)}`, body, version: old.version }
    : { method: 'POST', path: `/${noun}`, body }

// useAct sends calls one after the other and reads anew what is shown. It shows nothing that the server has not said.
export function useAct<T = unknown>(done?: (answer: T) => void) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (c: Call) => send<T>(c),
    onSuccess: async (answer) => {
      await queries.invalidateQueries()
      done?.(answer)
    },
  })
}

// curlOf is a call as curl would make it; the token stays out of it.
export function curlOf(c: Call, origin = location.origin): string {
  const quoted = (s: string) => `'${s.replaceAll("'", `'\\''`)}'`
  const parts = ['curl', '-X', c.method, '-H', '"Authorization: Bearer $SLIPWAY_TOKEN"']
  if (c.version !== undefined) parts.push('-H', quoted(`If-Match: "${c.version}"`))
  if (c.body !== undefined)
    parts.push('-H', quoted('Content-Type: application/json'), '-d', quoted(JSON.stringify(c.body)))
  return [...parts, quoted(`${origin}/api/v1${c.path}`)].join(' ')
}
