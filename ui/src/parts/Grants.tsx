import { Button, Content, FormSelect, FormSelectOption, Label, LabelGroup } from '@patternfly/react-core'
import type { Grant, Role } from '../api/me'
import { useList } from '../api/queries'

export const roles: [Role, string][] = [
  ['viewer', 'looks'],
  ['operator', 'acts on hosts and machines'],
  ['admin', 'also manages users and shared settings'],
]

// GrantLabels show what somebody may do.
export function GrantLabels({ grants }: { grants: Grant[] | null | undefined }) {
  if (!grants?.length) return <span>nothing</span>
  return (
    <LabelGroup aria-label="Roles" numLabels={4}>
      {grants.map((g) => (
        <Label
          key={g.pool ?? ''}
          isCompact
          color={g.role === 'admin' ? 'purple' : g.role === 'operator' ? 'blue' : 'grey'}
        >
          {g.role} {g.pool ? `in ${g.pool}` : 'everywhere'}
        </Label>
      ))}
    </LabelGroup>
  )
}

// freePool is a place without a grant: the server keeps one grant for each.
export const freePool = (grants: Grant[], pools: string[]) =>
  ['', ...pools].find((p) => !grants.some((g) => (g.pool ?? '') === p))

// GrantsField edits what somebody may do: a role everywhere, and roles in pools.
export function GrantsField({ value, onChange }: { value: Grant[]; onChange: (g: Grant[]) => void }) {
  const pools = (useList('pools').data ?? []).map((p) => p.name)
  const set = (i: number, g: Grant) => onChange(value.map((old, at) => (at === i ? g : old)))
  const make = (role: Role, pool: string): Grant => (pool ? { role, pool } : { role })
  const free = freePool(value, pools)
  return (
    <fieldset style={{ border: 0, padding: 0 }}>
      <legend>Roles</legend>
      {value.length === 0 && <Content component="small">None: this user or token cannot read or do anything.</Content>}
      {value.map((g, i) => (
        <div
          key={g.pool ?? ''}
          style={{ display: 'flex', gap: '0.5rem', flexWrap: 'wrap', alignItems: 'center', marginBlockEnd: '0.5rem' }}
        >
          <FormSelect
            style={{ width: 'auto' }}
            value={g.role}
            aria-label={`Role ${i + 1}`}
            onChange={(_, v) => set(i, make(roles.find(([r]) => r === v)?.[0] ?? g.role, g.pool ?? ''))}
          >
            {roles.map(([role, about]) => (
              <FormSelectOption key={role} value={role} label={`${role}: ${about}`} />
            ))}
          </FormSelect>
          <FormSelect
            style={{ width: 'auto' }}
            value={g.pool ?? ''}
            aria-label={`Where role ${i + 1} counts`}
            onChange={(_, v) => set(i, make(g.role, v))}
          >
            {['', ...new Set([...pools, ...(g.pool ? [g.pool] : [])])]
              .filter((p) => p === (g.pool ?? '') || !value.some((x) => (x.pool ?? '') === p))
              .map((p) => (
                <FormSelectOption key={p} value={p} label={p ? `in pool ${p}` : 'everywhere'} />
              ))}
          </FormSelect>
          <Button
            variant="link"
            isInline
            aria-label={`Remove role ${i + 1}`}
            onClick={() => onChange(value.filter((_, at) => at !== i))}
          >
            Remove
          </Button>
        </div>
      ))}
      {free !== undefined && (
        <Button variant="link" isInline onClick={() => onChange([...value, make('viewer', free)])}>
          Add a role
        </Button>
      )}
    </fieldset>
  )
}
