import { useState } from 'react'
import type { Call } from '../../api/act'
import type { Host, Schemas } from '../../api/client'
import { useList } from '../../api/queries'
import { flags } from '../../parts/cli'
import { ChoiceField, EditForm, LongField, TextField } from '../../parts/Fields'
import { readPairs } from './pairs'

type Disk = Schemas['DiskHint']
type Patch = Record<string, unknown>

// labelPatch is what changes labels from one set to another: null takes one away.
export function labelPatch(old: Record<string, string>, now: Record<string, string>): Record<string, string | null> {
  const out: Record<string, string | null> = {}
  for (const [k, v] of Object.entries(now)) if (old[k] !== v) out[k] = v
  for (const k of Object.keys(old)) if (!(k in now)) out[k] = null
  return out
}

const writePairs = (all: Record<string, string>) =>
  Object.entries(all)
    .map(([k, v]) => `${k}=${v}`)
    .join('\n')

// readDisk reads a disk as it is written on one line: serial=S4XY model=PM9A3.
export function readDisk(text: string): Disk {
  const out: Record<string, unknown> = {}
  for (const word of text.match(/\S+?=(?:"[^"]*"|\S*)/g) ?? []) {
    const [k = '', ...rest] = word.split('=')
    const v = rest.join('=').replace(/^"|"$/g, '')
    if (v === '') continue
    out[k] = k.endsWith('Bytes') ? Number(v) : k.startsWith('is') ? v === 'true' : v
  }
  return out as Disk
}

export const writeDisk = (d: Disk | undefined) =>
  Object.entries(d ?? {})
    .filter(([, v]) => v !== undefined && v !== '')
    .map(([k, v]) => `${k}=${/\s/.test(String(v)) ? `"${v}"` : v}`)
    .join(' ')

// EditHost changes what an admin says of a host. Only what was changed is sent, with the version that was seen.
export function EditHost({ host: h, close }: { host: Host; close: () => void }) {
  const profiles = useList('profiles')
  const [seen] = useState(h) // events that come while the form is open change nothing in it
  const [name, setName] = useState(h.name)
  const [site, setSite] = useState(h.place.site ?? '')
  const [row, setRow] = useState(h.place.row ?? '')
  const [rack, setRack] = useState(h.place.rack ?? '')
  const [unit, setUnit] = useState(h.place.unit ? String(h.place.unit) : '')
  const [profile, setProfile] = useState(h.profile ?? '')
  const [labels, setLabels] = useState(writePairs(h.labels ?? {}))
  const [asset, setAsset] = useState(h.assetTag ?? '')
  const [disk, setDisk] = useState(writeDisk(h.rootDisk))
  const [keep, setKeep] = useState((h.keepDisks ?? []).map(writeDisk).join('\n'))
  const [way, setWay] = useState<string>(h.diskBoot ?? '')
  const body: Patch = {}
  const put = (key: string, was: unknown, is: unknown) => {
    if (JSON.stringify(was) !== JSON.stringify(is)) body[key] = is
  }
  put('name', seen.name, name.trim())
  put('profile', seen.profile ?? '', profile)
  put('assetTag', seen.assetTag ?? '', asset)
  put('diskBoot', seen.diskBoot ?? '', way)
  const place: Patch = {}
  if (site !== (seen.place.site ?? '')) place.site = site
  if (row !== (seen.place.row ?? '')) place.row = row
  if (rack !== (seen.place.rack ?? '')) place.rack = rack
  if (Number(unit || 0) !== (seen.place.unit ?? 0)) place.unit = Number(unit || 0)
  if (Object.keys(place).length > 0) body.place = place
  const changed = labelPatch(seen.labels ?? {}, readPairs(labels))
  if (Object.keys(changed).length > 0) body.labels = changed
  if (disk.trim() !== writeDisk(seen.rootDisk)) body.rootDisk = readDisk(disk)
  if (keep.trim() !== (seen.keepDisks ?? []).map(writeDisk).join('\n'))
    body.keepDisks = keep
      .split('\n')
      .filter((l) => l.trim())
      .map(readDisk)
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
      <TextField label="Name" value={name} set={setName} field="name" isRequired />
      <TextField label="Site" value={site} set={setSite} field="site" />
      <TextField label="Row" value={row} set={setRow} field="row" />
      <TextField label="Rack" value={rack} set={setRack} field="rack" />
      <TextField
        label="Rack unit"
        type="number"
        value={unit}
        set={setUnit}
        field="unit"
        help="The lowest that it fills, counted from the bottom."
      />
      <LongField
        label="Labels"
        rows={3}
        value={labels}
        set={setLabels}
        field="labels"
        help="key=value, one on a line."
      />
      <ChoiceField
        label="Profile"
        value={profile}
        set={setProfile}
        field="profile"
        choices={[
          ['', 'the selectors decide'],
          ...(profiles.data ?? []).map((p): [string, string] => [p.name, p.name]),
          ...orphan(profile, profiles.data),
        ]}
      />
      <TextField label="Asset tag" value={asset} set={setAsset} field="assetTag" />
      <TextField
        label="Root disk"
        value={disk}
        set={setDisk}
        field="rootDisk"
        help={
          'The disk for operating systems, such as serial=S4XY or transport=nvme minBytes=400000000000. Empty: chosen by size.'
        }
      />
      <LongField
        label="Disks to keep"
        rows={2}
        value={keep}
        set={setKeep}
        field="keepDisks"
        help="Never wiped and never chosen; one on a line, written as the root disk."
      />
      <ChoiceField
        label="Way to its own disk"
        value={way}
        set={setWay}
        field="diskBoot"
        choices={[
          ['', 'as the quirk table says'],
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
  const place = body.place as Record<string, string | number> | undefined
  if (place)
    out.push(
      `slipway host place ${name}${flags(Object.fromEntries(Object.entries(place).map(([k, v]) => [k, String(v) || "''"])))}`,
    )
  const labels = body.labels as Record<string, string | null> | undefined
  if (labels)
    out.push(
      `slipway host label ${name} ${Object.entries(labels)
        .map(([k, v]) => (v === null ? `${k}-` : `${k}=${v}`))
        .join(' ')}`,
    )
  const set: Record<string, string> = {}
  if (body.name !== undefined) set.name = String(body.name)
  if (body.profile !== undefined) set.profile = String(body.profile) || "''"
  if (body.assetTag !== undefined) set['asset-tag'] = String(body.assetTag) || "''"
  if (body.diskBoot !== undefined) set['disk-boot'] = String(body.diskBoot) || "''"
  if (Object.keys(set).length > 0) out.push(`slipway host set ${name}${flags(set)}`)
  return out.join(' && ') || `slipway host set ${name} --help`
}
