package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// debts are the packages in which files use each other in a circle, and how many files are in their circles. It only shrinks: whoever
// takes a file out of a circle lowers the number here.
var debts = map[string]int{
	"agent":                     4,
	"agent/burn":                4,
	"agent/disk":                2,
	"agent/efi":                 2,
	"agent/host":                2,
	"agent/inspect":             13,
	"agent/seed":                4,
	"agent/wipe":                6,
	"agent/write":               6,
	"bmc/bmctest":               3,
	"bmc/fake":                  3,
	"bmc/ipmi":                  4,
	"bmc/libvirt":               3,
	"bmc/redfish":               10,
	"bmc/redfish/redfishtest":   5,
	"bmc/webhook":               4,
	"cloudinit":                 9,
	"hardware":                  2,
	"hardware/acceptance":       2,
	"hardware/placement":        6,
	"ignition":                  16,
	"images":                    17,
	"images/ramdisk":            7,
	"installer/autoinstall":     7,
	"installer/kickstart":       14,
	"installer/preseed":         8,
	"inventory":                 13,
	"inventory/live":            3,
	"inventory/noun":            3,
	"inventory/option":          3,
	"inventory/sqlstore":        16,
	"inventory/sqlstore/sqlite": 6,
	"inventory/storetest":       20,
	"inventory/transfer":        9,
	"machineconfig/address":     4,
	"machineconfig/capisecret":  7,
	"machineconfig/docschema":   3,
	"machineconfig/kubeadm":     5,
	"machineconfig/osadapter":   2,
	"machineconfig/plain":       4,
	"machineconfig/render":      5,
	"machineconfig/talos":       3,
	"pxe":                       18,
	"pxe/dhcp":                  18,
	"pxe/dhcp6":                 8,
	"pxe/httpboot":              9,
	"pxe/lease":                 5,
	"pxe/lease6":                2,
	"pxe/tftp":                  6,
	"pxe/trace":                 3,
}

// checkCircles fails when a package of the product has more files in circles, or fewer, than debts says.
func checkCircles() error {
	pkgs, err := load("./...")
	if err != nil {
		return err
	}
	is := map[string]int{}
	for _, p := range pkgs {
		name := strings.TrimPrefix(p.PkgPath, module+"/")
		if n := filesInCircles(p); n > 0 && !strings.HasPrefix(name, "test") {
			is[name] = n
		}
	}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(is)) {
		switch {
		case is[name] > debts[name]:
			wrong = append(wrong, fmt.Sprintf("%s has %d files that use each other in circles, %d before: build/house -inside ./%s prints the arrows", name, is[name], debts[name], name))
		case is[name] < debts[name]:
			wrong = append(wrong, fmt.Sprintf("%s has only %d files in circles now: write that into debts in tools/house/circles.go", name, is[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(debts)) {
		if is[name] == 0 {
			wrong = append(wrong, fmt.Sprintf("%s has no circle of files any more: remove it from debts in tools/house/circles.go", name))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// filesInCircles counts the files of a package that are in a circle with others.
func filesInCircles(p *packages.Package) (n int) {
	found, _ := uses(p)
	for _, c := range circles(found) {
		if len(c) > 1 {
			n += len(c)
		}
	}
	return n
}
