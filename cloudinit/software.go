package cloudinit

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/plain"
	"slipway.dev/slipway/machineconfig/pointer"
)

// family is how an OS installs packages.
type family = plain.Family

const (
	apt    = plain.Apt
	yum    = plain.Dnf
	zypper = plain.Zypper
	none   = plain.None
)

// renderers are the programs that configure the network of an OS of the catalogue.
var renderers = map[string]string{
	"debian": "netplan", "ubuntu": "netplan",
	"rhel": "sysconfig", "centos": "sysconfig", "almalinux": "sysconfig", "alma": "sysconfig", "rocky": "sysconfig", "oraclelinux": "sysconfig",
	"fedora": "network-manager",
	"amazon": "networkd", "photon": "networkd", "azurelinux": "networkd",
	"opensuse": "sysconfig", "sles": "sysconfig", "leap": "network-manager", // Leap 16 is the first that is called so here
}

func familyOf(os string) family { return plain.FamilyOf(os) }

// rendererOf is the program of an OS of a release. Enterprise Linux 10 reads no ifcfg files any more.
func rendererOf(t machineconfig.Target) string {
	major, _, _ := strings.Cut(t.Release, ".")
	if n, err := strconv.Atoi(major); err == nil && n >= 10 && slices.Contains(enterprise, t.OS) {
		return "network-manager"
	}
	return renderers[t.OS]
}

var enterprise = []string{"rhel", "centos", "almalinux", "alma", "rocky", "oraclelinux"}

// family is that of the OS. One that is not known has apt or yum by what its repositories look like.
func (w *render) family() family {
	f := familyOf(w.t.OS)
	for _, r := range w.c.Packages.Repos {
		if f == none && r.Suite != "" {
			return apt
		}
	}
	return f
}

//go:embed scripts/key.sh
var keyScript string

func (w *render) software() {
	p := w.c.Packages
	var yumRepos object
	var zypperRepos list
	for _, r := range p.Repos {
		switch w.family() {
		case apt:
			w.aptRepo(r)
		case zypper:
			zypperRepos = append(zypperRepos, w.rpmRepo(r, object{{"id", r.ID}}))
		default:
			yumRepos = append(yumRepos, entry{r.ID, w.rpmRepo(r, nil)})
		}
	}
	w.set("yum_repos", yumRepos)
	if len(zypperRepos) > 0 {
		w.set("zypper", object{{"repos", zypperRepos}})
	}
	w.install = append(w.install, p.Install...)
	if len(p.Hold) > 0 {
		if w.family() == yum {
			w.install = append(w.install, "python3-dnf-plugin-versionlock")
		}
		w.step("held packages", "hold", p.Hold...)
	}
	if len(p.Repos)+len(p.Install) > 0 || p.Update {
		w.keys = append(w.keys, entry{"package_update", true})
	}
	if p.Update {
		w.keys = append(w.keys, entry{"package_upgrade", true})
	}
	w.set("packages", strs(w.install))
	w.time()
	w.extensions()
	if cas := w.c.Trust.CAs; len(cas) > 0 {
		key := "ca_certs"
		if !has(w.t, caCertsKey) {
			key = "ca-certs"
		}
		w.set(key, object{{"trusted", strs(cas)}})
	}
}

func (w *render) time() {
	t := w.c.Time
	switch {
	case t.Enabled != nil && !*t.Enabled:
		w.set("ntp", object{{"enabled", false}})
		w.step("no time servers", "run", "timedatectl", "set-ntp", "false")
	case len(t.NTPServers) > 0 || t.Enabled != nil:
		w.set("ntp", object{{"enabled", true}}.with("servers", strs(t.NTPServers)))
	}
}

// aptRepo writes the source itself: cloud-init's own way needs gpg in the image and rewrites the sources that it has.
func (w *render) aptRepo(r machineconfig.Repo) {
	var b strings.Builder
	b.WriteString("Types: deb\nURIs: " + r.URL + "\nSuites: " + cmp.Or(r.Suite, "/") + "\n")
	if len(r.Components) > 0 {
		b.WriteString("Components: " + strings.Join(r.Components, " ") + "\n")
	}
	if r.Key != "" {
		path := "/etc/apt/keyrings/slipway-" + r.ID + ".asc"
		b.WriteString("Signed-By: " + path + "\n")
		w.key(r, path)
	}
	w.file("/etc/apt/sources.list.d/slipway-"+r.ID+".sources", "0644", b.String())
}

func (w *render) rpmRepo(r machineconfig.Repo, o object) object {
	o = append(o, entry{"name", r.ID}, entry{"baseurl", r.URL}, entry{"enabled", true}, entry{"gpgcheck", r.Key != ""})
	switch {
	case r.Key == "":
		return o
	case strings.HasPrefix(r.Key, "https://"):
		return append(o, entry{"gpgkey", r.Key})
	}
	path := "/etc/pki/rpm-gpg/slipway-" + r.ID
	w.key(r, path)
	return append(o, entry{"gpgkey", "file://" + path})
}

// key brings a signing key to the machine before it reads the repository.
func (w *render) key(r machineconfig.Repo, path string) {
	if strings.HasPrefix(r.Key, "https://") {
		w.bootcmd = append(w.bootcmd, argv{"sh", "-c", keyScript, "key", r.Key, path})
		return
	}
	w.file(path, "0644", strings.TrimRight(r.Key, "\n")+"\n")
}

func (w *render) extensions() {
	n := 0
	for _, e := range w.c.Extensions {
		if e.Format != "" && e.Format != machineconfig.Sysext {
			w.r.Errorf(pointer.Of("extensions", e.Name), "not-expressible", "is of format %s, which cloud-init cannot install", e.Format).
				Hint = "give a sysext image, or use ignition"
			continue
		}
		n++
		w.step("extension "+e.Name, "fetch", e.URL, e.SHA256, "/var/lib/extensions/"+e.Name+".raw", "0644", "root:root", "replace")
	}
	if n > 0 {
		w.step("extensions", "run", "systemctl", "enable", "systemd-sysext.service")
		w.step("extensions", "run", "systemd-sysext", "refresh")
	}
}
