import { Alert, Button, Content, Title } from '@patternfly/react-core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, headers, must, problemOf, type Schemas } from '../../api/client'
import { mayNot, useMe } from '../../api/me'
import { bytesOf } from '../../parts/bytes'
import { Command } from '../../parts/Command'
import { Facts } from '../../parts/Facts'
import { Failure, Loaded } from '../../parts/Failure'
import { When } from '../../parts/When'

type Status = Schemas['BackupStatus']

// Backup takes a copy of the database, and says what else a restore needs.
export function Backup() {
  const status = useQuery({
    queryKey: ['backups'],
    queryFn: () => must(api.GET('/api/v1/backup/status')),
  })
  return (
    <>
      <Title headingLevel="h2" style={{ marginBlockEnd: '0.5rem' }}>
        Take a backup
      </Title>
      <Loaded query={status}>
        {(s) => (
          <>
            <Facts
              rows={[
                ['Last backup', s.lastAt ? <Last key="last" s={s} /> : 'none yet'],
                ['Database', bytesOf(s.databaseBytes)],
                ['Free on its disk', bytesOf(s.freeBytes)],
              ]}
            />
            <Alert variant="info" isInline title="What is not in a backup" style={{ marginBlock: '1rem' }}>
              <p>
                The key that opens its {s.secretN} secrets and passwords: keep a copy of <code>secret.key</code> from
                the data directory somewhere else.
              </p>
              <p>
                The {s.artefactN} files of images ({bytesOf(s.artefactBytes)}): copy the folder <code>artefacts</code>,
                or import the images again.
              </p>
            </Alert>
          </>
        )}
      </Loaded>
      <Download />
      <Command cli="slipway backup slipway-backup.tar.gz" />
      <Title headingLevel="h2" style={{ marginBlock: '2rem 0.5rem' }}>
        Restore
      </Title>
      <Content component="ol">
        <li>
          Stop the server, or use another computer. Its Slipway must not be older than the Slipway that made the backup.
        </li>
        <li>
          Put <code>secret.key</code> into the data directory, and <code>artefacts</code> if you have it.
        </li>
        <li>
          Restore. Slipway checks the file first. If the data directory has a database already, Slipway refuses. With
          --force it keeps that database under another name, and restores.
        </li>
        <li>
          Disconnect the boot interface, and start the server. It does not know what happened after the backup. Delete
          accept rules that may match hosts in use, and check the hosts in maintenance. Then connect the interface
          again.
        </li>
      </Content>
      <Command cli="slipway restore slipway-backup.tar.gz --data-dir /var/lib/slipway" />
    </>
  )
}

function Last({ s }: { s: Status }) {
  return (
    <>
      <When at={s.lastAt} /> by {s.lastBy}
    </>
  )
}

// Download reads the whole file before it is saved, so that one that was cut short is never saved as a backup.
function Download() {
  const me = useMe()
  const queries = useQueryClient()
  const [got, setGot] = useState<number>()
  const [saved, setSaved] = useState('')
  const [error, setError] = useState<unknown>()
  const why = me && mayNot(me, 'admin', '')
  const take = async () => {
    setError(undefined)
    setSaved('')
    setGot(0)
    try {
      const { name, data } = await download(setGot)
      save(name, data)
      setSaved(`${name} (${bytesOf(data.size)})`)
    } catch (e) {
      setError(e)
    }
    setGot(undefined)
    await queries.invalidateQueries({ queryKey: ['backups'] })
  }
  return (
    <>
      {error !== undefined && <Failure error={error} />}
      {saved && <Alert variant="success" isInline title={`Saved ${saved}`} />}
      <Button
        isLoading={got !== undefined}
        isDisabled={got !== undefined}
        isAriaDisabled={!!why}
        title={why ?? ''}
        onClick={() => !why && void take()}
      >
        {got === undefined ? `Download a backup${why ? `: ${why}` : ''}` : `Downloading, ${bytesOf(got)}`}
      </Button>
    </>
  )
}

async function download(tell: (bytes: number) => void): Promise<{ name: string; data: Blob }> {
  const r = await fetch('/api/v1/backup', { headers: headers() })
  if (!r.ok || !r.body) throw await problemOf(r)
  const parts: BlobPart[] = []
  const reader = r.body.getReader()
  for (let n = 0; ; ) {
    const { value, done } = await reader.read() // throws when the server cuts it short
    if (done) break
    parts.push(value as BlobPart)
    n += value.length
    tell(n)
  }
  const name = /filename="([\w.-]+)"/.exec(r.headers.get('Content-Disposition') ?? '')?.[1] ?? 'slipway-backup.tar.gz'
  return { name, data: new Blob(parts, { type: 'application/gzip' }) }
}

function save(name: string, data: Blob) {
  const url = URL.createObjectURL(data)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
