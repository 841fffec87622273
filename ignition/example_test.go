package ignition_test

import (
	"fmt"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/layer"
)

// A configuration becomes one Ignition document.
func ExampleProvisioner_Render() {
	l, _ := layer.Parse(`
host: {hostname: web-1}
users:
- name: ada
  sshKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2fSBVxVg5nRl8ZjYdNb3E1tq0tyUJq9yZzYwTjvF0p]
`, "profile web")
	c, _ := layer.Merge(l)
	target := machineconfig.Target{OS: "flatcar", Release: "stable", Arch: inventory.X8664, Tool: "3.4.0"}
	r, report := ignition.New().Render(target, c)
	if report.HasErrors() {
		fmt.Println(report)
		return
	}
	fmt.Printf("%s\n", r.Documents[0].Data)
	// Output:
	// {"ignition":{"version":"3.3.0"},"passwd":{"users":[{"name":"ada","sshAuthorizedKeys":["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2fSBVxVg5nRl8ZjYdNb3E1tq0tyUJq9yZzYwTjvF0p"]}]},"storage":{"files":[{"contents":{"source":"data:,web-1%0A"},"mode":420,"overwrite":true,"path":"/etc/hostname"}]}}
}
