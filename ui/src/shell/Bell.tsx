import {
  Alert,
  AlertActionCloseButton,
  AlertGroup,
  NotificationBadge,
  NotificationDrawer,
  NotificationDrawerBody,
  NotificationDrawerHeader,
  NotificationDrawerList,
  NotificationDrawerListItem,
  NotificationDrawerListItemBody,
  NotificationDrawerListItemHeader,
} from '@patternfly/react-core'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useNavigate } from 'react-router'
import type { Nouns } from '../api/client'
import { listKey, useList } from '../api/queries'
import { useLive } from '../api/useLive'
import { When } from '../parts/When'

const key = 'slipway-issues-seen'
const toastsMax = 3

// useSeen remembers in this browser up to which issue one has looked. It asks for the issues only when one has: the whole page
// is in who uses it, and should not be drawn with each answer.
export function useSeen() {
  const queries = useQueryClient()
  const [seen, setSeen] = useState(() => Number(localStorage.getItem(key) ?? 0))
  return {
    seen,
    see: () => {
      const open = queries.getQueryData<Nouns['issues'][]>(listKey('issues')) ?? []
      const id = Math.max(seen, ...open.map((i) => i.id))
      localStorage.setItem(key, String(id))
      setSeen(id)
    },
  }
}

// Bell says how many issues are new since one looked.
export function Bell({ seen, isOpen, turn }: { seen: number; isOpen: boolean; turn: () => void }) {
  const issues = useList('issues')
  const fresh = (issues.data ?? []).filter((i) => i.id > seen).length
  return (
    <NotificationBadge
      variant={fresh > 0 ? 'attention' : 'read'}
      count={fresh}
      isExpanded={isOpen}
      onClick={turn}
      aria-label={fresh > 0 ? `${fresh} new ${fresh === 1 ? 'issue' : 'issues'}` : 'Issues'}
    />
  )
}

// BellList lists the open issues.
export function BellList({ seen, close }: { seen: number; close: () => void }) {
  const issues = useList('issues')
  const go = useNavigate()
  const all = issues.data ?? []
  return (
    <NotificationDrawer aria-label="Issues">
      <NotificationDrawerHeader
        title="Issues"
        count={all.filter((i) => i.id > seen).length}
        unreadText="new"
        onClose={close}
      />
      <NotificationDrawerBody>
        <NotificationDrawerList aria-label="Open issues">
          {all.slice(0, 50).map((i) => (
            <NotificationDrawerListItem
              key={i.id}
              variant={i.severity === 'error' ? 'danger' : 'warning'}
              isRead={i.id <= seen}
              onClick={() => {
                close()
                go(`/issues?id=${i.id}`)
              }}
            >
              <NotificationDrawerListItemHeader
                title={i.cause}
                variant={i.severity === 'error' ? 'danger' : 'warning'}
                headingLevel="h2"
                truncateTitle={2}
              />
              <NotificationDrawerListItemBody timestamp={<When at={i.openedAt} />}>
                {i.hint}
              </NotificationDrawerListItemBody>
            </NotificationDrawerListItem>
          ))}
        </NotificationDrawerList>
        {all.length === 0 && <p style={{ padding: '1rem' }}>No issue is open.</p>}
      </NotificationDrawerBody>
    </NotificationDrawer>
  )
}

// Toasts say at once that an issue has opened.
export function Toasts() {
  const live = useLive()
  const go = useNavigate()
  const [news, setNews] = useState<{ id: number; text: string }[]>([])
  useEffect(
    () =>
      live?.on((e) => {
        if (e.kind === 'issue.opened') setNews((n) => [...n, { id: e.id, text: e.detail ?? '' }].slice(-toastsMax))
      }),
    [live],
  )
  const drop = (id: number) => setNews((n) => n.filter((x) => x.id !== id))
  return (
    <AlertGroup isToast isLiveRegion>
      {news.map((n) => (
        <Alert
          key={n.id}
          variant="warning"
          title={n.text || 'A new issue'}
          timeout={10_000}
          onTimeout={() => drop(n.id)}
          actionClose={<AlertActionCloseButton onClose={() => drop(n.id)} />}
          actionLinks={
            <button
              type="button"
              className="pf-v6-c-button pf-m-link pf-m-inline"
              onClick={() => {
                drop(n.id)
                go('/issues')
              }}
            >
              Show issues
            </button>
          }
        />
      ))}
    </AlertGroup>
  )
}
