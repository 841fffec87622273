package machineconfig_test

import (
	"fmt"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/layer"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
)

// Check tells before an installation what a format cannot carry.
func ExampleCheck() {
	l, _ := layer.Parse("packages: {install: [curl]}", "profile web")
	c, _ := layer.Merge(l)
	target := machineconfig.Target{OS: "flatcar", Release: "stable", Arch: inventory.X8664, Tool: "3.4.0"}
	for _, f := range machineconfig.Check(ignition.New(), target, c, nil) {
		fmt.Println(f.Severity, f.Path, f.Message)
	}
	// Output:
	// error /packages/install is not expressible in ignition for flatcar stable
}
