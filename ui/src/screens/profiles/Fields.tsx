import { Link } from 'react-router'
import { useList } from '../../api/queries'
import { CheckField, ChoiceField, LongField, TextField } from '../../parts/Fields'
import { SelectorField } from '../../parts/SelectorField'
import { isAgent } from '../images/agent'
import type { Draft } from './draft'

export const documentFormats = ['butane', 'ignition', 'cloud-config', 'autoinstall', 'kickstart', 'preseed', 'talos']

interface Edited {
  draft: Draft
  set: (more: Partial<Draft>) => void
  name: string
}

// Fields are what a profile says besides its texts.
export function Fields({ draft: d, set, name }: Edited) {
  const images = useList('images')
  const profiles = useList('profiles')
  const image = images.data?.find((i) => i.name === d.image)
  const names = (images.data ?? []).filter((i) => !isAgent(i)).map((i) => i.name)
  const others = (profiles.data ?? []).map((p) => p.name).filter((n) => n !== name)
  const formats = (image?.configs ?? []).map((c) => c.format)
  const of = (key: keyof Draft) => ({ value: d[key], set: (v: string) => set({ [key]: v }) })
  return (
    <div className="profile-fields">
      <ChoiceField
        label="Image"
        isRequired
        value={d.image}
        set={(image) => set({ image, format: '' })}
        choices={choicesOf(d.image, names, 'choose')}
        help={
          image
            ? `${image.os} ${image.release}, ${image.arch}${image.isInstaller ? ', an installer' : ''}; reads ${formats.join(', ') || 'no configuration'}`
            : images.data && (
                <>
                  {d.image && `There is no image ${d.image}. `}
                  <Link to="/images?do=import">Import an image</Link>
                </>
              )
        }
      />
      <SelectorField
        id="profile-selector"
        value={d.selector}
        onChange={(selector) => set({ selector })}
        none="Empty: only machines that name this profile, and hosts that are pinned to it."
      />
      <TextField
        label="Priority"
        type="number"
        {...of('priority')}
        help="If several selectors match a host, the highest priority wins. If two profiles have the same priority, the host boots neither."
      />
      <LongField label="Kernel arguments" rows={2} {...of('args')} help="One in a line, after those of the image." />
      <LongField
        label="Parameters"
        rows={2}
        {...of('parameters')}
        help="NAME=VALUE, one in a line. Arguments use it as ${NAME}."
      />
      <ChoiceField
        label="Extends"
        {...of('extends')}
        choices={choicesOf(d.extends, others, 'none')}
        help="This profile adds its configuration to that of the chosen profile."
      />
      <ChoiceField
        label="Format"
        {...of('format')}
        choices={choicesOf(d.format, formats, `the image's first${formats[0] ? ` (${formats[0]})` : ''}`)}
        help="If the image reads several formats. Empty: the first one."
      />
      <LongField
        label="Allowed losses"
        rows={2}
        {...of('accepts')}
        help="Parts that the format supports only partly, such as /storage/lvm, one in a line. Slipway then saves the profile, although the system gets these parts only partly."
      />
      <CheckField
        label="Lab network: no protection of secrets"
        help="Slipway gives the secrets to any machine that boots with the MAC of the host. Only for a lab on a network of its own (docs/secrets.md)."
        value={d.isolated === 'yes'}
        set={(is) => set({ isolated: is ? 'yes' : 'no' })}
      />
    </div>
  )
}

// choicesOf are the names to choose from, with the one that is chosen though it is not stored.
const choicesOf = (is: string, names: string[], none: string) =>
  [...new Set(['', is, ...names])].map((n): [string, string] => [n, n || none])
