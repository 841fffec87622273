import {
  Button,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextInput,
  Tooltip,
} from '@patternfly/react-core'
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table'
import { useState } from 'react'
import { useSearchParams } from 'react-router'
import { type Call, useAct } from '../../api/act'
import type { AcceptRule } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Ask, dryOf } from '../../parts/Ask'
import { Command } from '../../parts/Command'
import { Failure, Loaded, Nothing } from '../../parts/Failure'
import { SelectorField } from '../../parts/SelectorField'
import { When } from '../../parts/When'
import './settings-catalogue.css'

// AcceptRules say which discovered hosts are accepted without a person.
export function AcceptRules() {
  const rules = useList('acceptrules')
  const [params, setParams] = useSearchParams()
  const [goes, setGoes] = useState<AcceptRule>()
  const not = mayNot(useMe(), 'admin', '')
  const open = (name: string | undefined) => {
    const next = new URLSearchParams(params)
    if (name === undefined) next.delete('rule')
    else next.set('rule', name)
    setParams(next)
  }
  const add = (
    <Button isAriaDisabled={not !== undefined} onClick={() => not === undefined && open('')}>
      Add a rule
    </Button>
  )
  const chosen = params.get('rule')
  return (
    <>
      <p>
        A host that is discovered and matches a rule is accepted at once: it may be inspected, claimed and installed.
        Others wait for a person.
      </p>
      <p className="settings-do">{not ? <Tooltip content={not}>{add}</Tooltip> : add}</p>
      <Loaded query={rules}>
        {(all) => (
          <>
            {all.length === 0 ? (
              <Nothing title="Every host waits for a person">
                With a rule, such as rack=r1, the hosts of a rack you trust are accepted by themselves.
              </Nothing>
            ) : (
              <Table aria-label="Accept rules" variant="compact">
                <Thead>
                  <Tr>
                    <Th>Name</Th>
                    <Th>Selector</Th>
                    <Th>Changed</Th>
                    <Th screenReaderText="Actions" />
                  </Tr>
                </Thead>
                <Tbody>
                  {all.map((r) => (
                    <Tr key={r.name}>
                      <Td dataLabel="Name">{r.name}</Td>
                      <Td dataLabel="Selector">
                        <code>{r.selector}</code>
                      </Td>
                      <Td dataLabel="Changed">
                        <When at={r.updatedAt} />
                      </Td>
                      <Td dataLabel="Actions">
                        <div>
                          <Button
                            variant="link"
                            isInline
                            isDisabled={not !== undefined}
                            onClick={() => open(r.name)}
                            aria-label={`Change ${r.name}`}
                          >
                            Change
                          </Button>{' '}
                          <Button
                            variant="link"
                            isInline
                            isDisabled={not !== undefined}
                            onClick={() => setGoes(r)}
                            aria-label={`Delete ${r.name}`}
                          >
                            Delete
                          </Button>
                        </div>
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            )}
            {chosen !== null && !not && <EditRule key={chosen} {...pick(all, chosen)} close={() => open(undefined)} />}
          </>
        )}
      </Loaded>
      {goes && (
        <Ask
          title={`Delete rule ${goes.name}?`}
          verb="Delete"
          foresees={dryOf({
            method: 'DELETE',
            path: `/acceptrules/${encodeURIComponent(goes.name)}`,
            version: goes.version,
          })}
          cli={`slipway acceptrule delete ${goes.name}`}
          call={{ method: 'DELETE', path: `/acceptrules/${encodeURIComponent(goes.name)}`, version: goes.version }}
          close={() => setGoes(undefined)}
        />
      )}
    </>
  )
}

function pick(all: AcceptRule[], name: string): { rule?: AcceptRule } {
  const rule = all.find((r) => r.name === name)
  return rule ? { rule } : {}
}

function EditRule({ rule: now, close }: { rule?: AcceptRule; close: () => void }) {
  const [rule] = useState(now) // as it was seen; a change meanwhile is refused, not overwritten
  const [name, setName] = useState(rule?.name ?? '')
  const [selector, setSelector] = useState(rule?.selector ?? '')
  const act = useAct(close)
  const body = { name: name.trim(), selector: selector.trim() }
  const call: Call = rule
    ? { method: 'PUT', path: `/acceptrules/${encodeURIComponent(rule.name)}`, body, version: rule.version }
    : { method: 'POST', path: '/acceptrules', body }
  const lacks = !body.name ? 'it has no name' : !body.selector ? 'it has no selector' : ''
  return (
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="rule-title">
      <ModalHeader labelId="rule-title" title={rule ? `Change rule ${rule.name}` : 'Accept hosts by themselves'} />
      <ModalBody tabIndex={0}>
        <Form onSubmit={(e) => e.preventDefault()}>
          {!rule && (
            <FormGroup label="Name" fieldId="rule-name" isRequired>
              <TextInput id="rule-name" value={name} onChange={(_, v) => setName(v)} autoComplete="off" />
            </FormGroup>
          )}
          <SelectorField id="rule-selector" value={selector} onChange={setSelector} state="discovered" isRequired />
        </Form>
        <p className="settings-do">The hosts above wait now. A rule accepts a host with its next packet.</p>
        {act.error && <Failure error={act.error} />}
        <Command
          {...(!rule && { cli: `slipway acceptrule create ${body.name || 'NAME'} --selector '${body.selector}'` })}
          call={call}
        />
      </ModalBody>
      <ModalFooter>
        <Button isDisabled={lacks !== '' || act.isPending} isLoading={act.isPending} onClick={() => act.mutate(call)}>
          {rule ? 'Save' : 'Add'}
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
        {lacks && <small>Not yet: {lacks}.</small>}
      </ModalFooter>
    </Modal>
  )
}
