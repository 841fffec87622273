package preseed

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig/pointer"
)

// mirror says where the packages of the OS come from: the repository that has the OS's name, or Debian's own.
func (w *writer) mirror() {
	w.comment("Mirror")
	host, dir, protocol, suite := "deb.debian.org", "/debian", "http", ""
	at := pointer.Of("packages", "repos", w.t.OS)
	if m, _ := installer.SplitMirror(w.t.OS, w.c.Packages.Repos); m != nil {
		u, err := url.Parse(m.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			w.report.Errorf(at+"/url", "bad-url", "is not a URL of a mirror").Hint = "write http://HOST/debian"
			return
		}
		host, dir, protocol, suite = u.Host, u.Path, u.Scheme, m.Suite
		dir = cmp.Or(dir, "/")
	}
	w.answer("", "mirror/country", "string", "manual")
	w.answer("", "mirror/protocol", "select", protocol)
	w.answer(at, "mirror/"+protocol+"/hostname", "string", host)
	w.answer(at, "mirror/"+protocol+"/directory", "string", dir)
	w.answer("/packages/proxy", "mirror/"+protocol+"/proxy", "string", w.c.Packages.Proxy)
	if suite != "" {
		w.answer(at+"/suite", "mirror/suite", "string", suite)
	}
}

// software says what the installer installs. With repositories of its own the configuration's packages are left to
// cloud-init, which knows their keys.
func (w *writer) software() {
	w.comment("Packages")
	w.answer("", "apt-setup/cdrom/set-first", "boolean", "false")
	w.answer("", "apt-setup/non-free-firmware", "boolean", "true")
	w.answer("", "apt-setup/disable-cdrom-entries", "boolean", "true")
	w.answerOf("tasksel", "", "tasksel/first", "multiselect", strings.Join(append([]string{"standard", "ssh-server"}, w.c.Packages.Groups...), ", "))
	if w.c.Packages.Update { // else the installer brings what is safe, by itself
		w.answer("", "pkgsel/upgrade", "select", "full-upgrade")
	}
	w.answer("", "pkgsel/update-policy", "select", "none")
	w.answerOf("popularity-contest", "", "popularity-contest/participate", "boolean", "false")
	include := slices.Clone(w.packages)
	if !w.leavesPackages() {
		for _, p := range w.c.Packages.Install {
			if p == "" || strings.ContainsAny(p, " \t\n\\") {
				w.report.Errorf("/packages/install", "bad-name", "%q is not the name of a package", p).
					Hint = "write one package in each item"
				continue
			}
			include = append(include, p)
		}
	}
	if len(include) > 0 {
		w.answer("/packages/install", "pkgsel/include", "string", strings.Join(include, " "))
	}
}

// leavesPackages reports whether the configuration's packages are cloud-init's: the installer knows no other repositories
// and no pins.
func (w *writer) leavesPackages() bool {
	_, rest := installer.SplitMirror(w.t.OS, w.c.Packages.Repos)
	return len(rest)+len(w.c.Packages.Pins) > 0
}
