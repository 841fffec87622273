import { Banner, Button } from '@patternfly/react-core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { api, must } from '../api/client'
import { useLine } from '../api/useLive'

// Updated says that the server has become another version than the one this page came from.
export function Updated() {
  const line = useLine()
  const [first, setFirst] = useState('')
  const version = useQuery({
    queryKey: ['version'],
    queryFn: () => must(api.GET('/api/v1/version')),
    refetchInterval: 60_000,
    staleTime: 0,
  })
  const is = version.data?.version
  useEffect(() => {
    if (is && !first) setFirst(is)
  }, [is, first])
  const { refetch } = version
  useEffect(() => {
    if (line === 'live') void refetch() // it may be another server now
  }, [line, refetch])
  if (!is || !first || is === first) return null
  return (
    <Banner color="blue" screenReaderText="Information">
      Slipway was updated to {is}.{' '}
      <Button variant="link" isInline onClick={() => location.reload()}>
        Load the page again
      </Button>
    </Banner>
  )
}
