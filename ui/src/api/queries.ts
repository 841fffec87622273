import { useQuery } from '@tanstack/react-query'
import { ask, type Nouns, type Part, type Query, readPage } from './client'

// all reads every page of a list.
async function all<N extends keyof Nouns>(noun: N, query: Query): Promise<Nouns[N][]> {
  const items: Nouns[N][] = []
  for (let after = ''; ; ) {
    const page = await readPage(noun, { limit: 1000, ...query, ...(after && { after }) })
    items.push(...page.items)
    if (!page.next) return items
    after = page.next
  }
}

// listKey is where a list is kept.
export const listKey = (noun: keyof Nouns, query: Query = {}) => [noun, 'list', query]

// useList gives a list. Who takes nothing of it while drawing is drawn with every step of every request.
export function useList<N extends keyof Nouns>(noun: N, query: Query = {}) {
  return useQuery({ queryKey: listKey(noun, query), queryFn: () => all(noun, query) })
}

// useOne gives one of a noun, or a part of it, such as /uses of a secret.
export function useOne<N extends keyof Nouns, P extends string = ''>(noun: N, name: string, part?: P) {
  return useQuery({
    queryKey: [noun, name, part ?? ''],
    queryFn: () => ask<Part<N, P>>('GET', `/${noun}/${encodeURIComponent(name)}${part ?? ''}`),
    enabled: name !== '',
  })
}
