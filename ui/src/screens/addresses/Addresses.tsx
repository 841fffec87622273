import { Button, Label } from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useState } from 'react'
import { Link } from 'react-router'
import { mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Loaded } from '../../parts/Failure'
import { EditForm, TextField } from '../../parts/Fields'
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
            <Table variant="compact" aria-label="Static addresses">
              <Thead>
                <Tr>
                  <Th>Address</Th>
                  <Th>Machine</Th>
                  <Th>Host</Th>
                  <Th>Where it comes from</Th>
                  <Th>Actions</Th>
                </Tr>
              </Thead>
              <Tbody>
                {all.map((a) => (
                  <Row key={`${a.address} ${a.machine ?? ''} ${a.host ?? ''}`} address={a} not={not} change={change} />
                ))}
              </Tbody>
            </Table>
            {changed && <ChangeForm address={changed} close={() => change(undefined)} />}
          </>
        )
      }
    </Loaded>
  )
}

function Row({ address: a, not, change }: { address: Address; not: string | undefined; change: (a: Address) => void }) {
  const why = mayChange(a) ? not : 'change it where the configuration says it'
  return (
    <Tr>
      <Td dataLabel="Address">
        <code>{a.address}</code> {a.isTwice && <Label color="red">somebody else has it, too</Label>}
      </Td>
      <Td dataLabel="Machine">
        {a.machine && <Link to={`/machines/${encodeURIComponent(a.machine)}`}>{a.machine}</Link>}
      </Td>
      <Td dataLabel="Host">{a.host && <Link to={`/hosts/${encodeURIComponent(a.host)}`}>{a.host}</Link>}</Td>
      <Td dataLabel="Where it comes from">{fromText(a)}</Td>
      <Td dataLabel="Actions">
        <Button
          variant="link"
          isInline
          isAriaDisabled={!!why}
          title={why}
          aria-label={`Change ${a.address}`}
          onClick={() => why || change(a)}
        >
          Change
        </Button>
      </Td>
    </Tr>
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
        {a.machine ? `Machine ${a.machine}` : `Host ${a.host}`} gets it with its next installation. What runs keeps the
        address that it has.
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
