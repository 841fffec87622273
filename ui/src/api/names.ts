import { useQueries } from '@tanstack/react-query'
import { api, must } from './client'

// namesMax is how many names are asked for one by one; what is beyond shows by its id.
const namesMax = 200

// useHostNames finds the names of hosts by their ids, without reading the list of all hosts.
export function useHostNames(ids: (string | undefined)[]): (id: string | undefined) => string {
  const wanted = [...new Set(ids.filter((id): id is string => !!id))].slice(0, namesMax)
  const names = useQueries({
    queries: wanted.map((id) => ({
      queryKey: ['hostname', id],
      staleTime: 300_000,
      queryFn: async () => (await must(api.GET('/api/v1/hosts/{host}', { params: { path: { host: id } } }))).name,
    })),
    combine: (answers) => new Map(wanted.map((id, i) => [id, answers[i]?.data])),
  })
  return (id) => (id ? (names.get(id) ?? id) : '')
}
