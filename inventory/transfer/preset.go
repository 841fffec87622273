package transfer

import (
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// preset is what the tables of another program call things. The first heading of a field that a table has counts.
type preset struct {
	title   string
	signs   []string   // headings by which its tables are known
	columns [][]string // field, then the headings that may hold it
}

var presets = map[string]preset{
	"netbox": {title: "NetBox", signs: []string{"status", "site", "tenant", "role", "location"}, columns: [][]string{
		{"name", "Name"},
		{"macs", "MAC Address", "Primary MAC Address", "MAC Addresses"},
		{"site", "Site"},
		{"rack", "Rack"},
		{"unit", "Position"},
		{"face", "Rack Face", "Face"},
		{"manufacturer", "Manufacturer"},
		{"product", "Type", "Device Type"},
		{"serial", "Serial Number", "Serial"},
		{"assetTag", "Asset Tag"},
		{"label:role", "Role", "Device Role"},
		{"label:tenant", "Tenant"},
	}},
	"maas": {title: "MAAS", signs: []string{"fqdn", "pool", "zone", "powertype", "powerstate", "systemid"}, columns: [][]string{
		{"name", "Hostname", "FQDN", "Machine", "Machine name"},
		{"macs", "MAC addresses", "MAC address", "PXE MAC", "Boot MAC", "MAC"},
		{"serial", "Serial", "Serial number", "System serial"},
		{"manufacturer", "System vendor", "Vendor"},
		{"product", "System product", "Product"},
		{"uuid", "Hardware UUID"},
		{"label:pool", "Pool", "Resource pool"},
		{"label:zone", "Zone"},
	}},
	"ansible": {title: "Ansible", signs: []string{"inventoryhostname", "ansiblehost", "ansiblehostname", "ansiblefqdn", "ansibleproductserial", "ansibleuser"}, columns: [][]string{
		{"name", "inventory_hostname", "ansible_hostname", "hostname", "ansible_nodename", "ansible_fqdn", "Name", "Host", "FQDN"},
		{"macs", "ansible_default_ipv4.macaddress", "default_ipv4_macaddress", "ansible_macaddress", "macaddress", "mac_address", "mac", "MACs"},
		{"serial", "ansible_product_serial", "product_serial", "serial"},
		{"uuid", "ansible_product_uuid", "product_uuid"},
		{"manufacturer", "ansible_system_vendor", "system_vendor", "vendor"},
		{"product", "ansible_product_name", "product_name"},
		{"assetTag", "ansible_chassis_asset_tag", "chassis_asset_tag"},
		{"label:group", "group", "groups", "group_names"},
	}},
	"device42": {title: "Device42", signs: []string{"devicename", "startat", "serialno", "assetno", "servicelevel", "hardwaremodel", "building", "room"}, columns: [][]string{
		{"name", "Device Name", "Name", "Device"},
		{"macs", "MAC Address", "MAC Addresses", "MAC", "HW Address"},
		{"site", "Building"},
		{"row", "Room", "Row"},
		{"rack", "Rack", "Rack Name"},
		{"unit", "Start At", "Start U", "U Location", "U Position", "Position"},
		{"height", "Size", "U Size", "Size (U)"},
		{"face", "Orientation"},
		{"serial", "Serial No", "Serial #", "Serial Number", "Serial"},
		{"assetTag", "Asset No", "Asset #", "Asset Number", "Asset Tag"},
		{"uuid", "UUID"},
		{"manufacturer", "Manufacturer", "Vendor", "Hardware Vendor"},
		{"product", "Hardware Model", "Hardware", "HW Model", "Model"},
		{"label:service-level", "Service Level"},
	}},
}

// Presets are the programs whose tables are known, in order.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// presetFor returns the preset whose signs the headings show, "" for none.
func presetFor(header []string) (name string) {
	bestN := 1 // one word may be chance
	for _, candidate := range Presets() {
		n := 0
		for _, h := range header {
			if slices.Contains(presets[candidate].signs, heading(h)) {
				n++
			}
		}
		if n > bestN {
			name, bestN = candidate, n
		}
	}
	return name
}

// mapping is one --map.
type mapping struct{ column, field string }

// parse reads the mappings and checks the preset.
func (s Sheet) parse() (all []mapping, err error) {
	if _, ok := presets[s.Preset]; s.Preset != "" && !ok {
		return nil, inventory.Errorf(inventory.Invalid, "%q is no preset", clip(s.Preset)).WithHint("presets are %s", strings.Join(Presets(), ", "))
	}
	for _, text := range s.Map {
		i := strings.LastIndex(text, "=")
		if i <= 0 || heading(text[:i]) == "" {
			return nil, inventory.Errorf(inventory.Invalid, "%q maps no column", clip(text)).WithHint("write --map COLUMN=FIELD, such as --map hostname=name")
		}
		m := mapping{column: text[:i], field: strings.TrimSpace(text[i+1:])}
		if slices.ContainsFunc(all, func(o mapping) bool { return heading(o.column) == heading(m.column) }) {
			return nil, inventory.Errorf(inventory.Invalid, "column %q is mapped twice", clip(m.column))
		}
		all = append(all, m)
	}
	return all, nil
}

// target returns the field that a heading stands for, "" to leave it out; ok is false when nothing is said of it. given
// are the fields that other columns have: a preset never gives one twice.
func (s Sheet) target(own []mapping, head string, given map[string]bool) (to string, ok bool) {
	h := heading(head)
	for _, m := range own {
		if heading(m.column) == h {
			return m.field, true
		}
	}
	if strings.TrimSpace(head) == "" {
		return "", true // a column without heading holds nothing; cells in it are refused
	}
	if s.Preset == "" {
		return "", false
	}
	for _, c := range presets[s.Preset].columns {
		isMapped := given[c[0]] || slices.ContainsFunc(own, func(m mapping) bool { return m.field == c[0] })
		if !isMapped && slices.ContainsFunc(c[1:], func(name string) bool { return heading(name) == h }) {
			return c[0], true
		}
	}
	return "", true
}

// tidy makes of a cell of another program what ours is written like.
func (s Sheet) tidy(field, cell string) string {
	cell = strings.TrimSpace(cell)
	if s.Preset == "" {
		return cell
	}
	switch strings.ToLower(cell) {
	case "—", "-", "none", "null", "n/a", "nan":
		return ""
	}
	switch field {
	case "name":
		name, _, _ := strings.Cut(strings.ToLower(cell), ".") // the domain is the subnet's
		return name
	case "unit", "height":
		return strings.TrimSuffix(strings.TrimLeft(strings.ToLower(cell), "u "), ".0")
	case "face":
		face := strings.ToLower(cell)
		if face == "back" {
			face = "rear"
		}
		return face
	case "uuid":
		return strings.ToLower(cell)
	}
	return cell
}

// labelOf makes a label's value of a cell.
func labelOf(cell string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, strings.TrimSpace(cell))
	return strings.Trim(s[:min(len(s), 63)], "-._")
}
