package bootstrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/k3s"
	"slipway.dev/slipway/machineconfig/kubeadm"
	"slipway.dev/slipway/machineconfig/microk8s"
	"slipway.dev/slipway/machineconfig/osadapter"
)

// emitted are activations of every bootstrapper and role.
func emitted(t *testing.T) map[string]*machineconfig.Activation {
	t.Helper()
	all := map[string]*machineconfig.Activation{}
	take := func(name string, b machineconfig.Bootstrapper, in machineconfig.BootstrapInput) {
		a, _, err := b.Emit(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = a
	}
	for _, c := range cases() {
		to := target()
		if c.to != nil {
			c.to(to)
		}
		take("kubeadm "+c.name, kubeadm.New(), input(c.spec, to, c.os))
	}
	for _, role := range []machineconfig.Role{machineconfig.Worker, machineconfig.ControlPlane, machineconfig.Init} {
		spec := machineconfig.BootstrapSpec{
			Role: role, Secret: "pki#sa.pub", Version: "1.35.0+k3s1", Labels: map[string]string{"a": "b"},
			Taints: []machineconfig.Taint{{Key: "k", Effect: "NoSchedule"}}, Options: map[string]string{"binarySHA256": strings.Repeat("ab", 32)},
		}
		take("k3s "+string(role), k3s.New(), input(spec, target(), "debian"))
		spec.Version, spec.Options = "1.35", map[string]string{"addons": "dns,ingress"}
		take("microk8s "+string(role), microk8s.New(), input(spec, target(), "ubuntu"))
	}
	return all
}

func TestShellcheckAndBashReadOurScripts(t *testing.T) {
	judges(t)
	shellcheck, bash := program(t, "shellcheck", "shellcheck"), program(t, "bash", "bash")
	for name, a := range emitted(t) {
		t.Run(name, func(t *testing.T) {
			n := 0
			for _, f := range a.Files {
				if !strings.HasSuffix(f.Path, ".sh") {
					continue
				}
				n++
				path := write(t, filepath.Join(t.TempDir(), filepath.Base(f.Path)), f.Text)
				if out, err := run("", bash, "-n", path); err != nil {
					t.Errorf("bash -n: %v\n%s", err, out)
				}
				if out, err := run("", shellcheck, path); err != nil {
					t.Errorf("shellcheck: %v\n%s", err, out)
				}
			}
			if n != 1 || a.Exec[1] == "" {
				t.Errorf("%d scripts, exec %v", n, a.Exec)
			}
		})
	}
}

func TestSystemdReadsOurUnits(t *testing.T) {
	judges(t)
	analyze := program(t, "systemd-analyze", "systemd")
	n := 0
	for name, a := range emitted(t) {
		for _, f := range a.Files {
			if strings.HasSuffix(f.Path, ".service") {
				n++
				text := strings.ReplaceAll(f.Text, "/usr/local/bin/k3s", "/bin/true") // it has to exist
				path := write(t, filepath.Join(t.TempDir(), filepath.Base(f.Path)), text)
				if out, err := run("", analyze, "verify", "--man=no", "--recursive-errors=no", path); err != nil || strings.Contains(out, filepath.Base(path)+":") {
					t.Errorf("%s: systemd-analyze verify: %v\n%s", name, err, out)
				}
			}
		}
	}
	if n != 3 {
		t.Errorf("%d units", n)
	}
}

func TestKubernetesReadsTheVirtualAddressPod(t *testing.T) {
	judges(t)
	n := 0
	for name, a := range emitted(t) {
		text := fileOf(a, "/etc/kubernetes/slipway/kube-vip.yaml")
		if text == "" {
			continue
		}
		n++
		var pod corev1.Pod
		if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		env := map[string]string{}
		for _, e := range pod.Spec.Containers[0].Env {
			env[e.Name] = e.Value
		}
		conf, mount := pod.Spec.Volumes[0].HostPath, pod.Spec.Containers[0].VolumeMounts[0]
		wantConf := "/etc/kubernetes/admin.conf"
		if strings.Contains(name, "first") {
			wantConf = "/etc/kubernetes/super-admin.conf"
		}
		if conf == nil || conf.Path != wantConf || mount.MountPath != "/etc/kubernetes/admin.conf" || mount.Name != pod.Spec.Volumes[0].Name {
			t.Errorf("%s: kubeconfig %+v at %+v", name, conf, mount)
		}
		if env["vip_interface"] != "eno1" || env["address"] == "" || env["cp_enable"] != "true" || !pod.Spec.HostNetwork {
			t.Errorf("%s: %v", name, env)
		}
	}
	if n < 5 {
		t.Errorf("%d pods", n)
	}
}

// adapted applies the adapter for a kubeadm node.
func adapted(t *testing.T, os, release, version string) *machineconfig.Config {
	t.Helper()
	to := target()
	to.Kubernetes = version
	in := input(machineconfig.BootstrapSpec{Options: map[string]string{"install.sandboxImage": "mirror.example:5000/pause:3.10"}}, to, os)
	in.OS.Release = release
	_, req, err := kubeadm.New().Emit(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Config.Bootstrap = &in.Spec
	if r := osadapter.Apply(in.OS, req, "", in.Config); r.HasErrors() {
		t.Fatal(r)
	}
	return in.Config
}

func TestAptReadsOurRepositoriesAndPins(t *testing.T) {
	judges(t)
	apt := program(t, "apt-get", "apt")
	for _, v := range []string{"1.35.0", "1.36.1"} {
		c := adapted(t, "debian", "12", v)
		var lines strings.Builder
		for _, r := range c.Packages.Repos {
			lines.WriteString("deb " + strings.Join(append([]string{r.URL, r.Suite}, r.Components...), " ") + "\n")
		}
		dir := t.TempDir()
		list := write(t, filepath.Join(dir, "sources.list"), lines.String())
		out, err := run("", apt, "-o", "Dir::Etc::sourcelist="+list, "-o", "Dir::Etc::sourceparts=-", "-o", "Dir::State::lists="+dir, "--print-uris", "update")
		want := "https://pkgs.k8s.io/core:/stable:/v" + v[:4] + "/deb/InRelease"
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("apt-get update: %v, no %s in\n%s%s", err, want, out, lines.String())
		}
		if v[:4] == "1.36" && !strings.Contains(out, "https://download.docker.com/linux/debian/dists/bookworm/stable/binary-") {
			t.Errorf("no containerd 2 for %s:\n%s", v, out)
		}
	}
}

func TestContainerdReadsOurConfiguration(t *testing.T) {
	judges(t)
	bin := program(t, "containerd", "containerd")
	c := adapted(t, "debian", "12", "1.35.0")
	for _, f := range c.Files {
		if f.Path != "/etc/containerd/config.toml" {
			continue
		}
		out, err := run("", bin, "--config", write(t, filepath.Join(t.TempDir(), "config.toml"), f.Text), "config", "dump")
		for _, want := range []string{"SystemdCgroup = true", `bin_dir = "/opt/cni/bin"`, `config_path = "/etc/containerd/certs.d"`, `sandbox_image = "mirror.example:5000/pause:3.10"`} {
			if err != nil || strings.Count(out, want) != 1 {
				t.Errorf("containerd config dump: %v, no %s in\n%s", err, want, out)
			}
		}
		return
	}
	t.Error("no configuration of containerd")
}

func TestShellcheckReadsTheAdaptersCommands(t *testing.T) {
	judges(t)
	shellcheck := program(t, "shellcheck", "shellcheck")
	for os, release := range map[string]string{"debian": "12", "rocky": "9.5", "fedora-coreos": "44"} {
		for _, cmd := range adapted(t, os, release, "1.35.0").Commands {
			path := write(t, filepath.Join(t.TempDir(), cmd.Name+".sh"), "#!/bin/sh\nset -e\n"+cmd.Shell)
			if out, err := run("", shellcheck, path); err != nil {
				t.Errorf("%s: %v\n%s", cmd.Name, err, out)
			}
		}
	}
}

// The command that turns swap off is run on a copy of a file system table.
func TestTheSwapCommandCommentsOutSwapOnly(t *testing.T) {
	judges(t)
	table := "# <file system> <mount point> <type>\nUUID=1 / ext4 defaults 0 1\nUUID=2 none swap sw 0 0\n/swap.img\tnone\tswap\tsw\t0\t0\n#UUID=3 none swap sw 0 0\n"
	want := "# <file system> <mount point> <type>\nUUID=1 / ext4 defaults 0 1\n#UUID=2 none swap sw 0 0\n#/swap.img\tnone\tswap\tsw\t0\t0\n#UUID=3 none swap sw 0 0\n"
	path := write(t, filepath.Join(t.TempDir(), "fstab"), table)
	for _, cmd := range adapted(t, "debian", "12", "1.35.0").Commands {
		if cmd.Name == "slipway-swap" {
			script := strings.NewReplacer("/etc/fstab", path, "swapoff -a", "true").Replace(cmd.Shell)
			if out, err := run("", "/bin/sh", "-ec", script); err != nil {
				t.Fatal(err, out)
			}
		}
	}
	if got, _ := os.ReadFile(path); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
