import { Button } from '@patternfly/react-core'
import { memo, useState } from 'react'
import type { Call } from '../../api/act'
import type { Schemas } from '../../api/client'
import { type Me, may, mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Ask } from '../../parts/Ask'
import { CheckField, EditForm, TextField, useFields } from '../../parts/Fields'
import { wordsOf } from '../../parts/written'

export type View = Schemas['KeptView'] & { name: string } // the server always says it
export type Shown = Pick<View, 'query' | 'columns' | 'group' | 'sort'>

const path = (v: Pick<View, 'name' | 'isShared'>) =>
  `/views/${encodeURIComponent(v.name)}${v.isShared ? '?shared=true' : ''}`
const quote = (s: string) => `'${s.replaceAll("'", `'\\''`)}'`

// Views are the views that are kept: a click shows one, and what is shown now can be kept as another.
export const Views = memo(function Views({ shown, show }: { shown: Shown; show: (v: Shown) => void }) {
  const views = useList('views')
  const [isKeeping, keep] = useState(false)
  const [gone, setGone] = useState<View>()
  return (
    <section aria-label="Views">
      <h2 className="hosts-h2">Views</h2>
      <ul className="hosts-list">
        <li>
          <button type="button" className="vt-turn" onClick={() => show({})}>
            All hosts
          </button>
        </li>
        {views.data?.map((v) => (
          <li key={`${v.owner ?? ''}/${v.name}`}>
            <button
              type="button"
              className="vt-turn"
              title={v.query}
              aria-current={isShown(v, shown)}
              onClick={() => show(v)}
            >
              {v.name} {v.isShared && <small>({v.pools?.length ? `of ${v.pools.join(', ')}` : 'shared'})</small>}
            </button>
            <Button variant="plain" size="sm" aria-label={`Delete view ${v.name}`} onClick={() => setGone(v)}>
              ×
            </Button>
          </li>
        ))}
      </ul>
      <Button variant="link" size="sm" isInline onClick={() => keep(true)}>
        Save this view
      </Button>
      {isKeeping && <Keep shown={shown} close={() => keep(false)} />}
      {gone && (
        <Ask
          title={`Delete view ${gone.name}?`}
          verb="Delete"
          warns={gone.isShared ? 'Nobody can use it any more.' : 'You cannot undo this.'}
          call={{ method: 'DELETE', path: path(gone) }}
          cli={`slipway view delete ${quote(gone.name)}${gone.isShared ? ' --shared' : ''}`}
          close={() => setGone(undefined)}
        />
      )}
    </section>
  )
})

// ownPools are those in which one shares who is operator in pools only; undefined for whoever shares with all.
const ownPools = (me: Me | undefined) =>
  !me || may(me, 'operator', '')
    ? undefined
    : [...new Set(me.grants.map((g) => g.pool ?? '').filter((p) => p && may(me, 'operator', p)))]

const isShown = (v: View, s: Shown) =>
  (v.query ?? '') === (s.query ?? '') && (v.group ?? '') === (s.group ?? '') && (v.sort ?? '') === (s.sort ?? '')

function Keep({ shown, close }: { shown: Shown; close: () => void }) {
  const me = useMe()
  const isUser = Boolean(me?.user)
  const notShare = me ? mayNot(me, 'operator') : undefined
  const [{ name, isShared, only }, of] = useFields({ name: '', isShared: !isUser, only: '' })
  const mine = ownPools(me)
  const pools = mine ? [] : [...new Set(wordsOf(only))]
  const known = useList('pools')
  const kept = useList('views').data?.find((v) => v.isShared && v.name === name.trim())?.pools
  const call: Call = {
    method: 'PUT',
    path: `/views/${encodeURIComponent(name.trim())}`,
    body: {
      name: name.trim(),
      isShared,
      ...(isShared && pools.length > 0 && { pools }),
      ...Object.fromEntries(Object.entries(shown).filter(([, v]) => v?.length)),
    },
  }
  const cli = [
    `slipway view set ${quote(name.trim())}`,
    shown.query && `--query ${quote(shown.query)}`,
    shown.columns?.length && `--columns ${shown.columns.join(',')}`,
    shown.group && `--group ${shown.group}`,
    shown.sort && `--sort=${shown.sort}`,
    isShared && '--shared',
    ...(isShared ? pools.map((p) => `--pool ${p}`) : []),
  ]
    .filter(Boolean)
    .join(' ')
  return (
    <EditForm title="Save this view" verb="Save" isSmall ready={name.trim() !== ''} call={call} cli={cli} close={close}>
      <TextField label="Name" {...of('name')} isRequired max={64} />
      <CheckField
        label={mine ? `For all who have a role in ${mine.join(', ')}` : 'For others, too'}
        {...of('isShared')}
        help={!isUser ? 'You did not log in as a user: your views are always shared.' : notShare}
        isDisabled={!isUser || Boolean(notShare)}
      />
      {isShared && !mine && (
        <TextField
          label="Only for those with a role in these pools"
          {...of('only')}
          list={(known.data ?? []).map((p) => p.name)}
          placeholder={kept?.length ? `none chosen: for ${kept.join(', ')}, as before` : 'none named: for all'}
        />
      )}
    </EditForm>
  )
}
