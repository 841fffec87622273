package osadapter

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

func itoa(n int) string { return strconv.Itoa(n) }

// software meets the binaries.
func (a *adapter) software(way string) {
	switch way {
	case wayAPT, wayRPM:
		a.byPackages(way)
	case wayOSTree:
		a.byLayering()
	case waySysext:
		a.bySysext()
	case wayImage:
		a.byImage()
	}
	if way != wayNone && way != wayBinary && slices.Contains(a.req.Binaries, "containerd") && a.options["install.containerd"] != "none" {
		a.containerd(way)
	}
}

// missing are the binaries that the system lacks.
func (a *adapter) missing() []string {
	return slices.DeleteFunc(slices.Sorted(slices.Values(a.req.Binaries)), func(b string) bool { return slices.Contains(a.sys.has, b) })
}

// kubernetesRepo returns the repository of the packages of Kubernetes.
func (a *adapter) kubernetesRepo(base, key string) (machineconfig.Repo, bool) {
	minor, _, ok := a.version()
	if !ok {
		f := a.r.Errorf("/bootstrap/version", "invalid", "%q is not a version of Kubernetes", inventory.Clean(a.req.Version, 40))
		f.Hint = "such as 1.35.0"
		return machineconfig.Repo{}, false
	}
	if v := a.options["install.repoURL"]; v != "" {
		base = v
	}
	r := machineconfig.Repo{ID: "kubernetes", URL: strings.ReplaceAll(base, "{minor}", minor)}
	if !strings.HasSuffix(r.URL, "/") {
		r.URL += "/"
	}
	r.Key = r.URL + key
	if v := a.options["install.repoKey"]; v != "" {
		r.Key = v
	} else if strings.HasPrefix(r.URL, "http://") {
		f := a.r.Errorf("/bootstrap/options/install.repoURL", "unverified", "over http the signing key cannot be fetched as well")
		f.Hint = "put the armoured key into the option install.repoKey, or use https"
	}
	return r, true
}

// byPackages installs from the community's repository, pinned and held.
func (a *adapter) byPackages(way string) {
	base, key, suite := kubernetesAPT, kubernetesAPTKey, "/"
	if way == wayRPM {
		base, key, suite = kubernetesRPM, kubernetesRPMKey, ""
	}
	if slices.ContainsFunc(a.missing(), func(b string) bool { return packages[b].isOurs || b == "crictl" }) {
		r, ok := a.kubernetesRepo(base, key)
		if !ok {
			return
		}
		r.Suite = suite
		a.repo(r)
	}
	_, full, _ := a.version()
	for _, b := range a.missing() {
		p, ok := packages[b]
		name := p.apt
		if way == wayRPM {
			name = p.rpm
		}
		switch {
		case !ok:
			f := a.r.Errorf("/bootstrap/install", "no-package", "no package of %s has %s", a.t, b)
			f.Hint = "set bootstrap.install: none when the image has it, or the bootstrapper's options to fetch it"
		case b == "containerd":
			a.containerdPackage(way, name)
		case p.isOurs && full != "" && way == wayAPT:
			a.install(name, name+"="+full+"-*")
		case p.isOurs && full != "":
			a.install(name, name+"-"+full)
		default:
			a.install(name, name)
		}
		if p.isOurs {
			a.hold(name)
		}
	}
}

// containerdPackage installs the system's containerd, or Docker's where the system has none or too old a one.
func (a *adapter) containerdPackage(way, name string) {
	from := a.options["install.containerd"]
	minor, _, _ := a.version()
	_, digits, _ := strings.Cut(minor, ".")
	n, _ := strconv.Atoi(digits)
	if from == "" {
		from = "os"
		if a.sys.docker == "centos" || n >= firstWithContainerd2 && a.sys.docker != "" {
			from = "docker"
		}
	}
	switch {
	case from == "none":
		return
	case from == "os" || a.sys.docker == "":
		a.install(name, name)
		return
	}
	r := machineconfig.Repo{ID: "docker", URL: dockerBase + a.sys.docker, Key: dockerBase + a.sys.docker + "/gpg"}
	if way == wayAPT {
		r.Suite, r.Components = a.sys.codenames[a.t.Release], []string{"stable"}
		if r.Suite == "" {
			f := a.r.Errorf("/bootstrap/options/install.containerd", "unknown-release", "Slipway does not know Docker's name for %s", a.t)
			f.Hint = "set install.containerd: os or none, or add the repository and the package in a layer"
			return
		}
	} else {
		major, _, _ := strings.Cut(a.t.Release, ".")
		arch := "x86_64"
		if a.t.Arch == inventory.ARM64 {
			arch = "aarch64"
		}
		r.URL += "/" + major + "/" + arch + "/stable"
	}
	if v := a.options["install.containerdRepoURL"]; v != "" {
		r.URL = v
	}
	if v := a.options["install.containerdRepoKey"]; v != "" {
		r.Key = v
	}
	a.repo(r)
	a.install("containerd.io", "containerd.io")
}

