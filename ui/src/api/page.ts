import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type Nouns, type Query, readPage } from './client'

// usePage reads the beginning of a list that may be long, and says whether there is more.
export function usePage<N extends keyof Nouns>(noun: N, query: Query, limit: number) {
  return useQuery({
    queryKey: [noun, 'page', query, limit],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const { items, next } = await readPage(noun, { ...query, limit: Math.min(limit, 1000) })
      return { items, hasMore: !!next }
    },
  })
}
