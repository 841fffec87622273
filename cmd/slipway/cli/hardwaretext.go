package cli

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
)

// DiskFields shows which disk gets the system and which disks an installation keeps.
func DiskFields(t *TableWriter, root inventory.DiskHint, keep []inventory.DiskHint) {
	if !root.IsZero() {
		t.Field("root disk", root.String())
	}
	for _, d := range keep {
		t.Field("keeps disk", d.String())
	}
}

// TaintText is what a toleration tolerates: a key, KEY=VALUE, or everything.
func TaintText(x inventory.Taint) string {
	switch {
	case x.Key == "":
		return "everything"
	case x.Value == "":
		return x.Key
	}
	return x.Key + "=" + x.Value
}

// RequirementsText writes requirements as --require reads them.
func RequirementsText(r inventory.HardwareRequirements) string {
	var parts []string
	add := func(key, value string, is bool) {
		if is {
			parts = append(parts, key+"="+value)
		}
	}
	add("cpu", fmt.Sprint(r.CPUThreads), r.CPUThreads > 0)
	add("memory", strings.ReplaceAll(hardware.Bytes(r.MemoryBytes), " ", ""), r.MemoryBytes > 0)
	add("disk", strings.ReplaceAll(hardware.Bytes(r.DiskBytes), " ", ""), r.DiskBytes > 0)
	add("disks", fmt.Sprint(r.Disks), r.Disks > 0)
	if r.IsRotational != nil {
		add("rotational", YesNo(*r.IsRotational), true)
	}
	add("port", fmt.Sprintf("%dM", r.PortMbps), r.PortMbps > 0)
	add("accelerator", r.AcceleratorID, r.AcceleratorID != "")
	add("accelerators", fmt.Sprint(r.Accelerators), r.Accelerators > 0)
	add("arch", string(r.Arch), r.Arch != "")
	add("firmware", r.Firmware, r.Firmware != "")
	add("expression", r.Expression, r.Expression != "")
	return strings.Join(parts, ",")
}
