import { CodeBlock, CodeBlockCode, Title } from '@patternfly/react-core'
import type { Host } from '../../api/client'
import { useOne } from '../../api/queries'
import { Command } from '../../parts/Command'
import { Facts } from '../../parts/Facts'
import { Loaded } from '../../parts/Failure'

// BootPreview shows what a host would boot if it asked now, and the exact script.
export function BootPreview({ host }: { host: Host }) {
  const e = useOne('hosts', host.name, '/explain')
  return (
    <>
      <Loaded query={e}>
        {(x) => (
          <>
            <p className="host-says">
              It would boot <strong>{x.boot}</strong> now: {x.reason}
            </p>
            {x.hint && <p>{x.hint}</p>}
            <Facts
              rows={[
                ['Profile', x.profile],
                ['Image', x.image],
                ['Loader', x.loader],
                ['Way to its disk', x.disk],
              ]}
            />
            <Title headingLevel="h2">Script</Title>
            {x.script ? (
              <CodeBlock>
                <CodeBlockCode>{x.script}</CodeBlockCode>
              </CodeBlock>
            ) : (
              <p>None: Slipway answers it without a boot loader.</p>
            )}
          </>
        )}
      </Loaded>
      <Command
        cli={`slipway host explain ${host.name}`}
        call={{ method: 'GET', path: `/hosts/${encodeURIComponent(host.name)}/explain` }}
      />
    </>
  )
}
