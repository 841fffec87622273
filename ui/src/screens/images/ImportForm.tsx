import { Button, FormGroup, Progress, Radio, TextInput } from '@patternfly/react-core'
import { useEffect, useRef, useState } from 'react'
import { type Call, useAct } from '../../api/act'
import type { CatalogueEntry } from '../../api/client'
import { useList } from '../../api/queries'
import { bytesOf } from '../../parts/bytes'
import { Failure } from '../../parts/Failure'
import { CheckField, ChoiceField, FormDialog, LongField, same, TextField } from '../../parts/Fields'
import { upload } from './imports'
import { commandOf, type Kind, lacking, nameFor, nothing, requestOf, type Source, type Wanted } from './request'

const kinds: [Kind, string, string][] = [
  ['catalogue', 'A known system', 'Debian, Ubuntu, Flatcar, Rocky and others by name and release'],
  ['kernel', 'A kernel and its initrd', 'your own live system or installer'],
  ['disk', 'A disk image', 'raw or qcow2; our agent writes it to the disk'],
  ['oci', 'A disk image in a registry', 'agents fetch it from the registry; the server stores nothing'],
]

// ImportForm asks what to import. The import itself goes on in the server, whether or not anybody looks.
export function ImportForm({ close }: { close: () => void }) {
  const [w, setW] = useState<Wanted>(nothing)
  const set = (more: Partial<Wanted>) => setW((old) => ({ ...old, ...more }))
  const act = useAct(close)
  const request = requestOf(w)
  const call: Call = { method: 'POST', path: '/imports', body: request }
  const lacks = lacking(w)
  return (
    <FormDialog
      title="Import an image"
      about="The server fetches and checks its files."
      verb="Import"
      save={() => act.mutate(call)}
      isBusy={act.isPending}
      error={act.error}
      lacks={lacks}
      cli={commandOf(request)}
      call={call}
      close={close}
    >
      <FormGroup role="radiogroup" label="What" fieldId="import-kind" isStack>
        {kinds.map(([k, label, about]) => (
          <Radio
            key={k}
            id={`import-kind-${k}`}
            name="import-kind"
            label={label}
            description={about}
            isChecked={w.kind === k}
            onChange={() => set({ kind: k })}
          />
        ))}
      </FormGroup>
      {w.kind === 'catalogue' && <FromCatalogue w={w} set={set} />}
      {w.kind === 'kernel' && <OwnKernel w={w} set={set} />}
      {w.kind === 'disk' && (
        <>
          <FileField
            label="Disk image"
            source={w.disk}
            change={(disk) =>
              set({ disk, ...(disk.name && { name: w.name || nameFor(disk.name.replace(/\..*$/, ''), '') }) })
            }
          />
          <TextField
            label="SHA-256"
            value={w.sha256}
            set={(sha256) => set({ sha256 })}
            help="Optional. Slipway refuses a file with another sum."
          />
        </>
      )}
      {w.kind === 'oci' && (
        <TextField
          label="Address in the registry"
          value={w.remote}
          set={(remote) => set({ remote })}
          help="oci://registry/repository@sha256:… Slipway needs a digest, so that the image cannot change."
        />
      )}
      {(w.kind === 'disk' || w.kind === 'oci') && (
        <ChoiceField
          label="Disk format"
          value={w.diskFormat}
          set={(diskFormat) => set({ diskFormat })}
          choices={[['', 'detect'], ...same(['raw', 'raw.gz', 'raw.zst', 'raw.xz', 'qcow2'])]}
        />
      )}
      {w.kind !== 'oci' && <Checked w={w} set={set} />}
      {w.kind !== 'catalogue' && <Reads w={w} set={set} />}
      {w.kind !== 'catalogue' && <Arch w={w} set={set} archs={['x86_64', 'arm64']} />}
      <TextField
        label="Name"
        isRequired
        value={w.name}
        set={(name) => set({ name })}
        help="Small letters, digits and -. An existing image of that name gets a new version."
      />
    </FormDialog>
  )
}

interface Part {
  w: Wanted
  set: (more: Partial<Wanted>) => void
}

