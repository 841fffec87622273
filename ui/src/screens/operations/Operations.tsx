import {
  Button,
  Checkbox,
  FormSelect,
  FormSelectOption,
  SearchInput,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core'
import { useState } from 'react'
import { Route, Routes, useSearchParams } from 'react-router'
import { usePage } from '../../api/page'
import { Command } from '../../parts/Command'
import { flags } from '../../parts/cli'
import { Loaded, Nothing } from '../../parts/Failure'
import { Screen } from '../../parts/Screen'
import { OperationPage } from './OperationPage'
import { OperationTable } from './OperationTable'

export { OperationTable } from './OperationTable'

export function Operations() {
  return (
    <Routes>
      <Route index element={<OperationList />} />
      <Route path=":id" element={<OperationPage />} />
    </Routes>
  )
}

const kinds = ['inspect', 'install', 'reinstall', 'release', 'clean', 'power', 'remediate', 'rotate']
const page = 100
const pageMax = 1000

function OperationList() {
  const [params, setParams] = useSearchParams()
  const [shown, setShown] = useState(page)
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
  const query = {
    ...(get('kind') && { kind: get('kind') }),
    ...(get('host') && { host: get('host') }),
    ...(get('machine') && { machine: get('machine') }),
    ...(get('open') && { open: true }),
  }
  const operations = usePage('operations', query, shown)
  return (
    <Screen title="Operations" about="Running and past operations on hosts, step by step.">
      <Toolbar>
        <ToolbarContent>
          <ToolbarItem>
            <FormSelect aria-label="Kind" value={get('kind')} onChange={(_, v) => set('kind', v)}>
              <FormSelectOption value="" label="every kind" />
              {kinds.map((k) => (
                <FormSelectOption key={k} value={k} label={k} />
              ))}
            </FormSelect>
          </ToolbarItem>
          {['host', 'machine'].map((key) => (
            <ToolbarItem key={key}>
              <Filter key={get(key)} name={key} value={get(key)} set={(v) => set(key, v)} />
            </ToolbarItem>
          ))}
          <ToolbarItem alignSelf="center">
            <Checkbox
              id="open-only"
              label="running or waiting only"
              isChecked={get('open') !== ''}
              onChange={(_, on) => set('open', on ? 'yes' : '')}
            />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <Loaded query={operations}>
        {({ items: all, hasMore }) =>
          all.length === 0 ? (
            <Nothing title={Object.keys(query).length > 0 ? 'No operation is like that' : 'Nothing was done yet'}>
              Installing, inspecting, wiping and powering hosts shows here.
            </Nothing>
          ) : (
            <>
              <OperationTable operations={all} />
              {hasMore &&
                (shown < pageMax ? (
                  <Button variant="link" onClick={() => setShown(shown + page)}>
                    Show more
                  </Button>
                ) : (
                  <p>There are more: narrow the list, or read them by the command below.</p>
                ))}
            </>
          )
        }
      </Loaded>
      <Command
        cli={`slipway operation list${flags({ kind: get('kind'), host: get('host'), machine: get('machine'), all: get('open') === '' })}`}
      />
    </Screen>
  )
}

// Filter is applied with Enter: the server looks for exactly that name.
function Filter({ name, value, set }: { name: string; value: string; set: (v: string) => void }) {
  const [text, setText] = useState(value)
  return (
    <SearchInput
      aria-label={`Of ${name}`}
      placeholder={`${name} (press Enter)`}
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
