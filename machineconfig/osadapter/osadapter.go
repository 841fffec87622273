// Package osadapter owns how each operating system gets what a bootstrapper needs: packages, extensions, kernel settings
// and the container runtime's configuration. It never knows which bootstrapper asks, nor which format carries it.
//
// Start reading at Apply, then table.go (the systems and their words).
//
// # Options
//
// Apply reads the options of the bootstrap that begin with install.:
//
//	install.containerd           os, docker (packages of download.docker.com) or none
//	install.containerdRepoURL    repository instead of download.docker.com's
//	install.containerdRepoKey    its signing key, armoured or an https URL
//	install.image                container image that the machine becomes (install: image)
//	install.repoURL              repository instead of pkgs.k8s.io's; {minor} stands for 1.35
//	install.repoKey              its signing key, armoured or an https URL
//	install.sandboxImage         pause image, for sites with a mirror
//	install.selinux              permissive or enforcing (rpm)
//	install.sysextSHA256         checksum of the extension (install: sysext)
//	install.sysextURL            extension instead of Flatcar's; {version} and {arch} stand for 1.35.0 and x86-64
package osadapter

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// Options that Apply reads.
var options = []string{
	"install.containerd", "install.containerdRepoKey", "install.containerdRepoURL", "install.image", "install.repoKey",
	"install.repoURL", "install.sandboxImage", "install.selinux", "install.sysextSHA256", "install.sysextURL",
}

// Apply adds to c what meets req on t. install is a way of Ways, or "" for the system's own. Fields that c sets already
// stay. Its lists grow, and never change in place.
func Apply(t machineconfig.Target, req machineconfig.Requirements, install string, c *machineconfig.Config) machineconfig.Report {
	a := &adapter{t: t, req: req, c: c, options: map[string]string{}}
	if len(req.Binaries)+len(req.Modules)+len(req.Sysctl)+len(req.Ports) == 0 && !req.NoSwap {
		return nil
	}
	a.readOptions()
	sys, ok := systems[strings.TrimSuffix(t.OS, "-install")]
	if !ok && (install == "" || !slices.Contains(Ways(), install)) {
		f := a.r.Errorf("/bootstrap/install", "unknown-os", "Slipway does not know how %s gets %s", t, strings.Join(req.Binaries, ", "))
		f.Hint = "set bootstrap.install to one of " + strings.Join(Ways(), ", ") + "; none when the image has them"
		return a.r
	}
	a.sys = sys
	install = cmp.Or(install, sys.way)
	switch {
	case sys.isClosed:
		if len(req.Binaries) > 0 {
			f := a.r.Errorf("/bootstrap/kind", "not-expressible", "%s cannot be given %s", t, strings.Join(req.Binaries, ", "))
			f.Hint = "use bootstrap kind talos"
		}
		return a.r
	case !slices.Contains(Ways(), install):
		f := a.r.Errorf("/bootstrap/install", "unknown-way", "%q is not a way to install", inventory.Clean(install, 40))
		f.Hint = "use one of " + strings.Join(Ways(), ", ")
		return a.r
	case ok && len(req.Binaries) > 0 && !slices.Contains(sys.ways, install):
		f := a.r.Errorf("/bootstrap/install", "not-expressible", "%s cannot install by %s", t, install)
		f.Hint = "use one of " + strings.Join(sys.ways, ", ")
		return a.r
	}
	a.kernel()
	a.swap()
	a.ports()
	if len(req.Binaries) > 0 {
		a.software(install)
	}
	return a.r
}

type adapter struct {
	t       machineconfig.Target
	req     machineconfig.Requirements
	c       *machineconfig.Config
	sys     system
	options map[string]string
	r       machineconfig.Report
}

func (a *adapter) readOptions() {
	if a.c.Bootstrap == nil {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(a.c.Bootstrap.Options)) {
		v := a.c.Bootstrap.Options[k]
		switch {
		case !strings.HasPrefix(k, "install."):
		case !slices.Contains(options, k):
			f := a.r.Errorf(pointer.Add("/bootstrap/options", k), "unknown-key", "there is no option %s", inventory.Clean(k, 60))
			f.Hint = "there are " + strings.Join(options, ", ")
		case strings.HasSuffix(k, "URL") && !isURL(v):
			a.r.Errorf(pointer.Add("/bootstrap/options", k), "invalid", "%q is not an http or https URL", v)
		case strings.ContainsAny(v, "\"\\\x00") || !strings.HasSuffix(k, "Key") && strings.ContainsAny(v, "\r\n"):
			a.r.Errorf(pointer.Add("/bootstrap/options", k), "invalid", "quotes, backslashes and line ends cannot stand here")
		default:
			a.options[k] = v
		}
	}
	for _, k := range []string{"install.containerd", "install.selinux"} {
		ok := choices[k]
		if v, set := a.options[k]; set && !slices.Contains(ok, v) {
			a.r.Errorf("/bootstrap/options/"+k, "invalid", "%q is none of %s", v, strings.Join(ok, ", "))
			delete(a.options, k)
		}
	}
}

// choices are options with few values.
var choices = map[string][]string{
	"install.containerd": {"os", "docker", "none"},
	"install.selinux":    {"permissive", "enforcing"},
}

func isURL(s string) bool {
	u, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(s))
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && !strings.ContainsAny(s, " \t")
}

