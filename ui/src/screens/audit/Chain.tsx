import { Alert, Button, ClipboardCopy, FormGroup, TextInput } from '@patternfly/react-core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { send } from '../../api/act'
import type { Schemas } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { Command } from '../../parts/Command'
import { flags } from '../../parts/cli'
import { Failure } from '../../parts/Failure'

// Chain checks that no entry was changed, and gives all entries as a file.
export function Chain() {
  const not = mayNot(useMe(), 'admin', '')
  const [noted, setNoted] = useState('')
  const isHash = /^[0-9a-f]{64}$/.test(noted)
  const check = useMutation({
    mutationFn: async (noted: string) => {
      const path = `/audit/chain${noted && `?noted=${noted}`}`
      return { noted, chain: await send<Schemas['AuditChain']>({ method: 'GET', path }) }
    },
  })
  const save = useMutation({ mutationFn: exportAll })
  if (not) return null
  return (
    <section aria-label="Check of the audit" style={{ display: 'grid', gap: '1rem', marginBlock: '1rem' }}>
      <FormGroup label="Noted hash" fieldId="audit-noted">
        <TextInput
          id="audit-noted"
          value={noted}
          onChange={(_, v) => setNoted(v.trim().toLowerCase())}
          placeholder="optional"
          validated={noted === '' || isHash ? 'default' : 'error'}
        />
      </FormGroup>
      <div style={{ display: 'flex', gap: '0.5rem', flexWrap: 'wrap' }}>
        <Button
          variant="secondary"
          isDisabled={noted !== '' && !isHash}
          isLoading={check.isPending}
          onClick={() => check.mutate(noted)}
        >
          Check that nobody has changed an entry
        </Button>
        <Button variant="secondary" isLoading={save.isPending} onClick={() => save.mutate()}>
          Export
        </Button>
      </div>
      {save.error && <Failure error={save.error} />}
      {check.error && <Failure error={check.error} />}
      {check.data && <Result {...check.data} />}
      <Command cli={`slipway audit verify${flags({ noted })}`} />
    </section>
  )
}

// exportAll saves all entries as the command line does: JSON, one entry a line.
async function exportAll() {
  const lines: string[] = []
  for (let after = 0, more = true; more; ) {
    const page = await send<Schemas['ListAudit']>({ method: 'GET', path: `/audit/export?after=${after}` })
    for (const e of page.items ?? []) {
      lines.push(`${JSON.stringify(e)}\n`)
      after = e.id
    }
    more = Boolean(page.next)
  }
  const a = document.createElement('a')
  a.href = URL.createObjectURL(new Blob(lines, { type: 'application/jsonl' }))
  a.download = 'slipway-audit.jsonl'
  a.click()
  URL.revokeObjectURL(a.href)
}

function Result({ chain: c, noted }: { chain: Schemas['AuditChain']; noted: string }) {
  const isGood = c.isWhole && (noted === '' || c.hasNoted)
  return (
    <Alert
      variant={isGood ? 'success' : 'danger'}
      isInline
      title={
        !c.isWhole
          ? `Entry ${c.brokenID} is wrong: ${c.reason}`
          : isGood
            ? `Slipway checked ${c.entryN} entries: nobody has changed one`
            : 'The noted hash is not in the chain: somebody changed entries before it'
      }
    >
      {c.head && (
        <>
          <p>Note this hash somewhere else, and give it here the next time:</p>
          <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel="Hash of the newest entry">
            {c.head}
          </ClipboardCopy>
        </>
      )}
    </Alert>
  )
}
