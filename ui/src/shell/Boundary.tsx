import { Button, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter } from '@patternfly/react-core'
import { Component, type ReactNode } from 'react'
import { Screen } from '../parts/Screen'

// isOfOtherVersion says whether a part of the page could not be loaded, as happens when the server was updated.
const isOfOtherVersion = (err: Error) =>
  /dynamically imported module|Importing a module|module script/i.test(err.message)

// Boundary keeps a screen that fails from taking the page with it.
export class Boundary extends Component<{ at: string; children: ReactNode }, { error?: Error; at?: string }> {
  override state: { error?: Error; at?: string } = {}

  static getDerivedStateFromError(error: Error) {
    return { error }
  }

  // Another screen is another try.
  static getDerivedStateFromProps(props: { at: string }, state: { error?: Error; at?: string }) {
    return state.at === props.at ? null : { at: props.at, error: undefined }
  }

  override render() {
    const { error } = this.state
    if (!error) return this.props.children
    const title = isOfOtherVersion(error) ? 'This page belongs to another version' : 'This screen has failed'
    return (
      <Screen title={title}>
        <EmptyState titleText="Nothing has changed" headingLevel="h2">
          <EmptyStateBody>
            {isOfOtherVersion(error)
              ? 'The server was updated or does not answer. Load the page again.'
              : 'Load the page again. If it fails again, report this text: '}
            {!isOfOtherVersion(error) && <code>{error.message}</code>}
          </EmptyStateBody>
          <EmptyStateFooter>
            <EmptyStateActions>
              <Button onClick={() => location.reload()}>Reload</Button>
            </EmptyStateActions>
          </EmptyStateFooter>
        </EmptyState>
      </Screen>
    )
  }
}
