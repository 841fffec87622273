import { ClipboardCopyButton, CodeBlock, CodeBlockAction, CodeBlockCode } from '@patternfly/react-core'
import { useState } from 'react'
import { useSearchParams } from 'react-router'
import { useOne } from '../../api/queries'
import { Command } from '../../parts/Command'
import { shell } from '../../parts/cli'
import { Loaded } from '../../parts/Failure'
import { ChoiceField } from '../../parts/Fields'
import { Probe } from './Probe'

// Snippets shows what another DHCP server is told, so that it leases addresses and machines boot from here.
export function Snippets({ subnet }: { subnet: string }) {
  const [params, setParams] = useSearchParams()
  const [isCopied, setCopied] = useState(false)
  const list = useOne('subnets', subnet, '/snippets')
  return (
    <>
      <Probe subnet={subnet} />
      <p style={{ paddingBlock: '1rem' }}>
        To keep another DHCP server, set this subnet to mode off or reservations. Then add this to that server:
      </p>
      <Loaded query={list}>
        {({ items }) => {
          const s = items.find((x) => x.server === params.get('server')) ?? items[0]
          if (!s) return null
          return (
            <>
              <ChoiceField
                label="Server"
                value={s.server}
                set={(v) => setParams({ tab: 'others', server: v }, { replace: true })}
                choices={items.map((x) => [x.server, x.name])}
              />
              {s.file && <p>Put it into {s.file}.</p>}
              {s.note && <p>{s.note}</p>}
              <CodeBlock
                actions={
                  <CodeBlockAction>
                    <ClipboardCopyButton
                      id="copy-snippet"
                      aria-label="Copy"
                      variant="plain"
                      onClick={() => {
                        void navigator.clipboard?.writeText(s.text)
                        setCopied(true)
                      }}
                    >
                      {isCopied ? 'Copied' : 'Copy'}
                    </ClipboardCopyButton>
                  </CodeBlockAction>
                }
              >
                <CodeBlockCode>{s.text}</CodeBlockCode>
              </CodeBlock>
              {s.check && (
                <p>
                  Check it with: <code>{s.check}</code>
                </p>
              )}
              <Command cli={`slipway subnet snippet ${shell(subnet)} --for ${s.server}`} />
            </>
          )
        }}
      </Loaded>
    </>
  )
}