// byLayering layers packages over an rpm-ostree system, which reads repositories from files.
func (a *adapter) byLayering() {
	r, ok := a.kubernetesRepo(kubernetesRPM, kubernetesRPMKey)
	if !ok {
		return
	}
	key := r.Key
	if !strings.HasPrefix(key, "http") {
		const path = "/etc/pki/rpm-gpg/RPM-GPG-KEY-kubernetes"
		a.file(path, 0o644, strings.TrimSpace(key)+"\n")
		key = "file://" + path
	}
	a.file("/etc/yum.repos.d/kubernetes.repo", 0o644,
		"[kubernetes]\nname=Kubernetes\nbaseurl="+r.URL+"\nenabled=1\ngpgcheck=1\nrepo_gpgcheck=1\ngpgkey="+key+"\n")
	_, full, _ := a.version()
	for _, b := range a.missing() {
		p, ok := packages[b]
		switch {
		case !ok || b == "snap":
			f := a.r.Errorf("/bootstrap/install", "no-package", "no package of %s has %s", a.t, b)
			f.Hint = "set bootstrap.install: none when the image has it, or the bootstrapper's options to fetch it"
			continue
		case b == "containerd" && a.sys.hasContainerd:
			continue
		}
		name := p.rpm
		if p.isOurs && full != "" {
			name += "-" + full
		}
		a.extension(machineconfig.Extension{Name: p.rpm, Remote: machineconfig.Remote{URL: name}, Format: machineconfig.RPMOSTree})
	}
}

var sumRE = regexp.MustCompile(`^[0-9a-f]{64}$`)

// bySysext lays one extension over the system, which has all that Kubernetes brings.
func (a *adapter) bySysext() {
	_, full, _ := a.version()
	address := a.options["install.sysextURL"]
	if address == "" && a.t.OS != "flatcar" {
		f := a.r.Errorf("/bootstrap/options/install.sysextURL", "missing", "there is no ready-made extension for %s", a.t)
		f.Hint = "build one and give its URL, or install in another way"
		return
	}
	address = cmp.Or(address, flatcarSysext)
	if full == "" && strings.Contains(address, "{version}") {
		f := a.r.Errorf("/bootstrap/version", "invalid", "%q does not name one extension", inventory.Clean(a.req.Version, 40))
		f.Hint = "write all of it, such as 1.35.0"
		return
	}
	sum := strings.ToLower(strings.TrimPrefix(a.options["install.sysextSHA256"], "sha256:"))
	if !sumRE.MatchString(sum) {
		f := a.r.Errorf("/bootstrap/options/install.sysextSHA256", "missing", "the extension with Kubernetes is fetched with a checksum only")
		f.Hint = "take it from the SHA256SUMS next to " + expand(address, full, a.t.Arch)
		return
	}
	for _, b := range a.missing() {
		if b != "crictl" && !packages[b].isOurs && a.options["install.sysextURL"] == "" {
			f := a.r.Errorf("/bootstrap/install", "no-package", "the extension of %s does not have %s", a.t, b)
			f.Hint = "set bootstrap.install: none when the image has it, or the bootstrapper's options to fetch it"
		}
	}
	a.extension(machineconfig.Extension{
		Name: "kubernetes", Format: machineconfig.Sysext, Remote: machineconfig.Remote{URL: expand(address, full, a.t.Arch), SHA256: sum},
	})
}

func expand(address, version string, arch inventory.Arch) string {
	word := "x86-64"
	if arch == inventory.ARM64 {
		word = "arm64"
	}
	return strings.NewReplacer("{version}", version, "{arch}", word).Replace(address)
}

func (a *adapter) byImage() {
	ref := a.options["install.image"]
	if ref == "" {
		f := a.r.Errorf("/bootstrap/options/install.image", "missing", "which container image should the machine become?")
		f.Hint = "such as registry.example.com/node:1.35.0, or install: none when it is booted already"
		return
	}
	a.extension(machineconfig.Extension{Name: "os", Format: machineconfig.Bootc, Remote: machineconfig.Remote{URL: ref}})
}

// containerd writes the runtime's configuration and starts it. Flatcar's own is right.
func (a *adapter) containerd(way string) {
	yes := true
	if a.t.OS == "flatcar" {
		a.unit(machineconfig.Unit{Name: "containerd.service", Enabled: &yes})
		return
	}
	a.file("/etc/containerd/config.toml", 0o644, a.containerdConfig())
	if a.sys.hasContainerd {
		a.unit(machineconfig.Unit{Name: "containerd.service", Enabled: &yes})
	} else {
		// A package starts it before or after our file is there, by the order in which the tool works.
		a.command("slipway-containerd", "systemctl enable containerd.service\nsystemctl restart containerd.service\n")
	}
	if a.sys.hasSELinux && way != wayImage {
		a.selinux()
	}
}

// containerdConfig is read by containerd 1.6 and later: 2.x converts it by itself.
func (a *adapter) containerdConfig() string {
	var b strings.Builder
	b.WriteString("version = 2\n\n[plugins.\"io.containerd.grpc.v1.cri\"]\n")
	if v := a.options["install.sandboxImage"]; v != "" {
		b.WriteString("  sandbox_image = " + strconv.Quote(v) + "\n")
	}
	b.WriteString(`  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
`)
	return b.String()
}

// selinux makes it permissive when the profile says so, as kubeadm's documentation does; otherwise it stays.
func (a *adapter) selinux() {
	switch a.options["install.selinux"] {
	case "permissive":
		a.command("slipway-selinux", "setenforce 0 || true\nsed -i 's/^SELINUX=enforcing$/SELINUX=permissive/' /etc/selinux/config\n")
	case "":
		f := a.r.Warnf("/bootstrap/options/install.selinux", "selinux", "SELinux stays enforcing on %s: some pods that use the host's files may be refused", a.t)
		f.Hint = "set the option to permissive, or to enforcing to confirm"
	}
}
