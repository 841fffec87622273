import { useState } from 'react'
import type { Call } from '../../api/act'
import type { Host, Schemas } from '../../api/client'
import { useList } from '../../api/queries'
import { flags } from '../../parts/cli'
import { ChoiceField, EditForm, LongField, TextField, useFields } from '../../parts/Fields'
import { linesOf, readPairs, writePairs } from '../../parts/written'

type Disk = Schemas['DiskHint']
type Place = { site?: string; row?: string; rack?: string; unit?: number }

interface Patch {
  name?: string
  profile?: string
  assetTag?: string
  diskBoot?: string
  place?: Place
  labels?: Record<string, string | null>
  rootDisk?: object
  keepDisks?: object[]
}

// labelPatch is what changes labels from one set to another: null takes one away.
export function labelPatch(old: Record<string, string>, now: Record<string, string>): Record<string, string | null> {
  const out: Record<string, string | null> = {}
  for (const [k, v] of Object.entries(now)) if (old[k] !== v) out[k] = v
  for (const k of Object.keys(old)) if (!(k in now)) out[k] = null
  return out
}

// readDisk reads a disk as it is written on one line: serial=S4XY model=PM9A3.
export function readDisk(text: string): object {
  const out: Record<string, unknown> = {}
  for (const word of text.match(/\S+?=(?:"[^"]*"|\S*)/g) ?? []) {
    const [k = '', ...rest] = word.split('=')
    const v = rest.join('=').replace(/^"|"$/g, '')
    if (v === '') continue
    out[k] = k.endsWith('Bytes') ? Number(v) : k.startsWith('is') ? v === 'true' : v
  }
  return out
}

export const writeDisk = (d: Disk | undefined) =>
  Object.entries(d ?? {})
    .filter(([, v]) => v !== undefined && v !== '')
    .map(([k, v]) => `${k}=${/\s/.test(String(v)) ? `"${v}"` : v}`)
    .join(' ')

// textsOf are the texts that the form begins with.
const textsOf = (h: Host) => ({
  name: h.name,
  site: h.place.site ?? '',
  row: h.place.row ?? '',
  rack: h.place.rack ?? '',
  unit: h.place.unit ? String(h.place.unit) : '',
  labels: writePairs(h.labels ?? {}),
  profile: h.profile ?? '',
  assetTag: h.assetTag ?? '',
  rootDisk: writeDisk(h.rootDisk),
  keepDisks: (h.keepDisks ?? []).map(writeDisk).join('\n'),
  diskBoot: h.diskBoot ?? '',
})

// bodyOf has what was changed.
function bodyOf(seen: Host, form: Record<keyof ReturnType<typeof textsOf>, string>): Patch {
  const was = textsOf(seen)
  const body: Patch = {}
  const place: Place = {}
  for (const key of ['name', 'profile', 'assetTag', 'diskBoot'] as const)
    if (form[key].trim() !== was[key]) body[key] = form[key].trim()
  for (const key of ['site', 'row', 'rack'] as const) if (form[key] !== was[key]) place[key] = form[key]
  if (Number(form.unit) !== Number(was.unit)) place.unit = Number(form.unit)
  if (Object.keys(place).length > 0) body.place = place
  const labels = labelPatch(seen.labels ?? {}, readPairs(form.labels))
  if (Object.keys(labels).length > 0) body.labels = labels
  if (form.rootDisk.trim() !== was.rootDisk) body.rootDisk = readDisk(form.rootDisk)
  if (form.keepDisks.trim() !== was.keepDisks) body.keepDisks = linesOf(form.keepDisks).map(readDisk)
  return body
}

// EditHost changes what an admin says of a host. Only what was changed is sent, with the version that was seen.
export function EditHost({ host: h, close }: { host: Host; close: () => void }) {
  const profiles = useList('profiles')
  const [seen] = useState(h) // events that come while the form is open change nothing in it
  const [form, of] = useFields(textsOf(seen))
  const body = bodyOf(seen, form)
  const call: Call = {
    method: 'PATCH',
    path: `/hosts/${encodeURIComponent(seen.name)}`,
    body,
    version: seen.version,
  }
  return (
    <EditForm
      title={`Edit ${seen.name}`}
      verb="Save"
      call={call}
      cli={cliOf(seen.name, body)}
      ready={Object.keys(body).length > 0}
      close={close}
    >
      <TextField label="Name" {...of('name')} isRequired />
      <TextField label="Site" {...of('site')} />
      <TextField label="Row" {...of('row')} />
      <TextField label="Rack" {...of('rack')} />
      <TextField
        label="Rack unit"
        type="number"
        {...of('unit')}
        help="The lowest unit of the host, counted from the bottom."
      />
      <LongField label="Labels" rows={3} {...of('labels')} help="key=value, one in a line." />
      <ChoiceField
        label="Profile"
        {...of('profile')}
        choices={[
          ['', 'the selectors decide'],
          ...(profiles.data ?? []).map((p): [string, string] => [p.name, p.name]),
          ...orphan(form.profile, profiles.data),
        ]}
      />
      <TextField label="Asset tag" {...of('assetTag')} />
      <TextField
        label="Root disk"
        {...of('rootDisk')}
        help={
          'The disk for operating systems, such as serial=S4XY or transport=nvme minBytes=400000000000. Empty: chosen by size.'
        }
      />
      <LongField
        label="Disks to keep"
        rows={2}
        {...of('keepDisks')}
        help="Slipway never wipes or chooses these disks. One in a line, written like the root disk."
      />
      <ChoiceField
        label="How it boots its own disk"
        {...of('diskBoot')}
        choices={[
          ['', 'as in the table of quirks'],
          ['no-offer', 'no-offer: the firmware tries its next entry'],
          ['exit', 'exit: iPXE returns to the firmware'],
          ['sanboot', 'sanboot: iPXE boots the first drive'],
        ]}
      />
    </EditForm>
  )
}

const orphan = (profile: string, all: { name: string }[] | undefined): [string, string][] =>
  profile && all && !all.some((p) => p.name === profile) ? [[profile, `${profile} (not stored)`]] : []

// cliOf are the commands that make the same changes; there is one for each kind of change.
export function cliOf(name: string, body: Patch): string {
  const out: string[] = []
  if (body.place)
    out.push(
      `slipway host place ${name}${flags(Object.fromEntries(Object.entries(body.place).map(([k, v]) => [k, String(v) || "''"])))}`,
    )
  if (body.labels)
    out.push(
      `slipway host label ${name} ${Object.entries(body.labels)
        .map(([k, v]) => (v === null ? `${k}-` : `${k}=${v}`))
        .join(' ')}`,
    )
  const given = { name: body.name, profile: body.profile, 'asset-tag': body.assetTag, 'disk-boot': body.diskBoot }
  const set = flags(Object.fromEntries(Object.entries(given).map(([k, v]) => [k, v === '' ? "''" : v])))
  if (set) out.push(`slipway host set ${name}${set}`)
  return out.join(' && ') || `slipway host set ${name} --help`
}
