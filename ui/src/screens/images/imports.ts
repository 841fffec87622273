import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { api, headers, type Job, must, Problem, problemOf } from '../../api/client'

export const isEnded = (j: Job) => j.state === 'done' || j.state === 'failed'

// useImports reads the imports that the server remembers: every second while one runs. Imports are no events, because
// they change many times a second.
export function useImports() {
  const queries = useQueryClient()
  const imports = useQuery({
    queryKey: ['imports', 'list'],
    queryFn: async () => (await must(api.GET('/api/v1/imports'))).items.toReversed(),
    refetchInterval: (q) => (q.state.data?.some((j) => !isEnded(j)) ? 1000 : 10_000),
  })
  const done = imports.data?.filter((j) => j.state === 'done').length
  useEffect(() => {
    if (done !== undefined) {
      void queries.invalidateQueries({ predicate: (q) => ['images', 'artefacts'].includes(String(q.queryKey[0])) })
    }
  }, [done, queries])
  return imports
}

// upload sends a file and says how far it is. fetch cannot say that of what it sends.
export function upload(file: File, progress: (bytes: number) => void, stop: AbortSignal): Promise<{ digest: string }> {
  return new Promise((resolve, reject: (p: Problem) => void) => {
    const x = new XMLHttpRequest()
    x.open('POST', `/api/v1/artefacts?name=${encodeURIComponent(file.name.slice(0, 128))}`)
    for (const [name, value] of Object.entries(headers())) x.setRequestHeader(name, value)
    x.setRequestHeader('Content-Type', 'application/octet-stream')
    x.upload.onprogress = (e) => progress(e.loaded)
    x.onerror = () =>
      reject(
        new Problem(
          0,
          'No answer',
          'The upload did not finish.',
          'Check that the server runs, and choose the file again.',
        ),
      )
    x.onabort = () => reject(new Problem(0, 'Stopped', 'The upload was stopped.'))
    x.onload = () => {
      if (x.status === 201) return resolve(JSON.parse(x.responseText) as { digest: string })
      void problemOf(new Response(x.responseText, { status: x.status, statusText: x.statusText })).then(reject)
    }
    stop.addEventListener('abort', () => x.abort())
    x.send(file)
  })
}
