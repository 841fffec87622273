package transfer

import (
	"maps"
	"regexp"
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

// marked begins a cell whose text stands for itself: what a spreadsheet would take for a formula, and what tidy would change.
const marked = "'"

// errorCells are what spreadsheets write where a formula failed.
var errorCells = []string{"#n/a", "#ref!", "#value!", "#name?", "#div/0!", "#null!", "#num!", "#error!", "#nv", "#bezug!", "#wert!"}

// scientific is a MAC address of digits that a spreadsheet took for a number.
var scientific = regexp.MustCompile(`^[0-9]+([.,][0-9]+)?[eE]\+?[0-9]+$`)

// tidy makes of a cell what ours is written like: spreadsheets write TRUE and 12.0, and people a dash for nothing.
func (s Sheet) tidy(field string, k kind, cell string) (string, error) {
	cell = strings.TrimSpace(cell)
	if rest, ok := strings.CutPrefix(cell, marked); ok {
		return rest, nil
	}
	lower := strings.ToLower(cell)
	switch {
	case slices.Contains(errorCells, lower):
		return "", inventory.Errorf(inventory.Invalid, "%q is an error of the spreadsheet", cell).WithHint("correct its formula there, or empty the cell")
	case slices.Contains([]string{"—", "–", "-", "n/a"}, lower), s.Preset != "" && slices.Contains([]string{"none", "null", "nan"}, lower):
		return "", nil
	case field == "macs" && scientific.MatchString(cell):
		return "", inventory.Errorf(inventory.Invalid, "%q was a MAC address before the spreadsheet took it for a number", cell).
			WithHint("make the column text there, and write the address with colons")
	}
	switch k {
	case asFlag:
		return flagWord(lower), nil
	case asNumber:
		return wholeNumber(lower), nil
	}
	switch field {
	case "labels": // no label has one of these
		return strings.NewReplacer(";", " ", "|", " ", ",", " ").Replace(cell), nil
	case "name":
		if s.Preset != "" {
			lower, _, _ = strings.Cut(lower, ".") // the domain is the subnet's
		}
		if inventory.CheckName("host", lower) != nil {
			return cell, nil // as people wrote it
		}
		return lower, nil
	case "face":
		return strings.Replace(lower, "back", "rear", 1), nil
	case "uuid":
		return lower, nil
	}
	return cell, nil
}

// flagWord reads the words of spreadsheets for true and false, in the languages that they write them in.
func flagWord(lower string) string {
	switch lower {
	case "true", "yes", "y", "1", "x", "on", "wahr", "ja", "vrai", "oui", "verdadero", "vero":
		return "true"
	case "false", "no", "n", "0", "off", "falsch", "nein", "faux", "non", "falso":
		return "false"
	}
	return lower
}

var rackUnit = regexp.MustCompile(`^(?:u|ru|he)?\s*([0-9]+)(?:[.,]0+)?\s*(?:u|ru|he)?$`)

// wholeNumber reads 12, 12.0, U12 and 12U.
func wholeNumber(lower string) string {
	if m := rackUnit.FindStringSubmatch(lower); m != nil {
		return m[1]
	}
	return lower
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
