import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api, must } from './client'

// Entry is one thing that somebody asked of the server.
export interface Entry {
  id: number
  at: string
  actor: string
  role?: string
  via: string
  source?: string
  requestID?: string
  operation: string
  noun: string
  name?: string
  hostID?: string
  change?: 'create' | 'update' | 'delete'
  status: number
  detail?: string
  version?: number
  undoOf?: number
  fixed?: string
}

export interface Change {
  field: string
  from: unknown
  to: unknown
}

// WholeEntry has what the edit changed, and why it can never be undone.
export interface WholeEntry extends Entry {
  changes: Change[]
  notUndoable?: string
}

export type AuditQuery = Record<string, string>

const get = api.GET as (p: string, o?: object) => Promise<{ data?: unknown }>

// Refusals cause no event, so that the list is read anew now and then besides.
const again = 10_000

export function useAudit(query: AuditQuery, limit: number) {
  return useQuery({
    queryKey: ['audit', 'page', query, limit],
    placeholderData: keepPreviousData,
    refetchInterval: again,
    queryFn: async () => {
      const params = { query: { ...query, limit } }
      const page = (await must(get('/api/v1/audit', { params }))) as { items?: Entry[]; next?: string }
      return { items: page.items ?? [], hasMore: !!page.next }
    },
  })
}

export function useEntry(id: string) {
  return useQuery({
    queryKey: ['audit', id],
    queryFn: async () => (await must(get(`/api/v1/audit/${encodeURIComponent(id)}`))) as WholeEntry,
  })
}

// useUndoPreview asks what an undo would change; the server says why when it cannot.
export function useUndoPreview(id: number, isAsked: boolean) {
  return useQuery({
    queryKey: ['audit', id, 'undo'],
    enabled: isAsked,
    gcTime: 0,
    retry: false,
    queryFn: async () => {
      const post = api.POST as unknown as typeof get
      return (await must(post(`/api/v1/audit/${id}/undo`, { params: { query: { dryRun: true } } }))) as {
        changes: Change[]
      }
    },
  })
}
