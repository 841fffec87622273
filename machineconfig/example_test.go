package machineconfig_test

import (
	"fmt"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// A misspelt key is a finding with its place and a hint.
func ExampleParse() {
	_, report := machineconfig.Parse("host:\n  hostnme: web-1\n", "profile web")
	for _, f := range report {
		fmt.Printf("%s: %s\n%s\n", f.Source, f.Message, f.Hint)
	}
	// Output:
	// profile web:2:3: "hostnme" is not a key here
	// did you mean hostname?
}

// The narrower layer wins, and the result remembers where each value comes from.
func ExampleMerge() {
	wide, _ := machineconfig.Parse("host: {domain: lab.example, timezone: UTC}", "profile web")
	narrow, _ := machineconfig.Parse("host: {hostname: web-1, timezone: Europe/Berlin}", "host web-1")
	c, report := machineconfig.Merge(wide, narrow)
	fmt.Println(c.Host.Hostname, c.Host.Domain, c.Host.Timezone, len(report))
	// Output:
	// web-1 lab.example Europe/Berlin 0
}

// Check tells before an installation what a format cannot carry.
func ExampleCheck() {
	layer, _ := machineconfig.Parse("packages: {install: [curl]}", "profile web")
	c, _ := machineconfig.Merge(layer)
	target := machineconfig.Target{OS: "flatcar", Release: "stable", Arch: inventory.X8664, Tool: "3.4.0"}
	for _, f := range machineconfig.Check(ignition.New(), target, c, nil) {
		fmt.Println(f.Severity, f.Path, f.Message)
	}
	// Output:
	// error /packages/install is not expressible in ignition for flatcar stable
}
