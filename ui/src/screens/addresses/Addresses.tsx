import { Label } from '@patternfly/react-core'
import { useState } from 'react'
import { Link } from 'react-router'
import { mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Act } from '../../parts/Act'
import { Loaded } from '../../parts/Failure'
import { EditForm, TextField } from '../../parts/Fields'
import { Rows } from '../../parts/Rows'
import { type Address, fromText, mayChange, setOf } from './words'

// Addresses is a table of the static addresses of machines: those of one machine, host, profile or subnet.
export function Addresses({ of, none }: { of: Record<string, string>; none: string }) {
  const list = useList('addresses', of)
  const [changed, change] = useState<Address>()
  const not = mayNot(useMe(), 'operator', '')
  return (
    <Loaded query={list}>
      {(all) =>
        all.length === 0 ? (
          <p>{none}</p>
        ) : (
          <>
            <Rows
              label="Static addresses"
              rows={all}
              keyOf={(a) => `${a.address} ${a.machine ?? ''} ${a.host ?? ''}`}
              columns={[
                [
                  'Address',
                  (a) => (
                    <>
                      <code>{a.address}</code> {a.isTwice && <Label color="red">somebody else uses it, too</Label>}
                    </>
                  ),
                ],
                [
                  'Machine',
                  (a) => a.machine && <Link to={`/machines/${encodeURIComponent(a.machine)}`}>{a.machine}</Link>,
                ],
                ['Host', (a) => a.host && <Link to={`/hosts/${encodeURIComponent(a.host)}`}>{a.host}</Link>],
                ['Where it comes from', fromText],
                [
                  'Actions',
                  (a) => (
                    <Act
                      text="Change"
                      of={a.address}
                      not={mayChange(a) ? not : 'change it in the configuration'}
                      act={() => change(a)}
                    />
                  ),
                ],
              ]}
            />
            {changed && <ChangeForm address={changed} close={() => change(undefined)} />}
          </>
        )
      }
    </Loaded>
  )
}

function ChangeForm({ address: a, close }: { address: Address; close: () => void }) {
  const [to, setTo] = useState(a.address)
  const { call, cli } = setOf(a, to)
  return (
    <EditForm
      title={`Another address than ${a.address}`}
      verb="Save"
      ready={to.trim() !== '' && to.trim() !== a.address}
      call={call}
      cli={cli}
      close={close}
    >
      <p>
        {a.machine ? `Machine ${a.machine}` : `Host ${a.host}`} gets it with its next installation. The running system
        keeps its present address.
      </p>
      <TextField
        label="Address"
        field="address"
        value={to}
        set={setTo}
        isRequired
        help={`in a static range of subnet ${a.subnet}`}
      />
    </EditForm>
  )
}
