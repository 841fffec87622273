package kickstart_test

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/installer/kickstart"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/layer"
)

// A configuration becomes a kickstart file for Anaconda.
func ExampleProvisioner_Render() {
	l, _ := layer.Parse(`
host: {hostname: web-1}
users:
- name: ada
  sshKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2fSBVxVg5nRl8ZjYdNb3E1tq0tyUJq9yZzYwTjvF0p ada]
`, "profile web")
	c, _ := layer.Merge(l)
	target := machineconfig.Target{OS: "rocky", Release: "9", Arch: inventory.X8664}
	r, report := kickstart.New().Render(target, c)
	if report.HasErrors() {
		fmt.Println(report)
		return
	}
	for line := range strings.Lines(string(r.Documents[0].Data)) {
		for _, p := range []string{"user ", "sshkey ", "ignoredisk ", "autopart"} { // a few of its lines
			if strings.HasPrefix(line, p) {
				fmt.Print(line)
			}
		}
	}
	// Output:
	// user --name=ada --lock
	// sshkey --username=ada 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2fSBVxVg5nRl8ZjYdNb3E1tq0tyUJq9yZzYwTjvF0p ada'
	// ignoredisk --only-use=@SLIPWAY_DISK_1@
	// autopart
}
