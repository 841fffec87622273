import type { Call } from '../../api/act'
import type { Host } from '../../api/client'

export interface Verb {
  key: string
  title: string
  about: 'life' | 'power' | 'flags' | 'more'
  call?: Call // none: a form asks for more
  cli?: string
  not?: string // why it cannot be done now
  warns?: string // what is lost by it
  typed?: boolean // the host's name has to be typed
}

type About = Pick<
  Host,
  'name' | 'state' | 'isProtected' | 'inMaintenance' | 'isCordoned' | 'isRetained' | 'isAdopted' | 'machine'
>

// Controller is what is known of how a host is powered; undefined while that is not known, null when there is none.
export type Controller = { driver: string; capabilities?: string[] } | null | undefined

const held = (h: About) =>
  h.isProtected
    ? 'it is protected'
    : h.isAdopted
      ? 'its system is not ours (adopted)'
      : h.machine
        ? `machine ${h.machine} has it`
        : undefined

// verbs are all that can be done with a host; what cannot be done now says why. refused is why nothing may be done, notGolden
// why it may not be made the measure of others.
export function verbs(h: About, bmc: Controller, refused?: string, notGolden?: string): Verb[] {
  const at = `/hosts/${encodeURIComponent(h.name)}`
  const post = (verb: string, body: unknown = {}): Call => ({ method: 'POST', path: `${at}/${verb}`, body })
  const isNew = h.state === 'discovered' ? 'accept it first' : undefined
  const flag = (
    key: string,
    title: string,
    end: string,
    isOn: boolean | undefined,
    more: Partial<Verb> = {},
  ): Verb => ({
    key,
    title: isOn ? end : title,
    about: 'flags',
    call: post(key, { on: !isOn }),
    cli: `slipway host ${key} ${h.name}${isOn ? ' --off' : ''}`,
    ...more,
  })
  const can = (what: string) =>
    bmc === null
      ? 'it has no controller'
      : bmc?.capabilities && !bmc.capabilities.includes(what)
        ? `its controller (${bmc.driver}) cannot`
        : undefined
  const power = (action: string, title: string, warns?: string): Verb => ({
    key: `power-${action}`,
    title,
    about: 'power',
    call: post('power', { action }),
    cli: `slipway host power ${h.name} ${action}`,
    ...(warns && { warns }),
  })
  const confirm = (state: string): Verb => ({
    key: `confirm-${state}`,
    title: `Confirm that it is ${state}`,
    about: 'power',
    call: post('power/confirm', { state }),
    cli: `slipway host power ${h.name} --confirm ${state}`,
    ...(state === 'off' && {
      warns: 'All later steps, such as a wipe, rely on this. Confirm it only if you have seen that the machine is off.',
    }),
    ...(bmc &&
      bmc.driver !== 'manual' &&
      bmc.driver !== 'wol' && { not: `its controller (${bmc.driver}) reports that itself` }),
  })
  const list: Verb[] = [
    {
      key: 'accept',
      title: 'Accept',
      about: 'life',
      call: post('accept'),
      cli: `slipway host accept ${h.name}`,
      ...(h.state !== 'discovered' && { not: 'it is accepted already' }),
    },
    {
      key: 'inspect',
      title: 'Inspect',
      about: 'life',
      ...why(isNew ?? (['available', 'failed', 'inspecting'].includes(h.state) ? undefined : `it is ${h.state}`)),
    },
    { key: 'install', title: 'Install', about: 'life', ...why(isNew ?? held(h)) },
    {
      key: 'reinstall',
      title: 'Reinstall its machine',
      about: 'life',
      call: { method: 'POST', path: `/machines/${encodeURIComponent(h.machine ?? '')}/reinstall` },
      cli: `slipway machine reinstall ${h.machine ?? ''}`,
      warns: 'Slipway stops its system at once. All data on its disks is lost, except on the disks to keep.',
      typed: true,
      ...why(!h.machine ? 'no machine has it' : h.isProtected ? 'it is protected' : undefined),
    },
    {
      key: 'release',
      title: h.state === 'failed' ? 'Release (clear the failure)' : 'Release',
      about: 'life',
      call: post('release'),
      cli: `slipway host release ${h.name}`,
      ...why(
        isNew ??
          (h.machine
            ? `machine ${h.machine} has it: delete the machine`
            : h.isAdopted
              ? 'its system is not ours (adopted)'
              : ['releasing', 'cleaning'].includes(h.state)
                ? `it is ${h.state}: wait for the end of the wipe`
                : undefined),
      ),
    },
    {
      key: 'confirm',
      title: 'Confirm that this boot is its own',
      about: 'life',
      call: post('confirm'),
      cli: `slipway host confirm ${h.name}`,
      warns: `The machine that boots as ${h.name} now, or next within an hour, gets the secrets of ${h.name}.`,
      ...why(isNew),
    },
    { key: 'clean', title: 'Wipe', about: 'life', typed: true, ...why(isNew ?? held(h)) },
    power('on', 'Switch on'),
    power('shutdown', 'Shut down', 'Its operating system gets an order to stop.'),
    power('off', 'Switch off', 'All programs on it stop at once.'),
    power('cycle', 'Power cycle', 'All programs on it stop at once.'),
    power('reset', 'Reset', 'Its system restarts at once.'),
    confirm('on'),
    confirm('off'),
    { ...flag('locate', 'Light the identify LED', '', false), about: 'power', ...why(can('locate')) },
    {
      ...flag('locate', 'Switch the identify LED off', '', false),
      key: 'locate-off',
      about: 'power',
      call: post('locate', { on: false }),
      cli: `slipway host locate ${h.name} --off`,
      ...why(can('locate')),
    },
    flag('maintain', 'Begin maintenance', 'End maintenance', h.inMaintenance),
    flag(
      'protect',
      'Protect',
      'End protection',
      h.isProtected,
      h.isProtected
        ? { warns: 'From then on, a machine can claim this host, and Slipway can wipe and install it.' }
        : {},
    ),
    flag('cordon', 'Cordon', 'End cordon', h.isCordoned),
    flag(
      'retain',
      'Keep its disks after its machine is deleted',
      'Wipe its disks after its machine is deleted',
      h.isRetained,
    ),
    flag(
      'adopt',
      'Adopt: its system is not ours',
      'End adoption',
      h.isAdopted,
      why(isNew ?? (h.machine ? `machine ${h.machine} has it` : undefined)),
    ),
    { key: 'edit', title: 'Edit', about: 'more' },
    { key: 'golden', title: 'Take its hardware as golden', about: 'more', ...why(notGolden) },
    { key: 'sticker', title: 'Sticker with QR code', about: 'more' },
    {
      key: 'delete',
      title: 'Forget',
      about: 'more',
      call: { method: 'DELETE', path: at },
      cli: `slipway host delete ${h.name}`,
      warns: 'Slipway deletes all its data about this host. If the machine boots again, it is a new, unaccepted host.',
      typed: true,
      ...why(h.isProtected ? 'it is protected' : h.machine ? `machine ${h.machine} has it` : undefined),
    },
  ]
  if (refused === undefined) return list
  return list.map((v) => (v.key === 'sticker' ? v : { ...v, not: refused }))
}

const why = (not: string | undefined) => (not === undefined ? {} : { not })
