import { useState } from 'react'
import type { Call } from '../../api/act'
import type { AcceptRule } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useList } from '../../api/queries'
import { Nothing } from '../../parts/Failure'
import { EditForm, TextField } from '../../parts/Fields'
import { Add, Plain, useChosen } from '../../parts/Plain'
import { SelectorField } from '../../parts/SelectorField'
import { When } from '../../parts/When'

// AcceptRules say which discovered hosts are accepted without a person.
export function AcceptRules() {
  const rules = useList('acceptrules').data
  const [chosen, open] = useChosen('rule')
  const not = mayNot(useMe(), 'admin', '')
  return (
    <>
      <p>
        A host that is discovered and matches a rule is accepted at once: it may be inspected, claimed and installed.
        Others wait for a person.
      </p>
      <Add text="Add a rule" not={not} act={() => open('')} />
      <Plain
        noun="acceptrules"
        label="Accept rules"
        columns={[
          { key: 'name', name: 'Name', cell: (r) => r.name },
          { key: 'selector', name: 'Selector', cell: (r) => <code>{r.selector}</code> },
          { key: 'changed', name: 'Changed', cell: (r) => <When at={r.updatedAt} /> },
        ]}
        keyOf={(r) => r.name}
        acts={(r) => [{ text: 'Change', not, act: () => open(r.name) }]}
        removal={(r) => ({ title: `Delete rule ${r.name}?`, cli: `slipway acceptrule delete ${r.name}`, not })}
        nothing={
          <Nothing title="Every host waits for a person">
            With a rule, such as rack=r1, the hosts of a rack you trust are accepted by themselves.
          </Nothing>
        }
      />
      {rules && chosen !== null && !not && (
        <EditRule key={chosen} rule={rules.find((r) => r.name === chosen)} close={() => open()} />
      )}
    </>
  )
}

function EditRule({ rule: now, close }: { rule: AcceptRule | undefined; close: () => void }) {
  const [rule] = useState(now) // as it was seen; a change meanwhile is refused, not overwritten
  const [name, setName] = useState(rule?.name ?? '')
  const [selector, setSelector] = useState(rule?.selector ?? '')
  const body = { name: name.trim(), selector: selector.trim() }
  const call: Call = rule
    ? { method: 'PUT', path: `/acceptrules/${encodeURIComponent(rule.name)}`, body, version: rule.version }
    : { method: 'POST', path: '/acceptrules', body }
  return (
    <EditForm
      title={rule ? `Change rule ${rule.name}` : 'Accept hosts by themselves'}
      verb={rule ? 'Save' : 'Add'}
      call={call}
      {...(!rule && { cli: `slipway acceptrule create ${body.name || 'NAME'} --selector '${body.selector}'` })}
      lacks={!body.name ? 'it has no name' : !body.selector ? 'it has no selector' : ''}
      close={close}
    >
      {!rule && <TextField label="Name" value={name} set={setName} isRequired />}
      <SelectorField id="rule-selector" value={selector} onChange={setSelector} state="discovered" isRequired />
      <p>The hosts above wait now. A rule accepts a host with its next packet.</p>
    </EditForm>
  )
}
