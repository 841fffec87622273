import { useQuery } from '@tanstack/react-query'
import { api, must, type Nouns } from './client'

type Query = Record<string, string | number | boolean>
type Listed<T> = { items?: T[] | null; next?: string }

// all reads every page of a list.
async function all<T>(path: string, query: Query = {}): Promise<T[]> {
  const items: T[] = []
  for (let after = ''; ; ) {
    const page = (await must(
      (api.GET as (p: string, o: object) => Promise<{ data?: unknown }>)(path, {
        params: { query: { limit: 1000, ...query, ...(after && { after }) } },
      }),
    )) as Listed<T>
    items.push(...(page.items ?? []))
    if (!page.next) return items
    after = page.next
  }
}

// listKey is where a list is kept.
export const listKey = (noun: keyof Nouns, query: Query = {}) => [noun, 'list', query]

// useList gives a list. Who takes nothing of it while drawing is drawn with every step of every request.
export function useList<N extends keyof Nouns>(noun: N, query: Query = {}) {
  return useQuery({ queryKey: listKey(noun, query), queryFn: () => all<Nouns[N]>(`/api/v1/${noun}`, query) })
}

export function useOne<N extends keyof Nouns, T = Nouns[N]>(noun: N, name: string, part = '') {
  return useQuery({
    queryKey: [noun, name, part],
    queryFn: async () =>
      (await must(
        (api.GET as (p: string, o: object) => Promise<{ data?: unknown }>)(
          `/api/v1/${noun}/${encodeURIComponent(name)}${part}`,
          {},
        ),
      )) as T,
    enabled: name !== '',
  })
}