// kernel adds modules and settings. A layer that says otherwise wins, with a warning.
func (a *adapter) kernel() {
	k := &a.c.Kernel
	for _, m := range a.req.Modules {
		if !slices.Contains(k.Modules, m) {
			k.Modules = append(slices.Clip(k.Modules), m)
		}
	}
	if len(a.req.Sysctl) == 0 {
		return
	}
	k.Sysctl = maps.Clone(k.Sysctl)
	if k.Sysctl == nil {
		k.Sysctl = map[string]string{}
	}
	for _, key := range slices.Sorted(maps.Keys(a.req.Sysctl)) {
		if old, ok := k.Sysctl[key]; !ok {
			k.Sysctl[key] = a.req.Sysctl[key]
		} else if old != a.req.Sysctl[key] {
			f := a.r.Warnf(pointer.Add("/kernel/sysctl", key), "conflict", "is %s; the bootstrap needs %s", old, a.req.Sysctl[key])
			f.Hint = "take it away to let Slipway set it"
		}
	}
}

// swap turns swap off where a kubelet would refuse to start with it.
func (a *adapter) swap() {
	if !a.req.NoSwap || a.c.Bootstrap != nil && a.c.Bootstrap.KubeletArgs["fail-swap-on"] == "false" {
		return
	}
	for _, fs := range a.c.Storage.Filesystems {
		if fs.Format == "swap" {
			f := a.r.Errorf(pointer.Add("/storage/filesystems", fs.Device), "conflict", "is swap, with which the kubelet does not start")
			f.Hint = "take it away, or set bootstrap.kubeletArgs fail-swap-on: \"false\""
		}
	}
	if !a.sys.hasSwap {
		return
	}
	a.unit(machineconfig.Unit{Name: "swap.target", Masked: true})
	a.command("slipway-swap", "swapoff -a\nif [ -e /etc/fstab ]; then sed -i -E '/^[^#].*[[:space:]]swap[[:space:]]/s/^/#/' /etc/fstab; fi\n")
}

// ports leaves a record for people and firewalls, and opens them where a firewall is on by default.
func (a *adapter) ports() {
	if len(a.req.Ports) == 0 {
		return
	}
	var list, open strings.Builder
	for _, p := range slices.Compact(slices.Sorted(slices.Values(a.req.Ports))) {
		list.WriteString(itoa(p) + "/tcp\n")
		open.WriteString(" --add-port=" + itoa(p) + "/tcp")
	}
	a.file("/etc/slipway/ports", 0o644, list.String())
	if a.sys.hasFirewall {
		a.command("slipway-ports", "if command -v firewall-offline-cmd >/dev/null && systemctl is-enabled --quiet firewalld; then\n"+
			"  firewall-offline-cmd --quiet"+open.String()+" || true\n  systemctl try-reload-or-restart firewalld\nfi\n")
	}
}

var versionRE = regexp.MustCompile(`^v?(1\.[0-9]{1,3})(\.[0-9]{1,3}(?:-(?:alpha|beta|rc)\.[0-9]{1,3})?)?$`)

// version returns 1.35 and 1.35.0 (or "" without a patch).
func (a *adapter) version() (minor, full string, ok bool) {
	m := versionRE.FindStringSubmatch(a.req.Version)
	if m == nil {
		return "", "", false
	}
	if m[2] != "" {
		full = m[1] + m[2]
	}
	return m[1], full, true
}

// The rest adds to c what is not there yet, in new lists, because layers may share theirs.

func (a *adapter) file(path string, mode machineconfig.Mode, text string) {
	if !slices.ContainsFunc(a.c.Files, func(f machineconfig.File) bool { return f.Path == path }) {
		a.c.Files = append(slices.Clip(a.c.Files), machineconfig.File{Path: path, Mode: mode, Content: machineconfig.Content{Text: text}})
	}
}

func (a *adapter) unit(u machineconfig.Unit) {
	if !slices.ContainsFunc(a.c.Units, func(o machineconfig.Unit) bool { return o.Name == u.Name }) {
		a.c.Units = append(slices.Clip(a.c.Units), u)
	}
}

// command adds one that a layer may replace by its name. It runs before those of the layers.
func (a *adapter) command(name, shell string) {
	if !slices.ContainsFunc(a.c.Commands, func(o machineconfig.Command) bool { return o.Name == name }) {
		all := []machineconfig.Command{{Name: name, Phase: machineconfig.FirstBoot, Shell: shell}}
		n := 0
		for n < len(a.c.Commands) && strings.HasPrefix(a.c.Commands[n].Name, "slipway-") {
			n++
		}
		a.c.Commands = slices.Concat(a.c.Commands[:n], all, a.c.Commands[n:])
	}
}

func (a *adapter) repo(r machineconfig.Repo) {
	p := &a.c.Packages
	if !slices.ContainsFunc(p.Repos, func(o machineconfig.Repo) bool { return o.ID == r.ID }) {
		p.Repos = append(slices.Clip(p.Repos), r)
	}
}

// install adds a package with a version or without, unless a layer names it.
func (a *adapter) install(name, pinned string) {
	p := &a.c.Packages
	same := func(o string) bool {
		return o == name || strings.HasPrefix(o, name+"=") || strings.HasPrefix(o, name+"-1.")
	}
	if !slices.ContainsFunc(p.Install, same) {
		p.Install = append(slices.Clip(p.Install), pinned)
	}
}

func (a *adapter) hold(name string) {
	if p := &a.c.Packages; !slices.Contains(p.Hold, name) {
		p.Hold = append(slices.Clip(p.Hold), name)
	}
}

func (a *adapter) extension(e machineconfig.Extension) {
	if !slices.ContainsFunc(a.c.Extensions, func(o machineconfig.Extension) bool { return o.Name == e.Name }) {
		a.c.Extensions = append(slices.Clip(a.c.Extensions), e)
	}
}
