package preseed_test

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/installer/preseed"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/layer"
)

// A configuration becomes a preseed file for debian-installer.
func ExampleProvisioner_Render() {
	l, _ := layer.Parse(`
host: {hostname: web-1}
users:
- name: ada
  sshKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2fSBVxVg5nRl8ZjYdNb3E1tq0tyUJq9yZzYwTjvF0p ada]
`, "profile web")
	c, _ := layer.Merge(l)
	target := machineconfig.Target{OS: "debian", Release: "12", Arch: inventory.X8664}
	r, report := preseed.New().Render(target, c)
	if report.HasErrors() {
		fmt.Println(report)
		return
	}
	for line := range strings.Lines(string(r.Documents[0].Data)) {
		for _, p := range []string{"d-i netcfg/get_hostname", "d-i passwd/", "d-i partman-auto/method"} { // a few of its lines
			if strings.HasPrefix(line, p) {
				fmt.Print(line)
			}
		}
	}
	// Output:
	// d-i netcfg/get_hostname string web-1
	// d-i passwd/root-login boolean true
	// d-i passwd/root-password-crypted password !
	// d-i passwd/make-user boolean false
	// d-i partman-auto/method string regular
}
