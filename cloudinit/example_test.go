package cloudinit_test

import (
	"fmt"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/layer"
)

// A configuration becomes the documents of a NoCloud data source.
func ExampleProvisioner_Render() {
	l, _ := layer.Parse(`
host: {hostname: web-1}
users:
- name: ada
  sshKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2fSBVxVg5nRl8ZjYdNb3E1tq0tyUJq9yZzYwTjvF0p ada]
`, "profile web")
	c, _ := layer.Merge(l)
	target := machineconfig.Target{OS: "ubuntu", Release: "24.04", Arch: inventory.X8664, Tool: "24.1"}
	r, report := cloudinit.New().Render(target, c)
	if report.HasErrors() {
		fmt.Println(report)
		return
	}
	for _, d := range r.Documents[:2] { // the rest is vendor data, network and EC2's names
		fmt.Printf("# %s\n%s", d.Name, d.Data)
	}
	// Output:
	// # user-data
	// #cloud-config
	// hostname: web-1
	// fqdn: web-1
	// preserve_hostname: false
	// prefer_fqdn_over_hostname: false
	// manage_etc_hosts: localhost
	// users:
	// - name: ada
	//   lock_passwd: true
	//   ssh_authorized_keys:
	//   - "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2fSBVxVg5nRl8ZjYdNb3E1tq0tyUJq9yZzYwTjvF0p ada"
	// # meta-data
	// instance-id: slipway-web-1
	// local-hostname: web-1
	// hostname: web-1
}
