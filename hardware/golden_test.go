package hardware

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

func TestCheckSaysWhatAHostLacks(t *testing.T) {
	type golden = inventory.Golden
	for name, c := range map[string]struct {
		golden golden
		want   []string
	}{
		"all is as it should be": {
			golden{
				Requirements: inventory.HardwareRequirements{CPUThreads: 64, MemoryBytes: 512 << 30}, DiskN: 4, PortN: 2, DIMMN: 8,
				Firmware: map[string]string{"bios": "1.14.1", "bmc": "7.10.50.00", "disk:samsung pm9a3": "gdc7302q"},
			}, nil,
		},
		"everything is told at once, with what there is instead": {
			golden{Requirements: inventory.HardwareRequirements{CPUThreads: 128, MemoryBytes: 1 << 40, PortMbps: 100000, Accelerators: 8}, DiskN: 6},
			[]string{
				"has less than 128 CPU threads: 64", "has less than 1 TiB of memory: 512 GiB",
				"has no port of at least 100 Gb/s: the fastest has 25 Gb/s", "has less than 8 accelerators: 0", "has 4 disks and not 6",
			},
		},
		"firmware of another version": {
			golden{Firmware: map[string]string{"bios": "1.15.0", "bmc": "7.20", "disk:Samsung PM9A3": "GDC7502Q"}},
			[]string{
				"has bios firmware 1.14.1 and not 1.15.0", "has bmc firmware 7.10.50.00 and not 7.20",
				"has disk S4XY0 (nvme0n1) firmware GDC7302Q and not GDC7502Q", "has disk S4XY1 (nvme1n1) firmware GDC7302Q and not GDC7502Q",
				"has disk S4XY2 (nvme2n1) firmware GDC7302Q and not GDC7502Q", "has disk S4XY3 (nvme3n1) firmware GDC7302Q and not GDC7502Q",
			},
		},
		"an expression that no longer compiles": {
			golden{Name: "r750", Requirements: inventory.HardwareRequirements{Expression: "host.cpu.treads > 1"}},
			[]string{"cannot be compared with golden hardware r750: the expression is not valid in line 1, column 9: undefined field 'treads'"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, Check(c.golden, rackHost(), server())); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestSelectTakesTheGoldenHardwareThatSaysMost(t *testing.T) {
	h := rackHost()
	all := []inventory.Golden{
		{Name: "any", Selector: "mac"},
		{Name: "zone-b", Selector: "zone=b,rack=r1,arch"},
		{Name: "rack-2", Selector: "rack=r1,zone=a"},
		{Name: "rack-1", Selector: "rack=r1,zone=a"},
		{Name: "broken", Selector: "=,=,=,=,="},
	}
	if g, ok := Select(all, h); !ok || g.Name != "rack-1" {
		t.Errorf("got %q", g.Name)
	}
	if g, ok := Select(all[1:2], h); ok {
		t.Errorf("%s does not match and was chosen", g.Name)
	}
}
