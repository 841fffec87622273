import { FormGroup, FormHelperText, HelperText, HelperTextItem, TextInput } from '@patternfly/react-core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from 'react-router'
import { Problem, readPage } from '../api/client'
import { useLater } from './later'

interface Selected {
  id: string
  label?: string
  value: string
  onChange: (value: string) => void
  state?: string // only hosts in that state
  isRequired?: boolean
  none?: string // what an empty one means
}

const most = 1000
const shown = 8

// SelectorField edits a selector and says which hosts it matches, while it is typed.
export function SelectorField({ id, label = 'Selector', value, onChange, state, isRequired, none }: Selected) {
  const late = useLater(value.trim())
  const hits = useQuery({
    queryKey: ['hosts', 'selected', late, state],
    queryFn: () => readPage('hosts', { selector: late, limit: most, ...(state && { state }) }),
    enabled: late !== '',
    placeholderData: keepPreviousData,
    retry: false,
  })
  const problem = late !== '' && hits.error instanceof Problem ? hits.error : undefined
  const found = hits.data?.items ?? []
  return (
    <FormGroup label={label} fieldId={id} {...(isRequired && { isRequired })}>
      <TextInput
        id={id}
        value={value}
        onChange={(_, v) => onChange(v)}
        autoComplete="off"
        spellCheck={false}
        validated={problem ? 'error' : 'default'}
        aria-describedby={`${id}-hits`}
        placeholder="rack=r1,product=~R6.*"
      />
      <FormHelperText>
        <HelperText id={`${id}-hits`} aria-live="polite">
          {problem ? (
            <HelperTextItem variant="error">
              {problem.message}. {problem.hint}
            </HelperTextItem>
          ) : late === '' ? (
            <HelperTextItem>{none ?? 'An empty selector matches nothing.'}</HelperTextItem>
          ) : (
            hits.data && (
              <HelperTextItem>
                {found.length === 0 ? 'No' : hits.data.next ? `More than ${most}` : found.length}{' '}
                {state ? `${state} ` : ''}
                {found.length === 1 ? 'host matches' : 'hosts match'}
                {found.length > 0 && ': '}
                {found.slice(0, shown).map((h, i) => (
                  <span key={h.id}>
                    {i > 0 && ', '}
                    <Link to={`/hosts/${h.name}`}>{h.name}</Link>
                  </span>
                ))}
                {found.length > shown && ' …'}
              </HelperTextItem>
            )
          )}
          <HelperTextItem>
            Terms with commas between: key=value, key!=value, key=~expression, key for “has one”, !key for “has none”.
            Keys: name, state, mac, uuid, serial, assetTag, manufacturer, product, arch, firmware, port, site, row,
            rack, fact:NAME, and labels.
          </HelperTextItem>
        </HelperText>
      </FormHelperText>
    </FormGroup>
  )
}
