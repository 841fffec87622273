package images

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

// A format that is misspelled was left out in silence, and the image read no configuration.
func TestAFormatThatADiskImageCannotReadIsRefused(t *testing.T) {
	c, err := BuiltinCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	disk := []ImportFile{{Role: inventory.RoleDisk, Source: "https://files.example/disk.raw"}}
	kernel := []ImportFile{{Role: inventory.RoleKernel, Source: "https://files.example/vmlinuz"}}
	for _, tc := range []struct {
		name, format string
		files        []ImportFile
		want         string // in the error; "" for none
	}{
		{"cloud-init on a disk", "cloud-init", disk, ""},
		{"ignition on a disk", "ignition", disk, ""},
		{"a misspelled format on a disk", "cloudinit", disk, `"cloudinit" is not a format of configuration`},
		{"an installer's format on a disk", "kickstart", disk, "a disk image does not read kickstart"},
		{"an installer's format with a kernel", "kickstart", kernel, ""},
		{"a misspelled format with a kernel", "kick", kernel, `"kick" is not a format of configuration`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := ImportRequest{Name: "x", OS: "custom", Release: "1", Arch: inventory.X8664, Files: tc.files, Configs: []inventory.ImageConfig{{Format: tc.format, Version: "9"}}}
			p, err := c.plan(r)
			switch {
			case tc.want == "" && (err != nil || len(p.image.Configs) != 1):
				t.Errorf("formats %v, error %v", p.image.Configs, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
