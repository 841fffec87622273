// Package plain writes parts of a configuration that a format has no words for as files, packages, units and commands.
// Every format has these. It never writes a format.
//
// Start reading at Say.
package plain

import (
	"cmp"
	"embed"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

//go:embed scripts/*.sh
var scripts embed.FS

// Family is how an OS installs packages.
type Family string

// The families. None is an OS without packages, or one that is not known.
const (
	Apt    Family = "apt"
	Dnf    Family = "dnf"
	Zypper Family = "zypper"
	None   Family = ""
)

var families = map[string]Family{
	"debian": Apt, "ubuntu": Apt, "rhel": Dnf, "centos": Dnf, "almalinux": Dnf, "alma": Dnf, "rocky": Dnf, "oraclelinux": Dnf, "fedora": Dnf,
	"amazon": Dnf, "photon": Dnf, "azurelinux": Dnf, "opensuse": Zypper, "leap": Zypper, "sles": Zypper,
}

// FamilyOf is the family of an entry of the OS catalogue.
func FamilyOf(os string) Family { return families[os] }

// parts say the rows of the capability table that this package can say, in the order in which it does.
var parts = []struct {
	row string
	say func(w *writer)
}{
	{"/packages/proxy", (*writer).proxy},
	{"/packages/pins", (*writer).pins},
	{"/packages/groups", (*writer).groups},
	{"/packages/remove", (*writer).remove},
	{"/packages/snaps", (*writer).snaps},
	{"/storage/mounts", (*writer).mounts},
	{"/network/wireguards", (*writer).wireguards},
	{"/sshd", (*writer).sshd},
	{"/selinux", (*writer).selinux},
	{"/firewall", (*writer).firewall}, // last: it may shut out what the others need
}

// Say returns c with these rows of the capability table as files, packages, units and commands. The commands run on the
// first boot, before the admin's own. c stays as it is.
func Say(t machineconfig.Target, c *machineconfig.Config, rows ...string) (*machineconfig.Config, machineconfig.Report) {
	out := *c
	w := &writer{t: t, family: FamilyOf(t.OS), c: &out}
	out.Files, out.Dirs, out.Units = slices.Clone(c.Files), slices.Clone(c.Dirs), slices.Clone(c.Units)
	out.Packages.Install = slices.Clone(c.Packages.Install)
	for _, p := range parts {
		if slices.Contains(rows, p.row) {
			p.say(w)
		}
	}
	out.Commands = append(w.commands, c.Commands...)
	return &out, w.report
}

type writer struct {
	t        machineconfig.Target
	family   Family
	c        *machineconfig.Config
	commands []machineconfig.Command
	report   machineconfig.Report
}

// run adds one of our scripts, with arguments.
func (w *writer) run(name string, args ...string) {
	text, err := scripts.ReadFile("scripts/" + name + ".sh")
	if err != nil {
		panic(err) // it is part of this program
	}
	argv := append([]string{"sh", "-c", string(text), name}, args...)
	w.commands = append(w.commands, machineconfig.Command{Name: "slipway-" + name, Argv: argv})
}

func (w *writer) file(path string, mode machineconfig.Mode, text string) {
	w.c.Files = append(w.c.Files, machineconfig.File{Path: path, Mode: mode, Content: machineconfig.Content{Text: text}})
}

func (w *writer) appendTo(path, text string) {
	w.c.Files = append(w.c.Files, machineconfig.File{Path: path, Append: true, Content: machineconfig.Content{Text: text}})
}

// install adds a package by its name in each family.
func (w *writer) install(names map[Family]string) {
	if n := names[w.family]; n != "" && !slices.Contains(w.c.Packages.Install, n) {
		w.c.Packages.Install = append(w.c.Packages.Install, n)
	}
}

func (w *writer) cannot(path, what, hint string) {
	w.report.Errorf(path, "not-expressible", "%s", what).Hint = hint
}

func (w *writer) proxy() {
	u := w.c.Packages.Proxy
	switch {
	case u == "":
	case w.family == Apt:
		w.file("/etc/apt/apt.conf.d/90-slipway-proxy", 0o644, "Acquire::http::Proxy \""+u+"\";\nAcquire::https::Proxy \""+u+"\";\n")
	case w.family == Dnf:
		w.appendTo("/etc/dnf/dnf.conf", "proxy="+u+"\n")
	case w.family == Zypper:
		w.file("/etc/sysconfig/proxy", 0o644, "PROXY_ENABLED=\"yes\"\nHTTP_PROXY=\""+u+"\"\nHTTPS_PROXY=\""+u+"\"\nNO_PROXY=\"localhost, 127.0.0.1\"\n")
	default:
		w.cannot("/packages/proxy", "is for a package manager, and that of "+w.t.String()+" is not known", "write its own file under files")
	}
}

func (w *writer) pins() {
	pins := w.c.Packages.Pins
	if len(pins) == 0 {
		return
	}
	if w.family == Apt {
		var b strings.Builder
		for _, p := range pins {
			priority := cmp.Or(p.Priority, 1001)
			b.WriteString("Package: " + p.Name + "\nPin: version " + p.Version + "\nPin-Priority: " + strconv.Itoa(priority) + "\n\n")
		}
		w.file("/etc/apt/preferences.d/90-slipway", 0o644, b.String())
		return
	}
	w.install(map[Family]string{Dnf: "python3-dnf-plugin-versionlock"})
	var args []string
	for _, p := range pins {
		if p.Priority != 0 || strings.HasSuffix(p.Version, "*") && w.family == Zypper {
			at := pointer.Of("packages", "pins", p.Name)
			w.cannot(at, "has a priority or a pattern, which apt alone has", "write the whole version")
		}
		w.c.Packages.Install = slices.DeleteFunc(w.c.Packages.Install, func(name string) bool { return name == p.Name })
		args = append(args, p.Name, p.Version)
	}
	w.run("pins", args...)
}

func (w *writer) groups() {
	if g := w.c.Packages.Groups; len(g) > 0 {
		for i, name := range g {
			if strings.HasPrefix(name, "^") && w.family != Dnf {
				w.cannot("/packages/groups/"+strconv.Itoa(i), "is an environment, which dnf alone has", "name a task of apt or a pattern of zypper")
			}
		}
		w.run("groups", g...)
	}
}

func (w *writer) remove() {
	if r := w.c.Packages.Remove; len(r) > 0 {
		w.run("remove", r...)
	}
}

func (w *writer) snaps() {
	if len(w.c.Packages.Snaps) == 0 {
		return
	}
	if w.t.OS == "debian" {
		w.install(map[Family]string{Apt: "snapd"})
	}
	var args []string
	for _, s := range w.c.Packages.Snaps {
		args = append(args, s.Name, s.Channel, map[bool]string{true: "classic", false: "strict"}[s.Classic])
	}
	w.run("snaps", args...)
}

func (w *writer) selinux() {
	mode := w.c.SELinux
	switch {
	case mode == "":
	case w.family == Apt:
		w.cannot("/selinux", "is not of "+w.t.String()+", which has AppArmor", "leave it out")
	default:
		w.run("selinux", string(mode))
	}
}
