import {
  Button,
  Checkbox,
  Form,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  Progress,
  Radio,
  TextArea,
  TextInput,
} from '@patternfly/react-core'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { type Call, useAct } from '../../api/act'
import type { CatalogueEntry } from '../../api/client'
import { useList } from '../../api/queries'
import { bytesOf } from '../../parts/bytes'
import { Command } from '../../parts/Command'
import { Failure } from '../../parts/Failure'
import { upload } from './imports'
import { commandOf, type Kind, lacking, nameFor, nothing, requestOf, type Source, type Wanted } from './request'

const kinds: [Kind, string, string][] = [
  ['catalogue', 'A known system', 'Debian, Ubuntu, Flatcar, Rocky and others by name and release'],
  ['kernel', 'A kernel and its initrd', 'your own live system or installer'],
  ['disk', 'A disk image', 'raw or qcow2; our agent writes it to the disk'],
  ['oci', 'A disk image in a registry', 'agents fetch it there themselves; nothing is stored here'],
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
    <Modal isOpen variant="medium" onClose={close} aria-labelledby="import-title">
      <ModalHeader
        labelId="import-title"
        title="Import an image"
        description="Its files are fetched and checked by the server."
      />
      <ModalBody tabIndex={0}>
        <Form
          onSubmit={(e) => {
            e.preventDefault()
            if (!lacks && !act.isPending) act.mutate(call)
          }}
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
              <Text
                label="SHA-256 of it"
                value={w.sha256}
                change={(sha256) => set({ sha256 })}
                help="Where you have it. A file with another sum is refused."
              />
            </>
          )}
          {w.kind === 'oci' && (
            <Text
              label="Where"
              value={w.remote}
              change={(remote) => set({ remote })}
              help="oci://registry/repository@sha256:… — by digest, so that it cannot change"
            />
          )}
          {(w.kind === 'disk' || w.kind === 'oci') && (
            <Choice
              label="Packed as"
              value={w.diskFormat}
              change={(diskFormat) => set({ diskFormat })}
              options={[
                ['', 'as the name says'],
                ...['raw', 'raw.gz', 'raw.zst', 'raw.xz', 'qcow2'].map((f): [string, string] => [f, f]),
              ]}
            />
          )}
          {w.kind !== 'oci' && <Checked w={w} set={set} />}
          {w.kind !== 'catalogue' && <Reads w={w} set={set} />}
          {w.kind !== 'catalogue' && <Arch w={w} set={set} archs={['x86_64', 'arm64']} />}
          <Text
            label="Name"
            isRequired
            value={w.name}
            change={(name) => set({ name })}
            help="Small letters, digits and -. An image of that name that is here becomes a new version."
          />
        </Form>
        {act.error && <Failure error={act.error} />}
        <Command cli={commandOf(request)} call={call} />
      </ModalBody>
      <ModalFooter>
        <Button isDisabled={lacks !== '' || act.isPending} isLoading={act.isPending} onClick={() => act.mutate(call)}>
          Import
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
        {lacks && <small>Not yet: {lacks}.</small>}
      </ModalFooter>
    </Modal>
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
      <Choice
        label="System"
        isRequired
        value={w.os}
        change={(os) => {
          const known = entries
            .filter((e) => e.os === os)
            .flatMap((e) => e.releases)
            .filter((r) => r !== '*')
          choose(os, known.length === 1 ? (known[0] ?? '') : '')
        }}
        options={[['', 'choose'], ...systems]}
      />
      {w.os && (
        <FormGroup label="Release" fieldId="import-release" isRequired>
          <TextInput
            id="import-release"
            value={w.release}
            list="import-releases"
            onChange={(_, v) => choose(w.os, v)}
            autoComplete="off"
          />
          <datalist id="import-releases">
            {releases.map((r) => (
              <option key={r} value={r} />
            ))}
          </datalist>
          <Help>{releases.length > 0 ? `Known: ${releases.join(', ')}` : 'The version as its publisher calls it'}</Help>
        </FormGroup>
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
            description={`install it there first: apt install ${entry.package.replaceAll('{release}', w.release).replaceAll('{arch}', entry.arch[w.arch] ?? '')}`}
            isChecked={w.place === 'package'}
            onChange={() => set({ place: 'package' })}
          />
        )}
        <Radio
          id="place-mirror"
          name="import-place"
          label="a mirror"
          description="with the same paths below its address"
          isChecked={w.place === 'mirror'}
          onChange={() => set({ place: 'mirror' })}
        />
      </FormGroup>
      {w.place === 'mirror' && (
        <Text
          label="Address of the mirror"
          isRequired
          value={w.mirror}
          change={(mirror) => set({ mirror })}
          help="http or https"
        />
      )}
      {entry.notes && <Help>{entry.notes}</Help>}
      {entry.isInstaller && (
        <Help>It is an installer: it overwrites a disk, and runs only on hosts with an order to install it.</Help>
      )}
    </>
  )
}

