package talos

import (
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// Provisioner hands out Talos machine configurations.
type Provisioner struct{}

// NewProvisioner returns a Provisioner.
func NewProvisioner() *Provisioner { return &Provisioner{} }

// Kind is talos.
func (*Provisioner) Kind() string { return "talos" }

// Documents are the formats of a profile's own document.
func (*Provisioner) Documents() []inventory.DocumentFormat {
	return []inventory.DocumentFormat{inventory.DocTalos}
}

const (
	noWay   = "Talos has no such thing: its system is its image and the machine configuration"
	noShell = "Talos runs no commands: use a DaemonSet, or machine.files under /var with a static pod"
)

// cells are the capability table; what is missing in it is unsupported.
var cells = map[string]machineconfig.Capability{
	"/host/hostname":      {Support: machineconfig.Lossless},
	"/host/domain":        {Support: machineconfig.Lossless},
	"/boot/rootDevice":    {Support: machineconfig.Lossless},
	"/network/interfaces": {Support: machineconfig.Emulated, Note: "an interface found by its MAC keeps Talos' own name"},
	"/network/bonds":      {Support: machineconfig.Lossless},
	"/network/vlans":      {Support: machineconfig.Emulated, Note: "Talos names a VLAN itself: parent.id"},
	"/network/bridges":    {Support: machineconfig.Lossless},
	"/network/match":      {Support: machineconfig.Emulated, Note: "ports by their driver; not by a glob of names or by link"},
	"/network/dhcp":       {Support: machineconfig.Emulated, Note: "the metric of routes only"},
	"/network/wireguards": {Support: machineconfig.Lossless},
	"/network/dns":        {Support: machineconfig.Lossless},
	"/files":              {Support: machineconfig.Emulated, Note: "written at every boot, under /var only"},
	"/files/append":       {Support: machineconfig.Lossless},
	"/kernel/args":        {Support: machineconfig.Lossless},
	"/kernel/removeArgs":  {Support: machineconfig.Emulated, Note: "as -ARG in machine.install.extraKernelArgs"},
	"/kernel/modules":     {Support: machineconfig.Lossless},
	"/kernel/sysctl":      {Support: machineconfig.Lossless},
	"/time":               {Support: machineconfig.Lossless},
	"/trust/cas":          {Support: machineconfig.Lossless, Note: "a TrustedRootsConfig document, Talos 1.7 and later"},
	"/bootstrap/native":   {Support: machineconfig.Lossless},
}

// notes say why the others are unsupported.
var notes = []struct{ prefix, note string }{
	{"/files/volatile", "Talos writes files under /var only"},
	{"/files/remote", "put the text into the file: Talos fetches none"},
	{"/commands", noShell},
	{"/boot/choose", "Talos finds a disk by what it is: give serial, wwn, model or a size"},
	{"/network/", "Talos 1.12 has documents of its own for it: write them in the profile's own document"},
	{"/scripts", "Talos runs no scripts"},
	{"/defaultUser", "Talos has no accounts: a talosconfig gives access to its API"},
	{"/sshd", "Talos has no SSH server"},
	{"/firewall", "use NetworkDefaultActionConfig and NetworkRuleConfig documents in the profile's own document"},
	{"/selinux", "Talos sets SELinux by the kernel argument enforcing=1"},
	{"/users", "Talos has no accounts: a talosconfig gives access to its API"},
	{"/groups", "Talos has no accounts"},
	{"/units", "Talos has no systemd: use an ExtensionServiceConfig document"},
	{"/packages", "put system extensions into the image: machine.install.image of the image factory"},
	{"/extensions", "put system extensions into the image: machine.install.image of the image factory"},
	{"/storage", "use VolumeConfig and UserVolumeConfig documents in the profile's own document"},
	{"/boot/powerAfter", "Talos reboots into what it installed"},
	{"/bootstrap", "use bootstrap kind talos with a secret, or a document of format talos"},
	{"/phoneHome", "Talos reports nothing over HTTP: set phoneHome.enabled: false; Slipway sees the configuration fetched"},
}

// Capabilities says what a plain machine configuration can take; a secret one takes nothing but authorities, which
// Render reports.
func (*Provisioner) Capabilities(machineconfig.Target) machineconfig.Capabilities {
	out := machineconfig.Capabilities{}
	for _, f := range machineconfig.Fields() {
		c, ok := cells[f.Path]
		if !ok {
			c = machineconfig.Capability{Support: machineconfig.Unsupported, Note: noWay}
			for _, n := range notes {
				if strings.HasPrefix(f.Path, n.prefix) {
					c.Note = n.note
					break
				}
			}
		}
		out[f.Path] = c
	}
	return out
}

// Render returns the machine configuration as machine.yaml.
func (p *Provisioner) Render(t machineconfig.Target, c *machineconfig.Config) (*machineconfig.Rendered, machineconfig.Report) {
	var r machineconfig.Report
	base := p.base(c, &r)
	if base == nil {
		return nil, r
	}
	var data []byte
	if isSecret(base) {
		data = p.renderSecret(t, c, base, &r)
	} else {
		data = renderPlain(c, base, &r)
	}
	if r.HasErrors() {
		return nil, r
	}
	return &machineconfig.Rendered{Documents: []machineconfig.Document{
		{Name: "machine.yaml", ContentType: "application/yaml", Data: data, Path: t.InitrdPath},
	}}, r
}

// base finds the machine configuration.
func (*Provisioner) base(c *machineconfig.Config, r *machineconfig.Report) []byte {
	a := c.Activation
	switch {
	case a != nil && a.Native == nil:
		r.Errorf("/bootstrap/kind", "not-expressible", "Talos cannot run %s", a.Kind).Hint = "use kind talos with a secret"
	case a != nil && c.Document != nil:
		r.Errorf("/bootstrap/secret", "two-documents", "there are two machine configurations: the secret's and the profile's own").Hint = "take one away"
	case a != nil && a.Native.Format != string(inventory.DocTalos), a == nil && c.Document != nil && c.Document.Format != string(inventory.DocTalos):
		r.Errorf("/document", "wrong-format", "Talos reads no document of another format").Hint = "give it one of format talos"
	case a != nil:
		return a.Native.Data
	case c.Document != nil:
		return c.Document.Data
	default:
		f := r.Errorf("/bootstrap", "no-document", "Talos needs a machine configuration")
		f.Hint = "set bootstrap kind talos with a secret, or give the profile a document of format talos"
	}
	return nil
}

// renderSecret hands the secret out as it is. Authorities are a document of their own and follow it; the host name
// arrives by DHCP.
func (p *Provisioner) renderSecret(t machineconfig.Target, c *machineconfig.Config, base []byte, r *machineconfig.Report) []byte {
	for _, u := range machineconfig.Uses(c) {
		switch u.Field {
		case "/bootstrap/native", "/trust/cas", "/host/domain":
		case "/host/hostname":
			f := r.Warnf(u.Path, "by-dhcp", "is not in the secret machine configuration: Talos takes it from DHCP")
			f.Hint = "nothing to do, unless the configuration names another one"
		default:
			*r = append(*r, machineconfig.NotExpressible(u.Path, p.Kind(), t, machineconfig.Capability{
				Note: "the machine configuration is a secret, which nothing can be merged into: write it there, or give the profile a plain document of format talos",
			}))
		}
	}
	data := []byte(strings.TrimSpace(string(base)) + "\n")
	if len(c.Trust.CAs) == 0 {
		return data
	}
	extra := &documents{}
	addTrust(extra, c.Trust.CAs)
	more, err := extra.encode()
	if err != nil {
		r.Errorf("/trust/cas", "internal", "cannot be written: %v", err)
	}
	return append(append(data, "---\n"...), more...)
}

func renderPlain(c *machineconfig.Config, base []byte, r *machineconfig.Report) []byte {
	docs, err := parse(base, false)
	if err != nil {
		r.Errorf("/document", "invalid", "the machine configuration %v", err).Hint = "check it with `talosctl validate --mode metal --config FILE`"
		return nil
	}
	if c.Bootstrap != nil {
		if err := checkRole(docs, c.Bootstrap.Role); err != nil {
			r.Errorf("/bootstrap/role", "invalid", "%v", err)
		}
	}
	p := &patcher{docs: docs, c: c, r: r}
	p.apply()
	if r.HasErrors() {
		return nil
	}
	data, err := docs.encode()
	if err != nil {
		r.Errorf("/document", "internal", "cannot be written: %v", err)
	}
	return data
}
