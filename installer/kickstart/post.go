package kickstart

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// Folders and files that the rendering keeps on the installed system.
const (
	folder         = "/etc/slipway"
	stage          = folder + "/stage"
	bootstrapStage = folder + "/bootstrap-stage"
	tmpfilesConf   = "/etc/tmpfiles.d/slipway.conf"
	bootstrapConf  = "/etc/tmpfiles.d/slipway-bootstrap.conf"
)

// installed writes what stands on the installed system.
func (w *writer) installed() {
	c := w.c
	for i, ca := range c.Trust.CAs {
		w.file(fmt.Sprintf("/etc/pki/ca-trust/source/anchors/slipway-%d.crt", i+1), 0, "", "", ensureLine(ca), "/trust/cas")
	}
	if len(c.Trust.CAs) > 0 {
		w.postLine("update-ca-trust extract")
	}
	for _, d := range c.Dirs {
		w.postLine(fmt.Sprintf("mkdir -p -- %s", shWord(d.Path)))
		w.attributes(d.Path, d.Mode.Or(0o755), d.Owner, d.Group)
	}
	for i := range c.Files {
		w.place(&c.Files[i], stage)
	}
	w.flushTmpfiles(tmpfilesConf)
	for _, l := range c.Links {
		w.link(l)
	}
	w.kernel()
	for i := range c.Units {
		w.unit(&c.Units[i])
	}
	w.holdPackages()
	if c.Activation != nil && c.Activation.Prelude != nil {
		w.seed()
	} else {
		w.firstBoot()
	}
	w.every()
	w.postLine("if command -v restorecon >/dev/null; then restorecon -RFi /etc /root /home /opt /srv /usr/local /var/lib /var/spool || :; fi")
}

func (w *writer) flushTmpfiles(conf string) {
	if len(w.tmpfiles) == 0 {
		return
	}
	slices.Sort(w.tmpfiles) // directories first: d stands after C, but systemd-tmpfiles sorts by path itself
	w.file(conf, 0o644, "", "", strings.Join(slices.Compact(w.tmpfiles), "\n")+"\n", "/files/volatile")
	w.tmpfiles = nil
}

func (w *writer) link(l machineconfig.Link) {
	if dir := parent(l.Path); dir != "/" {
		w.postLine("mkdir -p -- " + shWord(dir))
	}
	flags := "-sfnT"
	if l.Hard {
		flags = "-fT"
	}
	w.postLine("ln " + flags + " -- " + shWord(l.Target) + " " + shWord(l.Path))
}

func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i > 0 {
		return p[:i]
	}
	return "/"
}

func (w *writer) kernel() {
	k := w.c.Kernel
	if len(k.Modules) > 0 {
		w.file("/etc/modules-load.d/slipway.conf", 0, "", "", strings.Join(k.Modules, "\n")+"\n", "/kernel/modules")
	}
	if len(k.Sysctl) == 0 {
		return
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(k.Sysctl)) {
		fmt.Fprintf(&b, "%s = %s\n", name, k.Sysctl[name])
	}
	w.file("/etc/sysctl.d/90-slipway.conf", 0, "", "", b.String(), "/kernel/sysctl")
}

func (w *writer) unit(u *machineconfig.Unit) {
	at := pointer.Of("units", u.Name)
	const home = "/etc/systemd/system/"
	if u.Contents != "" && !u.Masked {
		w.file(home+u.Name, 0, "", "", ensureLine(u.Contents), at+"/contents")
	}
	for _, d := range u.DropIns {
		w.file(home+u.Name+".d/"+d.Name, 0, "", "", ensureLine(d.Contents), at+"/dropIns")
	}
	switch {
	case u.Masked:
		w.postLine("systemctl mask -- " + shWord(u.Name))
	case u.Enabled != nil && *u.Enabled:
		w.postLine("systemctl enable -- " + shWord(u.Name))
	case u.Enabled != nil:
		w.postLine("systemctl disable -- " + shWord(u.Name))
	}
}

func ensureLine(s string) string {
	if strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// holdPackages keeps dnf from touching packages by itself; an admin overrides it with --disableexcludes=main.
func (w *writer) holdPackages() {
	if h := w.c.Packages.Hold; len(h) > 0 {
		w.postLine("printf 'excludepkgs=%s\\n' " + shWord(strings.Join(h, ",")) + " >> /etc/dnf/dnf.conf")
	}
}

// every makes the unit for the commands of every boot.
func (w *writer) every() {
	g := installer.WithEveryBootUnit(&machineconfig.Config{Commands: w.c.Commands})
	for i := range g.Files {
		w.place(&g.Files[i], stage)
	}
	for i := range g.Units {
		w.unit(&g.Units[i])
	}
}

// seed leaves the bootstrap document, the commands and the report to cloud-init, which such a document is written for.
func (w *writer) seed() {
	g := installer.Guest(&machineconfig.Config{
		Host: w.c.Host, Activation: w.c.Activation, PhoneHome: w.c.PhoneHome, Commands: withoutEveryBoot(w.c.Commands),
		Packages: machineconfig.Packages{Update: w.c.Packages.Update},
	})
	g.Host.MachineID = ""
	user, report := userData(installer.GuestTarget(w.t), g)
	w.report = append(w.report, report...)
	const home = installer.SeedFolder
	w.postLine("install -d -m 0700 " + home)
	w.file(home+"user-data", 0o600, "", "", string(user), "/bootstrap/prelude")
	w.file(home+"meta-data", 0o600, "", "", string(metaData(g)), "/host")
	w.file("/etc/cloud/cloud.cfg.d/99-slipway.cfg", 0, "", "", "datasource_list: [ NoCloud ]\nnetwork: {config: disabled}\n", "/bootstrap/prelude")
	w.postLine("systemctl enable cloud-init-local.service cloud-init.service cloud-config.service cloud-final.service")
}

func withoutEveryBoot(cmds []machineconfig.Command) []machineconfig.Command {
	return slices.DeleteFunc(slices.Clone(cmds), func(c machineconfig.Command) bool { return c.Phase == machineconfig.EveryBoot })
}
