// Package autoinstall says a machine configuration as an autoinstall document for Ubuntu's installer, with the
// cloud-config of the installed system in it. It never runs anything, and never leaves a section interactive.
package autoinstall

import (
	"cmp"
	"slices"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// Provisioner renders autoinstall documents.
type Provisioner struct{}

// New returns the provisioner.
func New() *Provisioner { return &Provisioner{} }

// Kind is the format's name.
func (*Provisioner) Kind() string { return "autoinstall" }

// Documents are the formats that a profile's own document may have.
func (*Provisioner) Documents() []inventory.DocumentFormat {
	return []inventory.DocumentFormat{inventory.DocAutoinstall}
}

// writer collects the sections of one document.
type writer struct {
	t      machineconfig.Target
	c      *machineconfig.Config
	report machineconfig.Report

	early, late []string // commands of the installer's shell
	finds       []string // lines of shell that look for disks
	keeps       bool     // a partition is kept, whose place the machine knows
	hasChoice   bool     // some storage actions are for one kind of firmware only
	documents   []machineconfig.Document
}

// Render says c as the four documents of a NoCloud seed for the installer, and those of the installed system's seed if
// it needs one.
func (p *Provisioner) Render(t machineconfig.Target, c *machineconfig.Config) (*machineconfig.Rendered, machineconfig.Report) {
	w := &writer{t: t, c: c}
	var text []byte
	if d := c.Document; d != nil && d.Format == string(inventory.DocAutoinstall) {
		text = w.document(d.Data)
	} else {
		text = w.sections()
	}
	if w.report.HasErrors() {
		return nil, w.report
	}
	meta := object{}.with("instance-id", instanceID(c)).with("local-hostname", c.Host.Hostname)
	docs := []machineconfig.Document{
		{Name: "user-data", Data: text},
		{Name: "meta-data", Data: meta.encode()},
		{Name: "vendor-data"},
		{Name: "network-config"},
	}
	for i := range docs {
		docs[i].ContentType = "text/plain; charset=utf-8"
	}
	if t.InitrdPath != "" {
		docs[0].Path = t.InitrdPath
	}
	return &machineconfig.Rendered{Documents: append(docs, w.documents...)}, w.report
}

// instanceID is the installer's own: the installed system is another instance.
func instanceID(c *machineconfig.Config) string {
	if c.Host.InstanceID == "" {
		return "slipway-installer"
	}
	return c.Host.InstanceID + "-installer"
}

// sections says the whole document.
func (w *writer) sections() []byte {
	c := w.c
	auto := object{}.with("version", 1)
	if l := c.Host.Locale; l != "" {
		auto = auto.with("locale", l)
	}
	keymap := cmp.Or(c.Host.Keymap, "us")
	auto = auto.with("keyboard", object{}.with("layout", keymap))
	zone := cmp.Or(c.Host.Timezone, "Etc/UTC")
	auto = auto.with("timezone", zone)
	if p := c.Packages.Proxy; p != "" {
		auto = auto.with("proxy", p)
	}
	if n := c.Network; n.HasLinks() || len(n.DNS)+len(n.Search) > 0 {
		auto = auto.with("network", w.network())
	}
	auto = auto.with("storage", w.storage())
	password := c.SSHD.PasswordAuthentication
	if c.Bootstrap != nil || c.Activation != nil || len(c.Users) > 0 || c.DefaultUser != nil || !c.SSHD.IsZero() {
		// Nobody asks for a server that nobody can enter. Passwords are for those who have no key, as the installer has it.
		allow := len(c.Users) > 0 && !slices.ContainsFunc(c.Users, func(u machineconfig.User) bool { return len(u.SSHKeys) > 0 })
		allow = allow && (c.DefaultUser == nil || len(c.DefaultUser.SSHKeys) == 0)
		if password != nil {
			allow = *password
		}
		auto = auto.with("ssh", object{}.with("install-server", true).with("allow-pw", allow))
	}
	auto = w.software(auto)
	auto = auto.with("user-data", w.guest())
	w.kernel()
	w.early = append(w.early, w.scripts(machineconfig.Early)...)
	w.edit()
	w.early = append(w.early, w.scripts(machineconfig.Partitioning)...)
	w.late = append(w.late, w.scripts(machineconfig.Chroot)...)
	w.late = append(w.late, w.scripts(machineconfig.LateStage)...)
	auto = w.reports(auto)
	if c.Boot.PowerAfter == machineconfig.PowerOff {
		auto = auto.with("shutdown", "poweroff")
	} else {
		auto = auto.with("shutdown", "reboot")
	}
	return append([]byte("#cloud-config\n"), object{}.with("autoinstall", auto).encode()...)
}

// network is the network of the installer and of the installed system, as netplan has it.
func (w *writer) network() *node {
	text, report := cloudinit.NetworkConfig(installer.GuestTarget(w.t), w.c)
	w.report = append(w.report, report...)
	n := parse(text)
	if inner := n.get("network"); inner != nil {
		return inner
	}
	return n
}

// software says where packages come from and which are installed. With repositories of its own the configuration's
// packages are left to the installed system's cloud-init, which knows their keys.
func (w *writer) software(auto object) object {
	p := w.c.Packages
	mirror, rest := installer.SplitMirror(w.t.OS, p.Repos)
	if mirror != nil {
		auto = auto.with("apt", object{}.with("mirror-selection", object{}.with("primary", list{object{}.with("uri", mirror.URL)})).with("geoip", false))
	}
	if len(p.Snaps) > 0 {
		auto = auto.with("snaps", snaps(p.Snaps))
	}
	if len(rest)+len(p.Pins) == 0 && len(p.Install) > 0 {
		var names list
		for _, n := range p.Install {
			names = append(names, n)
		}
		auto = auto.with("packages", names)
	}
	return auto.with("updates", "security")
}

func snaps(all []machineconfig.Snap) list {
	var out list
	for _, s := range all {
		o := object{}.with("name", s.Name)
		if s.Channel != "" {
			o = o.with("channel", s.Channel)
		}
		if s.Classic {
			o = o.with("classic", true)
		}
		out = append(out, o)
	}
	return out
}

// kernel sets the arguments of the installed kernel.
func (w *writer) kernel() {
	k := w.c.Kernel
	if len(k.Args)+len(k.RemoveArgs) == 0 {
		return
	}
	const file = "/target/etc/default/grub.d/99-slipway.cfg"
	w.late = append(w.late, "mkdir -p /target/etc/default/grub.d", ": > "+file)
	if len(k.RemoveArgs) > 0 {
		w.late = append(w.late, "printf '%s\\n' "+late.ShellWord(installer.GrubWithout(k.RemoveArgs))+" >> "+file)
	}
	if len(k.Args) > 0 {
		w.late = append(w.late, "printf '%s\\n' "+late.ShellWord(installer.GrubWith(k.Args))+" >> "+file)
	}
	w.late = append(w.late, "curtin in-target --target=/target -- update-grub")
}

// reports are the commands that report to Slipway, and what each of them says.
func (w *writer) reports(auto object) object {
	if report := installer.Curl.Report(w.c, installed, installer.Tries); report != "" {
		w.late = append(w.late, report+orNot)
	}
	if len(w.early) > 0 {
		auto = auto.with("early-commands", lines(w.early))
	}
	if len(w.late) > 0 {
		auto = auto.with("late-commands", lines(w.late))
	}
	failed := w.scripts(machineconfig.OnError)
	if report := installer.Curl.Report(w.c, failedStep, installer.Tries); report != "" {
		failed = append(failed, report+orNot)
	}
	if len(failed) > 0 {
		auto = auto.with("error-commands", lines(failed))
	}
	return auto
}

// What the installer reports. A report that is lost fails nothing.
const (
	installed  = "installed"
	failedStep = "failed&detail=subiquity"
	orNot      = " || true"
)

func lines(commands []string) list {
	var out list
	for _, c := range commands {
		out = append(out, c)
	}
	return out
}
