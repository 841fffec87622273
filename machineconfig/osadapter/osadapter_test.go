package osadapter

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func needs() machineconfig.Requirements {
	return machineconfig.Requirements{
		Binaries: []string{"conntrack", "containerd", "crictl", "kubeadm", "kubectl", "kubelet", "socat"}, Version: "1.35.2",
		Modules: []string{"br_netfilter", "overlay"}, Sysctl: map[string]string{"net.ipv4.ip_forward": "1"}, Ports: []int{10250, 6443, 6443}, NoSwap: true,
	}
}

func config(options map[string]string) *machineconfig.Config {
	return &machineconfig.Config{Bootstrap: &machineconfig.BootstrapSpec{Kind: "kubeadm", Options: options}}
}

func on(name, release string) machineconfig.Target {
	return machineconfig.Target{OS: name, Release: release, Arch: inventory.X8664}
}

func TestEverySystemGetsWhatItNeeds(t *testing.T) {
	sum := map[string]string{"install.sysextSHA256": "sha256:" + strings.Repeat("AB", 32)}
	for _, c := range []struct {
		name    string
		t       machineconfig.Target
		install string
		version string
		options map[string]string
	}{
		{"debian", on("debian", "12"), "", "", nil},
		{"debian-containerd2", on("debian", "13"), "", "1.36.0", nil},
		{"ubuntu-mirror", on("ubuntu", "24.04"), "apt", "", map[string]string{"install.repoURL": "http://mirror/k8s/{minor}", "install.repoKey": "KEY", "install.sandboxImage": "mirror/pause:3.10"}},
		{"rocky", on("rocky", "9.5"), "", "", map[string]string{"install.selinux": "permissive"}},
		{"rocky-image", on("rocky", "9.5"), "image", "", map[string]string{"install.image": "registry/node:1"}},
		{"fedora-coreos-install", on("fedora-coreos-install", "44"), "", "", map[string]string{"install.selinux": "enforcing"}},
		{"flatcar", on("flatcar", "stable"), "", "", sum},
		{"flatcar-arm", machineconfig.Target{OS: "flatcar", Release: "stable", Arch: inventory.ARM64}, "sysext", "", sum},
		{"debian-none", on("debian", "12"), "none", "", nil},
		{"custom-none", on("custom", "1"), "none", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, req := config(c.options), needs()
			if c.version != "" {
				req.Version = c.version
			}
			r := Apply(c.t, req, c.install, cfg)
			cfg.Bootstrap = nil
			got, err := json.MarshalIndent(cfg, "", "  ")
			if err != nil || len(r) > 0 {
				t.Fatal(err, r)
			}
			path := filepath.Join("testdata", c.name+".golden")
			if *update {
				if err := os.WriteFile(path, append(got, '\n'), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if d := cmp.Diff(string(want), string(got)+"\n"); err != nil || d != "" {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
}

func TestFindings(t *testing.T) {
	opt := func(k, v string) *machineconfig.Config { return config(map[string]string{k: v}) }
	swap := config(nil)
	swap.Storage.Filesystems = []machineconfig.Filesystem{{Device: "a/b", Format: "swap"}}
	sysctl := config(nil)
	sysctl.Kernel.Sysctl = map[string]string{"net.ipv4.ip_forward": "0"}
	noVersion := needs()
	noVersion.Version = "latest"
	half := needs()
	half.Version = "1.35"
	k3s := machineconfig.Requirements{Binaries: []string{"k3s"}}
	for _, c := range []struct {
		name, os, install string
		req               machineconfig.Requirements
		c                 *machineconfig.Config
		want              string
	}{
		{"an unknown system", "plan9", "", needs(), config(nil), "/bootstrap/install unknown-os"},
		{"an unknown way", "debian", "magic", needs(), config(nil), "/bootstrap/install unknown-way"},
		{"a way the system has not", "flatcar", "apt", needs(), config(nil), "/bootstrap/install not-expressible"},
		{"kubeadm on Talos", "talos", "", needs(), config(nil), "/bootstrap/kind not-expressible"},
		{"an extension without checksum", "flatcar", "", needs(), config(nil), "/bootstrap/options/install.sysextSHA256 missing"},
		{"an extension with half a checksum", "flatcar", "", needs(), opt("install.sysextSHA256", "abc"), "/bootstrap/options/install.sysextSHA256 missing"},
		{"an extension of no exact version", "flatcar", "", half, opt("install.sysextSHA256", strings.Repeat("a", 64)), "/bootstrap/version invalid"},
		{"an extension for a system without", "debian", "sysext", needs(), opt("install.sysextSHA256", strings.Repeat("a", 64)), "/bootstrap/options/install.sysextURL missing"},
		{"an image without name", "rocky", "image", needs(), opt("install.selinux", "enforcing"), "/bootstrap/options/install.image missing"},
		{"no version", "debian", "", noVersion, config(nil), "/bootstrap/version invalid"},
		{"a mirror over http without key", "debian", "", needs(), opt("install.repoURL", "http://mirror/"), "/bootstrap/options/install.repoURL unverified"},
		{"an option that does not exist", "debian", "", needs(), opt("install.repo", "x"), "/bootstrap/options/install.repo unknown-key"},
		{"an option that is no URL", "debian", "", needs(), opt("install.repoURL", "file:///x"), "/bootstrap/options/install.repoURL invalid"},
		{"an option with a quote", "debian", "", needs(), opt("install.sandboxImage", `a"b`), "/bootstrap/options/install.sandboxImage invalid"},
		{"an option of another choice", "debian", "", needs(), opt("install.containerd", "yes"), "/bootstrap/options/install.containerd invalid"},
		{"swap in the layout", "debian", "", needs(), swap, "/storage/filesystems/a~1b conflict"},
		{"a setting that a layer has otherwise", "debian", "", needs(), sysctl, "/kernel/sysctl/net.ipv4.ip_forward conflict"},
		{"a binary without package", "debian", "", k3s, config(nil), "/bootstrap/install no-package"},
		{"a binary without extension", "flatcar", "", k3s, opt("install.sysextSHA256", strings.Repeat("a", 64)), "/bootstrap/version invalid"},
		{"a release of no name", "ubuntu", "", needs(), opt("install.containerd", "docker"), "/bootstrap/options/install.containerd unknown-release"},
		{"SELinux on a system that has it", "rocky", "", needs(), config(nil), "/bootstrap/options/install.selinux selinux"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range Apply(on(c.os, "99"), c.req, c.install, c.c) {
				got = append(got, f.Path+" "+f.Code)
				if f.Hint == "" && f.Code != "invalid" {
					t.Errorf("%s: no hint", f)
				}
			}
			if !slices.Equal(got, []string{c.want}) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestALayersWordsStay(t *testing.T) {
	c := config(nil)
	c.Packages = machineconfig.Packages{
		Install: []string{"kubelet=1.35.1-1.1", "vim"}, Repos: []machineconfig.Repo{{ID: "kubernetes", URL: "http://mine/"}}, Hold: []string{"kubeadm"},
	}
	c.Files = []machineconfig.File{{Path: "/etc/containerd/config.toml"}}
	c.Commands = []machineconfig.Command{{Name: "mine"}, {Name: "slipway-swap", Shell: "true"}}
	c.Units = []machineconfig.Unit{{Name: "swap.target"}}
	if r := Apply(on("debian", "12"), needs(), "", c); len(r) > 0 {
		t.Fatal(r)
	}
	var names []string
	for _, cmd := range c.Commands {
		names = append(names, cmd.Name)
	}
	got := fmt.Sprintln(c.Packages.Install, len(c.Packages.Repos), c.Packages.Repos[0].URL, c.Packages.Hold, names, len(c.Files), len(c.Units), c.Units[0].Masked)
	want := "[kubelet=1.35.1-1.1 vim conntrack containerd cri-tools kubeadm=1.35.2-* kubectl=1.35.2-* socat] 1 http://mine/ [kubeadm kubectl kubelet] [slipway-containerd mine slipway-swap] 2 1 false\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSharedLayersAreNotWrittenTo(t *testing.T) {
	files := make([]machineconfig.File, 1, 10)
	files[0].Path = "/a"
	cmds := make([]machineconfig.Command, 1, 10)
	sysctl := map[string]string{"a": "b"}
	for range 2 {
		c := config(nil)
		c.Files, c.Commands, c.Kernel.Sysctl = files, cmds, sysctl
		Apply(on("debian", "12"), needs(), "", c)
	}
	if len(sysctl) != 1 || files[:2][1].Path != "" || cmds[:2][1].Name != "" {
		t.Errorf("%v %v %v", sysctl, files[:2], cmds[:2])
	}
}

func TestNothingIsAddedForNothing(t *testing.T) {
	for _, name := range []string{"talos", "plan9", "debian"} {
		c := &machineconfig.Config{}
		if r := Apply(on(name, "1"), machineconfig.Requirements{}, "", c); len(r) > 0 || !cmp.Equal(c, &machineconfig.Config{}) {
			t.Errorf("%s: %v %v", name, r, c)
		}
	}
}

func FuzzApply(f *testing.F) {
	f.Add("debian", "12", "", "1.35.0", "install.repoURL", "http://x/", "kubelet")
	f.Add("flatcar", "stable", "sysext", "1.35", "install.sysextSHA256", "ab", "k3s")
	f.Fuzz(func(t *testing.T, name, release, install, version, k, v, binary string) {
		req := needs()
		req.Version, req.Binaries = version, append(req.Binaries, binary)
		run := func() (*machineconfig.Config, machineconfig.Report) {
			c := config(map[string]string{k: v})
			return c, Apply(on(name, release), req, install, c)
		}
		c1, r1 := run()
		c2, r2 := run()
		if !cmp.Equal(c1, c2) || !cmp.Equal(r1, r2) {
			t.Fatal(cmp.Diff(c1, c2), cmp.Diff(r1, r2))
		}
	})
}