function FromCatalogue({ w, set }: Part) {
  const catalogue = useList('catalogue')
  const entries = catalogue.data ?? []
  const entry =
    entries.find((e) => e.os === w.os && (e.releases.includes(w.release) || e.releases.includes('*'))) ??
    entries.find((e) => e.os === w.os)
  const systems = [
    ...new Map(
      entries.filter((e) => e.os !== 'custom' && e.os !== 'slipway-agent').map((e) => [e.os, e.title]),
    ).entries(),
  ]
  const releases = [...new Set(entries.filter((e) => e.os === w.os).flatMap((e) => e.releases))].filter(
    (r) => r !== '*',
  )
  const choose = (os: string, release: string) => {
    const isOwn = w.name !== '' && w.name !== nameFor(w.os, w.release)
    set({ os, release, ...(!isOwn && { name: nameFor(os, release) }), place: 'publisher' })
  }
  return (
    <>
      {catalogue.error && <Failure error={catalogue.error} again={() => void catalogue.refetch()} />}
      <ChoiceField
        label="System"
        isRequired
        value={w.os}
        set={(os) => {
          const known = entries
            .filter((e) => e.os === os)
            .flatMap((e) => e.releases)
            .filter((r) => r !== '*')
          choose(os, known.length === 1 ? (known[0] ?? '') : '')
        }}
        choices={[['', 'choose'], ...systems]}
      />
      {w.os && (
        <TextField
          label="Release"
          isRequired
          value={w.release}
          set={(v) => choose(w.os, v)}
          list={releases}
          help={releases.length > 0 ? `Known: ${releases.join(', ')}` : 'The version as its publisher calls it'}
        />
      )}
      {entry && <Arch w={w} set={set} archs={Object.keys(entry.arch)} />}
      {entry && <From w={w} set={set} entry={entry} />}
    </>
  )
}

function From({ w, set, entry }: Part & { entry: CatalogueEntry }) {
  return (
    <>
      <FormGroup role="radiogroup" label="Files from" fieldId="import-place" isStack>
        {entry.base && (
          <Radio
            id="place-publisher"
            name="import-place"
            label="the publisher"
            description={entry.base}
            isChecked={w.place === 'publisher'}
            onChange={() => set({ place: 'publisher' })}
          />
        )}
        {entry.package && (
          <Radio
            id="place-package"
            name="import-place"
            label="a Debian package on the server"
            description={`first install it on the server: apt install ${entry.package.replaceAll('{release}', w.release).replaceAll('{arch}', entry.arch[w.arch] ?? '')}`}
            isChecked={w.place === 'package'}
            onChange={() => set({ place: 'package' })}
          />
        )}
        <Radio
          id="place-mirror"
          name="import-place"
          label="a mirror"
          description="An address with the same paths below it"
          isChecked={w.place === 'mirror'}
          onChange={() => set({ place: 'mirror' })}
        />
      </FormGroup>
      {w.place === 'mirror' && (
        <TextField
          label="Address of the mirror"
          isRequired
          value={w.mirror}
          set={(mirror) => set({ mirror })}
          help="http or https"
        />
      )}
      {entry.notes && <p>{entry.notes}</p>}
      {entry.isInstaller && (
        <p>This is an installer: it overwrites disks. It runs only on hosts with an order to install it.</p>
      )}
    </>
  )
}

function OwnKernel({ w, set }: Part) {
  return (
    <>
      <FileField label="Kernel" source={w.kernel} change={(kernel) => set({ kernel })} />
      <FileField label="Initrd" isOptional source={w.initrd} change={(initrd) => set({ initrd })} />
      <LongField label="Kernel arguments" value={w.args} set={(args) => set({ args })} rows={3} help="One in a line." />
      <CheckField
        label="It is an installer: it may overwrite disks"
        help="Then Slipway boots it only on hosts with an order to install."
        value={w.isInstaller}
        set={(isInstaller) => set({ isInstaller })}
      />
    </>
  )
}

