import {
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
} from '@patternfly/react-core'
import type { ReactNode } from 'react'

// Facts is a list of terms; what is not known is left out.
export function Facts({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <DescriptionList isHorizontal isCompact>
      {rows
        .filter(([, v]) => v !== undefined && v !== '' && v !== 0 && v !== null && v !== false)
        .map(([term, v]) => (
          <DescriptionListGroup key={term}>
            <DescriptionListTerm>{term}</DescriptionListTerm>
            <DescriptionListDescription>{v}</DescriptionListDescription>
          </DescriptionListGroup>
        ))}
    </DescriptionList>
  )
}
