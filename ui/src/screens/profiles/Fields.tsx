import {
  Checkbox,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  TextArea,
  TextInput,
} from '@patternfly/react-core'
import type { ReactNode } from 'react'
import { Link } from 'react-router'
import { useList } from '../../api/queries'
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
  const formats = (image?.configs ?? []).map((c) => c.format)
  return (
    <div className="profile-fields">
      <Field
        label="Image"
        id="profile-image"
        isRequired
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
      >
        <FormSelect id="profile-image" value={d.image} onChange={(_, v) => set({ image: v, format: '' })}>
          {[...new Set(['', d.image, ...names])].map((n) => (
            <FormSelectOption key={n} value={n} label={n || 'choose'} />
          ))}
        </FormSelect>
      </Field>
      <SelectorField
        id="profile-selector"
        value={d.selector}
        onChange={(selector) => set({ selector })}
        none="Empty: only hosts that it is pinned to, and machines that name it."
      />
      <Field
        label="Priority"
        id="profile-priority"
        help="The highest wins where several selectors match; two of the same are an error."
      >
        <TextInput id="profile-priority" type="number" value={d.priority} onChange={(_, v) => set({ priority: v })} />
      </Field>
      <Field label="Kernel arguments" id="profile-args" help="One in a line, after those of the image.">
        <TextArea
          id="profile-args"
          value={d.args}
          rows={2}
          resizeOrientation="vertical"
          onChange={(_, v) => set({ args: v })}
        />
      </Field>
      <Field
        label="Parameters"
        id="profile-parameters"
        help="NAME=VALUE, one in a line: what stands for ${NAME} in arguments."
      >
        <TextArea
          id="profile-parameters"
          value={d.parameters}
          rows={2}
          resizeOrientation="vertical"
          onChange={(_, v) => set({ parameters: v })}
        />
      </Field>
      <Field label="Extends" id="profile-extends" help="A profile whose configuration this one builds upon.">
        <FormSelect id="profile-extends" value={d.extends} onChange={(_, v) => set({ extends: v })}>
          {[...new Set(['', d.extends, ...(profiles.data ?? []).map((p) => p.name).filter((n) => n !== name)])].map(
            (n) => (
              <FormSelectOption key={n} value={n} label={n || 'none'} />
            ),
          )}
        </FormSelect>
      </Field>
      <Field label="Format" id="profile-format" help="Where the image reads several; the first otherwise.">
        <FormSelect id="profile-format" value={d.format} onChange={(_, v) => set({ format: v })}>
          {[...new Set(['', d.format, ...formats])].map((f) => (
            <FormSelectOption
              key={f}
              value={f}
              label={f || `the image's first${formats[0] ? ` (${formats[0]})` : ''}`}
            />
          ))}
        </FormSelect>
      </Field>
      <Field
        label="Accepts the loss of"
        id="profile-accepts"
        help="Paths that the format carries only in part, such as /storage/lvm, one in a line."
      >
        <TextArea
          id="profile-accepts"
          value={d.accepts}
          rows={2}
          resizeOrientation="vertical"
          onChange={(_, v) => set({ accepts: v })}
        />
      </Field>
      <Checkbox
        id="profile-isolated"
        label="The boot network is a lab"
        description="Secrets are given out without the guards of the boot network (docs/secrets.md)."
        isChecked={d.isolated === 'yes'}
        onChange={(_, v) => set({ isolated: v ? 'yes' : 'no' })}
      />
    </div>
  )
}

interface Labelled {
  label: string
  id: string
  help?: ReactNode
  isRequired?: boolean
  children: ReactNode
}

export function Field({ label, id, help, isRequired, children }: Labelled) {
  return (
    <FormGroup label={label} fieldId={id} {...(isRequired && { isRequired })}>
      {children}
      {help && (
        <FormHelperText>
          <HelperText>
            <HelperTextItem>{help}</HelperTextItem>
          </HelperText>
        </FormHelperText>
      )}
    </FormGroup>
  )
}
