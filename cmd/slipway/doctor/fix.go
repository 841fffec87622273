package doctor

import (
	"fmt"
	"os"
	"slices"
	"strconv"
)

// Change is a setting of the kernel that is safe to raise while everything runs.
type Change struct {
	Name     string
	From, To int
}

// KeepIn is the file that keeps changes over a restart of the machine.
const KeepIn = "/etc/sysctl.d/60-slipway.conf"

// Line is the change as that file has it.
func (c Change) Line() string { return fmt.Sprintf("%s = %d", c.Name, c.To) }

// Changes returns what Fix would raise: limits only, and none is ever lowered. Settings that cannot be read are left alone.
func Changes(sysctl map[string]int) (all []Change) {
	for _, want := range []Change{{Name: rmemMax, To: enoughBuffer}, {Name: gcThresh3, To: 4096}, {Name: gcThresh2, To: 2048}, {Name: gcThresh1, To: 1024}} {
		n, isKnown := sysctl[want.Name]
		if !isKnown || n >= want.To || want.Name != rmemMax && sysctl[gcThresh3] >= enoughHosts {
			continue
		}
		want.From = n
		all = append(all, want)
	}
	return all
}

// Fix makes the changes, and returns those that were made.
func Fix(all []Change) (made []Change, err error) {
	for _, c := range all {
		if err := os.WriteFile(sysctlPath(c.Name), []byte(strconv.Itoa(c.To)), 0); err != nil {
			return slices.Clip(made), fmt.Errorf("set %s: %w", c.Name, err)
		}
		made = append(made, c)
	}
	return made, nil
}
