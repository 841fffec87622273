import { Banner } from '@patternfly/react-core'
import { useLost } from '../api/useLive'
import { sentence } from '../parts/Ask'

// Lost says why nothing on the page is up to date, such as that no instance has the engine. It goes away by itself.
export function Lost() {
  const lost = useLost()
  return (
    <div role="status">
      {lost && (
        <Banner color="orange" screenReaderText="Warning" className="lost">
          <strong>{sentence(lost.message)}</strong> {sentence(lost.hint)} What you see may be old. The page goes on by
          itself when the server answers again.
        </Banner>
      )}
    </div>
  )
}
