import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type Call, send } from '../../api/act'
import type { Impact } from '../../api/client'
import { useLater } from '../../parts/later'

// useCheck asks what saving would do, whenever the text has rested for a moment. The last answer stays until the next.
export function useCheck(call: Call | undefined) {
  const now = JSON.stringify(call ?? null)
  const late = useLater(now, 500)
  const check = useQuery({
    queryKey: ['check', late],
    queryFn: () => send<Impact>(JSON.parse(late)),
    enabled: late !== 'null',
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 0,
    gcTime: 0,
  })
  const isNow = now === late && !check.isFetching && !check.isPlaceholderData
  return { impact: check.data, error: check.error, isNow, again: () => void check.refetch() }
}
