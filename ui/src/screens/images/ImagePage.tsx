import { Button, Title, Tooltip } from '@patternfly/react-core'
import { useState } from 'react'
import { Link, useNavigate } from 'react-router'
import type { Image } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { useList, useOne } from '../../api/queries'
import { Ask, dryOf } from '../../parts/Ask'
import { bytesOf } from '../../parts/bytes'
import { Facts } from '../../parts/Facts'
import { Loaded } from '../../parts/Failure'
import { Rows } from '../../parts/Rows'
import { Screen } from '../../parts/Screen'
import { When } from '../../parts/When'
import { kindOf } from './words'

export function ImagePage({ name }: { name: string }) {
  const image = useOne('images', name)
  const profiles = useList('profiles')
  const machines = useList('machines')
  const [asks, setAsks] = useState(false)
  const go = useNavigate()
  const users = (profiles.data ?? []).filter((p) => p.image === name)
  const ofUsers = (machines.data ?? []).filter((m) => users.some((p) => p.name === m.profile))
  const not =
    mayNot(useMe(), 'operator', '') ??
    (users.length > 0
      ? `used by profile ${users.map((p) => p.name).join(', ')}: change or delete that first`
      : undefined)
  const remove = (
    <Button
      variant="secondary"
      isDanger
      isAriaDisabled={not !== undefined}
      onClick={() => not === undefined && setAsks(true)}
    >
      Delete
    </Button>
  )
  return (
    <Screen
      title={name}
      about={
        image.data && (
          <>
            {image.data.os} {image.data.release} for {image.data.arch}, {kindOf(image.data)}
          </>
        )
      }
      actions={image.data && (not ? <Tooltip content={not}>{remove}</Tooltip> : remove)}
    >
      <Loaded query={image}>
        {(i) => (
          <div className="image-parts">
            <Facts
              rows={[
                ['Version', i.version],
                ['Imported', <When key="at" at={i.updatedAt} />],
                ['Memory', i.memoryMiB && `at least ${i.memoryMiB} MiB`],
                ['Processor', i.cpuLevel && `at least ${i.cpuLevel}`],
                ['Kernel arguments', i.kernelArgs?.length && <code key="args">{i.kernelArgs.join(' ')}</code>],
                ['With a configuration', i.configArgs?.length && <code key="cargs">{i.configArgs.join(' ')}</code>],
                [
                  'Reads',
                  (i.configs ?? [])
                    .map((c) => `${c.format} ${c.version}${c.initrdPath ? `, from its initrd at ${c.initrdPath}` : ''}`)
                    .join('; '),
                ],
                ['Disk format', i.diskFormat],
                ['Size unpacked', i.diskBytes && bytesOf(i.diskBytes)],
                [
                  'From a registry',
                  i.remote && (
                    <span className="digest" key="remote">
                      {i.remote}
                    </span>
                  ),
                ],
                ['Seed label', i.seedLabel],
              ]}
            />
            <Files image={i} />
            <section aria-label="Used by">
              <Title headingLevel="h2" size="lg">
                Used by
              </Title>
              {users.length === 0 ? (
                <p>
                  No profile. <Link to={`/profiles?new=&image=${encodeURIComponent(name)}`}>Create one</Link>
                </p>
              ) : (
                <ul>
                  {users.map((p) => (
                    <li key={p.name}>
                      profile <Link to={`/profiles/${p.name}`}>{p.name}</Link>
                      {ofUsers.some((m) => m.profile === p.name) && ': machines '}
                      {ofUsers
                        .filter((m) => m.profile === p.name)
                        .slice(0, 50)
                        .map((m) => (
                          <span key={m.uid}>
                            <Link to={`/machines/${m.name}`}>{m.name}</Link>{' '}
                          </span>
                        ))}
                    </li>
                  ))}
                </ul>
              )}
            </section>
          </div>
        )}
      </Loaded>
      {asks && (
        <Ask
          title={`Delete image ${name}?`}
          verb="Delete"
          foresees={dryOf({
            method: 'DELETE',
            path: `/images/${encodeURIComponent(name)}`,
            version: image.data?.version,
          })}
          cli={`slipway image delete ${name}`}
          call={{ method: 'DELETE', path: `/images/${encodeURIComponent(name)}`, version: image.data?.version }}
          close={() => setAsks(false)}
          done={() => void go('/images')}
        />
      )}
    </Screen>
  )
}

function Files({ image }: { image: Image }) {
  const artefacts = useList('artefacts')
  const known = new Map(artefacts.data?.map((a) => [a.digest, a]))
  if (image.files.length === 0) return null
  return (
    <section aria-label="Files">
      <Title headingLevel="h2" size="lg">
        Files
      </Title>
      <Rows
        label={`Files of ${image.name}`}
        rows={image.files.map((f) => ({ ...f, stored: known.get(f.digest) }))}
        keyOf={(f) => f.name}
        columns={[
          ['Role', (f) => f.role],
          ['Name', (f) => f.name],
          ['Size', ({ stored }) => stored && bytesOf(stored.sizeBytes), { modifier: 'nowrap' }],
          ['SHA-256', (f) => f.digest.replace('sha256:', ''), { width: 35, className: 'digest' }],
          ['From', ({ stored }) => stored?.source, { className: 'digest' }],
          ['Arrived', ({ stored }) => stored && <When at={stored.createdAt} />, { modifier: 'nowrap' }],
        ]}
      />
      <small>
        Slipway computed the SHA-256 of every file at the import. Verify, in the list of images, computes and compares
        all of them again.
      </small>
    </section>
  )
}
