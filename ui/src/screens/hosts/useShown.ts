import { useCallback, useMemo } from 'react'
import { useSearchParams } from 'react-router'

// useShown is what is shown, as the address of the page says it.
export function useShown() {
  const [params, setParams] = useSearchParams()
  const q = params.get('q') ?? ''
  const columns = params.get('columns') ?? ''
  const group = params.get('group') ?? ''
  const sort = params.get('sort') ?? ''
  const set = useCallback(
    (more: Partial<Record<'q' | 'columns' | 'group' | 'sort', string>>) =>
      setParams(
        (old) => {
          const next = new URLSearchParams(old)
          for (const [k, v] of Object.entries(more)) {
            if (v) next.set(k, v)
            else next.delete(k)
          }
          return next
        },
        { replace: true },
      ),
    [setParams],
  )
  return useMemo(() => ({ q, columns, group, sort, set }), [q, columns, group, sort, set])
}
export type URLState = ReturnType<typeof useShown>
