import { LongField } from '../../parts/Fields'

// OptionsField holds DHCP options, one in a line.
export function OptionsField(p: { label?: string; value: string; set: (v: string) => void; field: string }) {
  return (
    <LongField
      label={p.label ?? 'DHCP options'}
      value={p.value}
      set={p.set}
      field={p.field}
      rows={3}
      help="One in a line: tftp-server-name=boot.lab, 224/uint16=5, vendor:1=TEXT inside option 43; always: in front sends it unasked"
    />
  )
}
