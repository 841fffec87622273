import { ClipboardCopy, ExpandableSection } from '@patternfly/react-core'
import { type Call, curlOf } from '../api/act'

// Command shows what would do the same outside of the browser.
export function Command({ cli, call }: { cli?: string; call?: Call }) {
  return (
    <ExpandableSection toggleText="The same as a command" isIndented>
      {cli && (
        <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel="Command line">
          {cli}
        </ClipboardCopy>
      )}
      {call && (
        <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel="curl">
          {curlOf(call)}
        </ClipboardCopy>
      )}
    </ExpandableSection>
  )
}