function OwnKernel({ w, set }: Part) {
  return (
    <>
      <FileField label="Kernel" source={w.kernel} change={(kernel) => set({ kernel })} />
      <FileField label="Initrd" isOptional source={w.initrd} change={(initrd) => set({ initrd })} />
      <FormGroup label="Kernel arguments" fieldId="import-args">
        <TextArea
          id="import-args"
          value={w.args}
          onChange={(_, v) => set({ args: v })}
          rows={3}
          resizeOrientation="vertical"
        />
        <Help>One in a line.</Help>
      </FormGroup>
      <Checkbox
        id="import-installs"
        label="Booting it may overwrite a disk"
        description="Then it runs only on hosts with an order to install."
        isChecked={w.isInstaller}
        onChange={(_, v) => set({ isInstaller: v })}
      />
    </>
  )
}

// Checked asks what the files are compared with.
function Checked({ w, set }: Part) {
  return (
    <>
      <Text
        label="List of checksums"
        value={w.sums}
        change={(sums) => set({ sums })}
        help={
          w.kind === 'catalogue'
            ? "Address of a list in place of the publisher's own."
            : 'Address of a list of SHA-256 or SHA-512 sums. With it, each file must be in it and fit.'
        }
      />
      <FormGroup label="Key of the publisher" fieldId="import-key">
        <TextArea
          id="import-key"
          value={w.signatureKey}
          onChange={(_, v) => set({ signatureKey: v })}
          rows={2}
          resizeOrientation="vertical"
          placeholder="-----BEGIN PGP PUBLIC KEY BLOCK-----"
        />
        <Help>
          With it, the list must be signed, or without a list the only file. Slipway looks for the signature next to it.
        </Help>
      </FormGroup>
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
      <Choice
        label="Configuration it reads"
        value={w.format}
        change={(format) =>
          set({ format, formatVersion: format === 'ignition' ? '3.4.0' : format === 'cloud-init' ? '24.1' : '1' })
        }
        options={[['', 'none'], ...formats.map((f): [string, string] => [f, f])]}
      />
      {w.format && (
        <Text
          label="Version of what reads it"
          isRequired
          value={w.formatVersion}
          change={(formatVersion) => set({ formatVersion })}
          help="The newest Ignition spec, the cloud-init version, or the installer's release."
        />
      )}
    </>
  )
}

function Arch({ w, set, archs }: Part & { archs: string[] }) {
  return (
    <Choice
      label="Architecture"
      value={w.arch}
      change={(arch) => set({ arch })}
      options={archs.map((a): [string, string] => [a, a])}
    />
  )
}

function Help({ children }: { children: ReactNode }) {
  return (
    <FormHelperText>
      <HelperText>
        <HelperTextItem>{children}</HelperTextItem>
      </HelperText>
    </FormHelperText>
  )
}

interface Field {
  label: string
  value: string
  change: (value: string) => void
  help?: string
  isRequired?: boolean
}

const idOf = (label: string) => `import-${label.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`

function Text({ label, value, change, help, isRequired }: Field) {
  return (
    <FormGroup label={label} fieldId={idOf(label)} {...(isRequired && { isRequired })}>
      <TextInput id={idOf(label)} value={value} onChange={(_, v) => change(v)} autoComplete="off" />
      {help && <Help>{help}</Help>}
    </FormGroup>
  )
}

function Choice({ label, value, change, options, isRequired }: Field & { options: [string, string][] }) {
  return (
    <FormGroup label={label} fieldId={idOf(label)} {...(isRequired && { isRequired })}>
      <FormSelect id={idOf(label)} value={value} onChange={(_, v) => change(v)}>
        {options.map(([v, text]) => (
          <FormSelectOption key={v} value={v} label={text} />
        ))}
      </FormSelect>
    </FormGroup>
  )
}

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
            Take another
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
