import { Alert, Label, Stack, StackItem, Title } from '@patternfly/react-core'
import { useEffect } from 'react'
import { Link } from 'react-router'
import type { Issue } from '../../api/client'
import { useHostNames } from '../../api/names'
import { useList } from '../../api/queries'
import { Command } from '../../parts/Command'
import { Loaded, Nothing } from '../../parts/Failure'
import { CheckField } from '../../parts/Fields'
import { ChoiceFilter, Filters, useAddress } from '../../parts/Filters'
import { Screen } from '../../parts/Screen'
import { When } from '../../parts/When'

// grouped puts issues of a type together, the worst and the newest first.
export function grouped(issues: Issue[]): [type: string, Issue[]][] {
  const all = new Map<string, Issue[]>()
  for (const i of issues) all.set(i.type, [...(all.get(i.type) ?? []), i])
  const weight = (i: Issue[]) => (i.some((x) => x.severity === 'error' && !x.closedAt) ? 0 : 1)
  return [...all].sort(
    ([, a], [, b]) => weight(a) - weight(b) || Math.max(...b.map((i) => i.id)) - Math.max(...a.map((i) => i.id)),
  )
}

export function Issues() {
  const { get, set } = useAddress()
  const isAll = get('all') !== ''
  const type = get('type')
  const severity = get('severity')
  const issues = useList('issues', isAll ? { all: true } : {})
  const types = grouped(issues.data ?? []).map(([t]) => t)
  return (
    <Screen
      title="Issues"
      about="Open problems, with their cause and what to do. An issue closes by itself when its cause is gone."
    >
      <Filters>
        <ChoiceFilter
          label="Type"
          value={type}
          set={(v) => set('type', v)}
          choices={[
            ['', 'every type'],
            ...[...new Set([...types, ...(type ? [type] : [])])].map((t): [string, string] => [t, t]),
          ]}
        />
        <ChoiceFilter
          label="Severity"
          value={severity}
          set={(v) => set('severity', v)}
          choices={[
            ['', 'errors and warnings'],
            ['error', 'errors'],
            ['warning', 'warnings'],
          ]}
        />
        <CheckField label="also closed issues" value={isAll} set={(on) => set('all', on ? 'yes' : '')} />
      </Filters>
      <Loaded query={issues}>
        {(all) => {
          const shown = all.filter((i) => (!type || i.type === type) && (!severity || i.severity === severity))
          if (shown.length === 0) return <Nothing title={all.length === 0 ? 'No issue is open' : 'No issue matches'} />
          return grouped(shown).map(([t, list]) => (
            <section key={t} aria-label={t} style={{ marginBlockEnd: '1.5rem' }}>
              <Title headingLevel="h2" style={{ marginBlockEnd: '0.5rem' }}>
                {t} <Label isCompact>{list.length}</Label>
              </Title>
              <IssueList issues={list.slice(0, 100)} at={Number(get('id'))} />
              {list.length > 100 && <p>and {list.length - 100} more of the same</p>}
            </section>
          ))
        }}
      </Loaded>
      <Command cli={`slipway issue list${isAll ? ' --all' : ''}`} />
    </Screen>
  )
}

export function IssueList({ issues, at = 0 }: { issues: Issue[]; at?: number }) {
  const named = useHostNames(issues.flatMap((i) => i.hostIDs ?? []))
  useEffect(() => {
    if (at) document.getElementById(`issue-${at}`)?.scrollIntoView({ block: 'center' })
  }, [at])
  return (
    <Stack hasGutter>
      {issues.map((i) => (
        <StackItem key={i.id} id={`issue-${i.id}`}>
          <Alert
            isInline
            variant={i.closedAt ? 'success' : i.severity === 'error' ? 'danger' : 'warning'}
            title={i.cause}
            component="h3"
            className={i.id === at ? 'issue-here' : ''}
          >
            {i.hint && <p>{i.hint}</p>}
            <p>
              <small>
                {i.type} · <When at={i.openedAt} />
                {i.seenN > 1 && (
                  <>
                    , {i.seenN} times, last <When at={i.seenAt} />
                  </>
                )}
                {i.closedAt && (
                  <>
                    , closed <When at={i.closedAt} />
                  </>
                )}
              </small>{' '}
              {(i.hostIDs ?? []).slice(0, 20).map((id) => (
                <span key={id}>
                  <Link to={`/hosts/${encodeURIComponent(named(id))}`}>{named(id)}</Link>{' '}
                </span>
              ))}
              {(i.hostIDs ?? []).length > 20 && `and ${(i.hostIDs ?? []).length - 20} more hosts `}
              {i.subnet && <Link to={`/networks/${encodeURIComponent(i.subnet)}`}>subnet {i.subnet}</Link>}
            </p>
          </Alert>
        </StackItem>
      ))}
    </Stack>
  )
}
