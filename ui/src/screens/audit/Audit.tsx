import { Button } from '@patternfly/react-core'
import { Route, Routes } from 'react-router'
import { Command } from '../../parts/Command'
import { flags } from '../../parts/cli'
import { ChoiceFilter, ExactFilter, Filters, useAddress } from '../../parts/Filters'
import { Screen } from '../../parts/Screen'
import { AuditTable } from './AuditTable'
import { Chain } from './Chain'
import { EntryPage } from './EntryPage'
import { sinceOf, spans } from './words'

export function Audit() {
  return (
    <Routes>
      <Route index element={<AuditList />} />
      <Route path=":id" element={<EntryPage />} />
    </Routes>
  )
}

const texts = ['actor', 'noun', 'name', 'host', 'operation']
const hours: Record<string, string> = { hour: '1h', day: '24h', week: '168h', month: '720h' }

function AuditList() {
  const { get, set, isEmpty, clear } = useAddress()
  const span = get('span')
  const query = Object.fromEntries(
    [...texts, 'outcome']
      .map((key) => [key, get(key)])
      .concat([['since', sinceOf(span)]])
      .filter(([, v]) => v),
  )
  return (
    <Screen
      title="Audit"
      about="All requests to this server, their users, and their changes. Nobody can change or delete an entry."
    >
      <Filters>
        {texts.map((key) => (
          <ExactFilter
            key={key}
            label={`By ${key}`}
            placeholder={hints[key] ?? key}
            value={get(key)}
            set={(v) => set(key, v)}
          />
        ))}
        <ChoiceFilter
          label="Outcome"
          value={get('outcome')}
          set={(v) => set('outcome', v)}
          choices={[
            ['', 'every outcome'],
            ['change', 'edits only'],
            ['refused', 'refused only'],
          ]}
        />
        <ChoiceFilter
          label="Time"
          value={span}
          set={(v) => set('span', v)}
          choices={[['', 'at any time'], ...Object.keys(spans).map((s): [string, string] => [s, `in the last ${s}`])]}
        />
        {!isEmpty && (
          <Button variant="link" onClick={clear}>
            Clear filters
          </Button>
        )}
      </Filters>
      <AuditTable query={query} />
      <Chain />
      <Command
        cli={`slipway audit list${flags({ ...Object.fromEntries([...texts, 'outcome'].map((k) => [k, get(k)])), since: hours[span] })}`}
      />
    </Screen>
  )
}

const hints: Record<string, string> = {
  actor: 'who, such as user anna',
  noun: 'noun, such as profile',
  name: 'name',
  host: 'host',
  operation: 'operation, such as power-host',
}