// Checked asks what the files are compared with.
function Checked({ w, set }: Part) {
  return (
    <>
      <TextField
        label="List of checksums"
        value={w.sums}
        set={(sums) => set({ sums })}
        help={
          w.kind === 'catalogue'
            ? 'The address of a list that replaces the list of the publisher.'
            : 'Address of a list of SHA-256 or SHA-512 sums. With a list, Slipway refuses files that are not in it or differ.'
        }
      />
      <LongField
        label="Key of the publisher"
        value={w.signatureKey}
        set={(signatureKey) => set({ signatureKey })}
        rows={2}
        placeholder="-----BEGIN PGP PUBLIC KEY BLOCK-----"
        help="With a key, Slipway checks the signature of the list, or of the file if there is no list. The signature must be next to it."
      />
    </>
  )
}

function Reads({ w, set }: Part) {
  const formats =
    w.kind === 'kernel'
      ? ['ignition', 'cloud-init', 'autoinstall', 'kickstart', 'preseed', 'talos']
      : ['ignition', 'cloud-init']
  return (
    <>
      <ChoiceField
        label="Format of its configuration"
        value={w.format}
        set={(format) =>
          set({ format, formatVersion: format === 'ignition' ? '3.4.0' : format === 'cloud-init' ? '24.1' : '1' })
        }
        choices={[['', 'none'], ...same(formats)]}
      />
      {w.format && (
        <TextField
          label="Version of that format"
          isRequired
          value={w.formatVersion}
          set={(formatVersion) => set({ formatVersion })}
          help="The newest Ignition spec, the cloud-init version, or the installer's release."
        />
      )}
    </>
  )
}

function Arch({ w, set, archs }: Part & { archs: string[] }) {
  return <ChoiceField label="Architecture" value={w.arch} set={(arch) => set({ arch })} choices={same(archs)} />
}

const idOf = (label: string) => `import-${label.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`

// FileField takes an address, or a file of this computer that is sent to the server first.
function FileField({
  label,
  source,
  change,
  isOptional,
}: {
  label: string
  source: Source
  change: (s: Source) => void
  isOptional?: boolean
}) {
  const [sending, setSending] = useState<{ file: File; bytes: number }>()
  const [error, setError] = useState<unknown>()
  const stop = useRef<AbortController>(undefined)
  useEffect(() => () => stop.current?.abort(), [])
  const send = async (file: File | undefined) => {
    if (!file) return
    stop.current = new AbortController()
    setError(undefined)
    setSending({ file, bytes: 0 })
    try {
      const { digest } = await upload(file, (bytes) => setSending({ file, bytes }), stop.current.signal)
      change({
        at: digest,
        name:
          file.name
            .replace(/[^A-Za-z0-9._+-]+/g, '-')
            .replace(/^[^A-Za-z0-9]+/, '')
            .slice(0, 128) || 'file',
      })
    } catch (err) {
      setError(err)
    }
    setSending(undefined)
  }
  const id = idOf(label)
  return (
    <FormGroup label={label} fieldId={id} {...(!isOptional && { isRequired: true })}>
      {source.name ? (
        <div className="upload">
          <span>
            {source.name}, uploaded: <span className="digest">{source.at.slice(0, 19)}…</span>
          </span>
          <Button variant="link" isInline onClick={() => change({ at: '' })}>
            Choose another
          </Button>
        </div>
      ) : (
        <>
          <TextInput
            id={id}
            value={source.at}
            onChange={(_, at) => change({ at })}
            autoComplete="off"
            placeholder="https://"
            isDisabled={sending !== undefined}
          />
          <div className="upload">
            {sending ? (
              <>
                <Progress
                  aria-label={`Upload of ${sending.file.name}`}
                  value={sending.file.size ? Math.floor((100 * sending.bytes) / sending.file.size) : 0}
                  label={`${bytesOf(sending.bytes)} of ${bytesOf(sending.file.size)}`}
                  size="sm"
                />
                <Button variant="link" isInline onClick={() => stop.current?.abort()}>
                  Stop
                </Button>
              </>
            ) : (
              <>
                <span>or a file of this computer:</span>
                <input
                  type="file"
                  aria-label={`Upload ${label.toLowerCase()}`}
                  onChange={(e) => void send(e.target.files?.[0])}
                />
              </>
            )}
          </div>
        </>
      )}
      {error !== undefined && <Failure error={error} />}
    </FormGroup>
  )
}
