package images

import (
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// diskFormats are the formats of configuration that are placed on a disk.
var diskFormats = []string{"ignition", "cloud-init"}

// checkConfigs refuses a format that nobody knows, and on a disk image one that only an installer reads: left out in
// silence, the first would be missed when a profile with a configuration is saved.
func (r *ImportRequest) checkConfigs() error {
	known := inventory.ConfigFormats()
	if r.isDisk() {
		known = diskFormats
	}
	for _, c := range r.Configs {
		switch {
		case !slices.Contains(inventory.ConfigFormats(), c.Format):
			return inventory.Errorf(inventory.Invalid, "image %s: %q is not a format of configuration", r.Name, inventory.Clean(c.Format, 40)).
				WithHint("use one of %s", strings.Join(known, ", "))
		case !slices.Contains(known, c.Format):
			return inventory.Errorf(inventory.Invalid, "image %s: a disk image does not read %s, which is for installers", r.Name, c.Format).
				WithHint("use one of %s", strings.Join(known, ", "))
		}
	}
	return nil
}
