import {
  Button,
  FormSelect,
  FormSelectOption,
  SearchInput,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core'
import { useState } from 'react'
import { Route, Routes, useSearchParams } from 'react-router'
import { Command } from '../../parts/Command'
import { flags } from '../../parts/cli'
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
  const [params, setParams] = useSearchParams()
  const get = (key: string) => params.get(key) ?? ''
  const set = (key: string, value: string) =>
    setParams(
      (p) => {
        if (value) p.set(key, value)
        else p.delete(key)
        return p
      },
      { replace: true },
    )
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
      <Toolbar>
        <ToolbarContent>
          {texts.map((key) => (
            <ToolbarItem key={key}>
              <Filter key={get(key)} name={key} value={get(key)} set={(v) => set(key, v)} />
            </ToolbarItem>
          ))}
          <ToolbarItem>
            <FormSelect aria-label="Outcome" value={get('outcome')} onChange={(_, v) => set('outcome', v)}>
              <FormSelectOption value="" label="every outcome" />
              <FormSelectOption value="change" label="edits only" />
              <FormSelectOption value="refused" label="refused only" />
            </FormSelect>
          </ToolbarItem>
          <ToolbarItem>
            <FormSelect aria-label="Time" value={span} onChange={(_, v) => set('span', v)}>
              <FormSelectOption value="" label="at any time" />
              {Object.keys(spans).map((s) => (
                <FormSelectOption key={s} value={s} label={`in the last ${s}`} />
              ))}
            </FormSelect>
          </ToolbarItem>
          {params.size > 0 && (
            <ToolbarItem>
              <Button variant="link" onClick={() => setParams({}, { replace: true })}>
                Clear filters
              </Button>
            </ToolbarItem>
          )}
        </ToolbarContent>
      </Toolbar>
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

// Filter is applied with Enter: the server looks for exactly that.
function Filter({ name, value, set }: { name: string; value: string; set: (v: string) => void }) {
  const [text, setText] = useState(value)
  return (
    <SearchInput
      aria-label={`By ${name}`}
      placeholder={hints[name] ?? name}
      value={text}
      onChange={(_, v) => setText(v)}
      onSearch={(_, v) => set(v.trim())}
      onClear={() => {
        setText('')
        set('')
      }}
    />
  )
}
