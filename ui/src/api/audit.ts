import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api, ask, must, type Nouns, readPage, type Schemas } from './client'

// Entry is one thing that somebody asked of the server.
export type Entry = Nouns['audit']
export type Change = Schemas['Difference']

// WholeEntry has what the edit changed, and why it can never be undone.
export type WholeEntry = Schemas['AuditEntry']

export type AuditQuery = Record<string, string>

// Refusals cause no event, so that the list is read anew now and then besides.
const again = 10_000

export function useAudit(query: AuditQuery, limit: number) {
  return useQuery({
    queryKey: ['audit', 'page', query, limit],
    placeholderData: keepPreviousData,
    refetchInterval: again,
    queryFn: async () => {
      const { items, next } = await readPage('audit', { ...query, limit })
      return { items, hasMore: !!next }
    },
  })
}

export function useEntry(id: string) {
  return useQuery({
    queryKey: ['audit', id],
    queryFn: () => must(api.GET('/api/v1/audit/{id}', { params: { path: { id: Number(id) } } })),
  })
}

// useUndoPreview asks what an undo would change; the server says why when it cannot.
export function useUndoPreview(id: number, isAsked: boolean) {
  return useQuery({
    queryKey: ['audit', id, 'undo'],
    enabled: isAsked,
    gcTime: 0,
    retry: false,
    queryFn: () => ask<Schemas['Diff']>('POST', `/audit/${id}/undo?dryRun=true`),
  })
}
