package hardware

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Select returns the golden hardware for a host: of those whose selector matches, the one with the most requirements. Of
// two with equally many, it is the first by name.
func Select(goldens []inventory.Golden, h inventory.Host) (inventory.Golden, bool) {
	best, terms := -1, 0
	for i, g := range goldens {
		sel, err := inventory.ParseSelector(g.Selector)
		if err != nil || !sel.Matches(&h) {
			continue
		}
		if best < 0 || len(sel) > terms || len(sel) == terms && g.Name < goldens[best].Name {
			best, terms = i, len(sel)
		}
	}
	if best < 0 {
		return inventory.Golden{}, false
	}
	return goldens[best], true
}

// Check returns, as phrases, what a host has not that its golden hardware has; none when all is as it should be.
func Check(g inventory.Golden, h inventory.Host, hw inventory.Hardware) []string {
	var faults []string
	m, err := NewMatcher(g.Requirements)
	if err != nil {
		faults = append(faults, fmt.Sprintf("cannot be compared with golden hardware %s: %s", g.Name, err))
	} else {
		faults = m.faults(NewSubject(&h, &hw))
	}
	exactly := func(want, have int, noun string) {
		if want > 0 && want != have {
			faults = append(faults, fmt.Sprintf("has %s and not %d", count(have, noun), want))
		}
	}
	exactly(g.DiskN, disks(&hw, nil, 0), "disk")
	exactly(g.PortN, len(hw.Ports), "port")
	exactly(g.DIMMN, len(without(hw.DIMMs, func(d inventory.DIMM) bool { return d.SizeBytes == 0 })), "memory module")
	for _, key := range slices.Sorted(maps.Keys(g.Firmware)) {
		faults = append(faults, firmwareFaults(key, g.Firmware[key], &hw)...)
	}
	for i := range faults {
		faults[i] = inventory.Clean(faults[i], textLimit)
	}
	return faults
}

// firmwareFaults compares the versions that one entry of Golden.Firmware asks for.
func firmwareFaults(key, want string, hw *inventory.Hardware) (faults []string) {
	compare := func(what, have string) {
		have = cmp.Or(have, "an unknown version")
		if !strings.EqualFold(strings.TrimSpace(have), strings.TrimSpace(want)) {
			faults = append(faults, fmt.Sprintf("has %s firmware %s and not %s", what, have, want))
		}
	}
	kind, of, _ := strings.Cut(key, ":")
	switch kind {
	case "bios":
		compare("bios", hw.Firmware.Version)
	case "bmc":
		if hw.BMC == nil {
			return []string{"has no BMC that the machine knows of"}
		}
		compare("bmc", hw.BMC.Firmware)
	case "disk":
		for _, d := range hw.Disks {
			if strings.EqualFold(d.Model, of) {
				compare(diskName(d), d.Firmware)
			}
		}
	case "port":
		for _, p := range hw.Ports {
			if strings.EqualFold(p.Driver, of) {
				compare("port "+p.Name, p.Firmware)
			}
		}
	default:
		faults = append(faults, fmt.Sprintf("cannot be compared: nothing is known of the firmware of %q", key))
	}
	return faults
}
