// Package cloudinit says a neutral configuration as the documents of a cloud-init seed, for the version that reads it.
// It never serves them, and it never sees the value of a secret.
//
// Start reading at Provisioner.Render; UserData holds what happens on the machine, in the order in which it happens.
package cloudinit

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// Provisioner renders for cloud-init. It implements machineconfig.Provisioner.
type Provisioner struct{}

// New returns a Provisioner.
func New() *Provisioner { return &Provisioner{} }

// Kind is cloud-init.
func (*Provisioner) Kind() string { return "cloud-init" }

// Documents says that a profile may bring a cloud-config of its own.
func (*Provisioner) Documents() []inventory.DocumentFormat {
	return []inventory.DocumentFormat{inventory.DocCloudConfig}
}

// Render returns the four documents of a NoCloud seed, which all have to be there: a 404 stops cloud-init for ten seconds.
// When they are fetched, the metadata that clients of EC2 read follow; see EC2Path. The network is in the kernel's
// arguments as well. Before 24.3 there is no other way, and a network that the initrd made with ip= wins over a document.
func (p *Provisioner) Render(t machineconfig.Target, c *machineconfig.Config) (*machineconfig.Rendered, machineconfig.Report) {
	userData, r := UserData(t, c)
	network, findings := NetworkConfig(t, c)
	r = append(r, findings...)
	out := &machineconfig.Rendered{}
	if arg := networkArg(t, c); arg != "" {
		switch {
		case len(arg) <= maxNetworkArg:
			out.Args = []string{arg}
		case t.InitrdPath == "" && !has(t, networkOverHTTP):
			r.Errorf("/network", "too-large", "needs %d bytes of the kernel's arguments, and %d are left for it", len(arg), maxNetworkArg).
				Hint = "use DHCP for some interfaces, an image with cloud-init 24.3, or one that has its seed in the initrd"
		default:
			r.Warnf("/network", "too-large", "is too large for the kernel's arguments, so it is in a document alone").
				Hint = "cloud-init ignores that document when the image's arguments have ip="
		}
	}
	if r.HasErrors() {
		return nil, r
	}
	out.Documents = []machineconfig.Document{
		{Name: "user-data", ContentType: contentType(userData), Data: userData},
		{Name: "meta-data", ContentType: "text/yaml", Data: MetaData(c)},
		{Name: "vendor-data", ContentType: "text/plain", Data: []byte{}},
		{Name: "network-config", ContentType: "text/yaml", Data: network},
	}
	if t.InitrdPath == "" {
		out.Documents = append(out.Documents, ec2Documents(c)...)
		return out, r
	}
	for i := range out.Documents {
		out.Documents[i].Path = seedPath(t.InitrdPath, out.Documents[i].Name)
	}
	return out, r
}

func contentType(userData []byte) string {
	if len(userData) > 0 && userData[0] == '#' {
		return "text/cloud-config"
	}
	return "text/plain" // a MIME message with its own header
}

func seedPath(dir, name string) string {
	if dir[len(dir)-1] != '/' {
		dir += "/"
	}
	return dir + name
}
