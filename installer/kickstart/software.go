package kickstart

import (
	"regexp"
	"slices"
	"strings"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// software says where packages come from and which are installed.
func (w *writer) software() {
	p := w.c.Packages
	if w.image() {
		if len(p.Install) > 0 {
			w.report.Errorf("/packages/install", "not-expressible", "cannot be added to an OS that is a container image").
				Hint = "build them into the image"
		}
		return
	}
	mirror, rest := installer.SplitMirror(w.t.OS, p.Repos)
	if mirror != nil {
		w.command("url" + w.option(pointer.Of("packages", "repos", mirror.ID), "url", mirror.URL) + w.option("/packages/proxy", "proxy", p.Proxy))
	}
	if p.Proxy != "" { // what the image's arguments name is fetched through it as well
		w.args = append(w.args, "inst.proxy="+p.Proxy)
	}
	for _, r := range rest {
		w.repo(r)
	}
	w.packages = []string{"@^minimal-environment"}
	if slices.ContainsFunc(p.Groups, func(g string) bool { return strings.HasPrefix(g, "^") }) {
		w.packages = nil // an installation has one environment
	}
	for _, g := range p.Groups {
		w.packages = append(w.packages, "@"+g)
	}
	install := slices.Clone(p.Install)
	if w.c.Activation != nil && w.c.Activation.Prelude != nil && !slices.Contains(install, "cloud-init") {
		install = append(install, "cloud-init")
	}
	for _, name := range install {
		if installer.HasControl(name) || strings.ContainsAny(name, " \t%#") || strings.HasPrefix(name, "-") {
			w.report.Errorf("/packages/install", "bad-name", "%q is not the name of a package", name).
				Hint = "write one package in each item"
			continue
		}
		w.packages = append(w.packages, name)
	}
	for _, name := range p.Remove {
		w.packages = append(w.packages, "-"+name)
	}
	for _, e := range w.c.Extensions {
		w.sysext(e)
	}
}

// image says that the OS is a container image, if an extension asks for that.
func (w *writer) image() bool {
	found := false
	for _, e := range w.c.Extensions {
		if e.Format != machineconfig.Bootc {
			continue
		}
		at := pointer.Of("extensions", e.Name)
		switch {
		case found:
			w.report.Errorf(at, "duplicate", "is a second image of the whole OS").Hint = "leave one"
		case w.release() < 9 || w.t.OS == "fedora" && w.release() < 38:
			w.report.Errorf(at, "not-expressible", "%s cannot be installed from a container image", w.t).Hint = "use release 9 or newer"
		}
		found = true
		reference := strings.TrimPrefix(e.URL, "docker://")
		w.command("ostreecontainer" + w.option(at+"/url", "url", reference) + " --transport=registry --no-signature-verification")
	}
	return found
}

// sysext fetches an extension that systemd lays over the OS.
func (w *writer) sysext(e machineconfig.Extension) {
	if e.Format != "" && e.Format != machineconfig.Sysext {
		w.report.Errorf(pointer.Of("extensions", e.Name), "not-expressible", "of format %s cannot be installed by kickstart", e.Format).
			Hint = "use packages, or an extension of format sysext or bootc"
		return
	}
	p := "/var/lib/extensions/" + e.Name + ".raw"
	w.fetch(&e.Remote, p, ">")
	w.postLine("chmod 0644 " + shWord(p))
	if !slices.Contains(w.post, enableSysext) {
		w.postLine(enableSysext)
	}
}

const enableSysext = "systemctl enable systemd-sysext.service"

var idRE = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// repo adds a repository for the installation, and for later with its key.
func (w *writer) repo(r machineconfig.Repo) {
	at := pointer.Of("packages", "repos", r.ID)
	id := idRE.ReplaceAllString(r.ID, "-")
	w.command("repo" + w.option(at, "name", id) + w.option(at+"/url", "baseurl", r.URL) + w.option("/packages/proxy", "proxy", w.c.Packages.Proxy))
	if installer.HasControl(r.URL) {
		return
	}
	text := "[" + id + "]\nname=" + id + "\nbaseurl=" + r.URL + "\nenabled=1\n"
	switch {
	case r.Key == "":
		text += "gpgcheck=0\n"
	case strings.HasPrefix(r.Key, "https://"):
		text += "gpgcheck=1\ngpgkey=" + r.Key + "\n"
	default:
		key := "/etc/pki/rpm-gpg/RPM-GPG-KEY-" + id
		w.file(key, 0, "", "", ensureLine(r.Key), at+"/key")
		text += "gpgcheck=1\ngpgkey=file://" + key + "\n"
	}
	w.file("/etc/yum.repos.d/"+id+".repo", 0, "", "", text, at)
}
