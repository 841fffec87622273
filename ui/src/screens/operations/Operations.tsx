import { useState } from 'react'
import { Route, Routes } from 'react-router'
import { usePage } from '../../api/page'
import { Command } from '../../parts/Command'
import { flags } from '../../parts/cli'
import { Loaded, Nothing } from '../../parts/Failure'
import { CheckField } from '../../parts/Fields'
import { ChoiceFilter, ExactFilter, Filters, More, useAddress } from '../../parts/Filters'
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
  const [shown, setShown] = useState(page)
  const { get, set } = useAddress()
  const query = {
    ...(get('kind') && { kind: get('kind') }),
    ...(get('host') && { host: get('host') }),
    ...(get('machine') && { machine: get('machine') }),
    ...(get('open') && { open: true }),
  }
  const operations = usePage('operations', query, shown)
  return (
    <Screen title="Operations" about="Running and past operations on hosts, step by step.">
      <Filters>
        <ChoiceFilter
          label="Kind"
          value={get('kind')}
          set={(v) => set('kind', v)}
          choices={[['', 'every kind'], ...kinds.map((k): [string, string] => [k, k])]}
        />
        {['host', 'machine'].map((key) => (
          <ExactFilter
            key={key}
            label={`Of ${key}`}
            placeholder={`${key} (press Enter)`}
            value={get(key)}
            set={(v) => set(key, v)}
          />
        ))}
        <CheckField
          label="running or waiting only"
          value={get('open') !== ''}
          set={(on) => set('open', on ? 'yes' : '')}
        />
      </Filters>
      <Loaded query={operations}>
        {({ items: all, hasMore }) =>
          all.length === 0 ? (
            <Nothing title={Object.keys(query).length > 0 ? 'No operation matches' : 'Nothing was done yet'}>
              Installations, inspections, wipes and power actions show here.
            </Nothing>
          ) : (
            <>
              <OperationTable operations={all} />
              <More has={hasMore} shown={shown} most={pageMax} more={() => setShown(shown + page)} />
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
