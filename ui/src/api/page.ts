import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api, must, type Nouns } from './client'

// usePage reads the beginning of a list that may be long, and says whether there is more.
export function usePage<N extends keyof Nouns>(
  noun: N,
  query: Record<string, string | number | boolean>,
  limit: number,
) {
  return useQuery({
    queryKey: [noun, 'page', query, limit],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const page = (await must(
        (api.GET as (p: string, o: object) => Promise<{ data?: unknown }>)(`/api/v1/${noun}`, {
          params: { query: { ...query, limit: Math.min(limit, 1000) } },
        }),
      )) as { items?: Nouns[N][]; next?: string }
      return { items: page.items ?? [], hasMore: !!page.next }
    },
  })
}
