package capi_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"slipway.dev/slipway/ignition"
)

// old is an image whose Ignition is as old as Debian's own, so that its engine can judge as well.
var old = image{"flatcar", "3510", "ignition", "3.3.0"}

// engine is one of the programs that become a machine's Ignition.
type engine struct{ path, validate, spec string }

func engines(t *testing.T) []engine {
	return []engine{
		{program(t, "ignition", "ignition"), program(t, "ignition-validate", "ignition"), "3.3.0"},
		{part(t, "ignition"), part(t, "ignition-validate"), "3.6.0"},
	}
}

// machine is a folder that Ignition's engine has made a root file system of.
type machine struct {
	t      *testing.T
	root   string
	merged merged
}

// merged is the part of Ignition's own merged configuration that the stage files does not show.
type merged struct {
	Storage struct {
		Disks []struct {
			Device     string
			Partitions []struct{ Number int }
		}
		Filesystems []struct{ Device, Format, Label string }
	}
	Systemd struct {
		Units []struct{ Name string }
	}
}

// TestIgnitionBootsWithEverySecret lets Ignition's parsers and engines take what is rendered, and looks at the machine.
func TestIgnitionBootsWithEverySecret(t *testing.T) {
	judges(t)
	if os.Getuid() != 0 {
		t.Fatal("Ignition's engine makes users and owners: run as root")
	}
	all := engines(t)
	n := 0
	for _, s := range secrets(t) {
		for _, on := range append(slices.Clone(images), old) {
			if on.format != "ignition" {
				continue
			}
			for _, e := range all {
				if !ignition.CanRead(e.spec, on.tool) {
					continue
				}
				t.Run(fmt.Sprintf("%s on %s by %s", s.Name, on, e.spec), func(t *testing.T) {
					d := deliver(t, s, on)
					m := apply(t, e, d.documents["config.ign"])
					if t.Failed() {
						return
					}
					m.hasOurs()
					m.hasTheirs(s, d)
					m.hasUnits(s)
					m.boots(s)
					n++
				})
			}
		}
	}
	t.Logf("%d machines were made", n)
}

// apply runs the stages fetch, which merges, and files, and then what systemd does at every boot.
func apply(t *testing.T, e engine, doc []byte) *machine {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		must(t, os.Chmod(d, 0o755)) // the engine writes SSH keys as the user
	}
	m := &machine{t: t, root: filepath.Join(dir, "root")}
	for _, d := range []string{"etc/selinux", "etc/systemd/system", "var/tmp", "var/log", "var/lib", "run", "tmp", "home", "usr", "opt/bin", "dev", "proc"} {
		must(t, os.MkdirAll(filepath.Join(m.root, d), 0o755))
	}
	for _, f := range []string{"passwd", "group", "shadow", "gshadow", "login.defs"} {
		b, err := os.ReadFile("/etc/" + f)
		must(t, err)
		write(t, filepath.Join(m.root, "etc", f), string(b), 0o600)
	}
	write(t, filepath.Join(m.root, "etc/selinux/config"), "SELINUX=disabled\nSELINUXTYPE=targeted\n", 0o644)
	write(t, filepath.Join(dir, "stub/setfiles"), "#!/bin/sh\nexit 0\n", 0o755)
	config := filepath.Join(dir, "config.ign")
	write(t, config, string(doc), 0o600)
	if out, err := run(dir, nil, e.validate, config); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	env := []string{"IGNITION_CONFIG_FILE=" + config, "PATH=" + filepath.Join(dir, "stub") + ":" + os.Getenv("PATH")}
	for _, stage := range []string{"fetch", "files"} {
		out, err := run(dir, env, e.path, "-platform", "file", "-root", m.root, "-log-to-stdout", "-config-cache", filepath.Join(dir, "cache"),
			"-state-file", filepath.Join(dir, "state"), "-neednet", filepath.Join(dir, "neednet"), "-stage", stage)
		if err != nil {
			t.Errorf("stage %s: %v\n%s", stage, err, out[max(0, len(out)-3000):])
			return m
		}
	}
	cache, err := os.ReadFile(filepath.Join(dir, "cache"))
	must(t, err)
	must(t, json.Unmarshal(cache, &m.merged))
	if confs, _ := filepath.Glob(filepath.Join(m.root, "etc/tmpfiles.d/*.conf")); len(confs) > 0 {
		argv := []string{program(t, "systemd-tmpfiles", "systemd"), "--create", "--root=" + m.root}
		if out, err := run(dir, nil, append(argv, confs...)...); err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("%v\n%s", err, out)
		}
	}
	return m
}

func (m *machine) read(path string) string {
	m.t.Helper()
	b, err := os.ReadFile(filepath.Join(m.root, path))
	if err != nil {
		m.t.Error(err)
	}
	return string(b)
}

// holds checks the mode of a file and a piece of its content.
func (m *machine) holds(path string, mode uint32, piece string) {
	m.t.Helper()
	if got := m.read(path); !strings.Contains(got, piece) {
		m.t.Errorf("%s does not hold %q:\n%s", path, piece, got)
	}
	if s, err := os.Stat(filepath.Join(m.root, path)); err == nil && s.Sys().(*syscall.Stat_t).Mode&0o7777 != mode {
		m.t.Errorf("%s has mode %o, want %o", path, s.Sys().(*syscall.Stat_t).Mode&0o7777, mode)
	}
}

func (m *machine) hasOurs() {
	m.holds("/etc/hostname", 0o644, hostname)
	m.holds(ourFile, 0o640, "ours = 100%\n")
	m.holds("/etc/slipway/report-url", 0o600, reportURL)
	m.hasUser("ours")
}

func (m *machine) hasUser(name string) {
	m.t.Helper()
	if !strings.Contains(m.read("/etc/passwd"), "\n"+name+":") {
		m.t.Errorf("there is no user %s", name)
	}
	keys, _ := filepath.Glob(filepath.Join(m.root, "home", name, ".ssh/authorized_keys*"))
	more, _ := filepath.Glob(filepath.Join(m.root, "home", name, ".ssh/authorized_keys.d/*"))
	if !slices.ContainsFunc(append(keys, more...), func(p string) bool {
		b, _ := os.ReadFile(p)
		return bytes.Contains(b, []byte("ssh-ed25519 AAAA"))
	}) {
		m.t.Errorf("%s has no SSH key", name)
	}
}

// kubeadmConfig is where the secret puts kubeadm's configuration, and with which mode.
func kubeadmConfig(s secret) (path string, mode uint32) {
	switch {
	case s.Format == "ignition":
		return "/etc/kubeadm.yml", 0o600
	case s.role() == "init":
		return "/run/kubeadm/kubeadm.yaml", 0o640
	}
	return "/run/kubeadm/kubeadm-join-config.yaml", 0o640
}

func (m *machine) hasTheirs(s secret, d *seed) {
	path, mode := kubeadmConfig(s)
	m.holds(path, mode, "name: '"+hostname+"'")
	if s.role() != "init" {
		m.holds(path, mode, "slipway://"+d.instance)
	}
	judgeKubeadm(m.t, m.read(path))
	must(m.t, filepath.WalkDir(filepath.Join(m.root, "etc"), func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if b, err := os.ReadFile(p); err != nil || bytes.Contains(b, []byte("meta_data")) {
			m.t.Errorf("%s holds a template: %v", p, err)
		}
		return nil
	}))
	if s.role() != "worker" {
		judgePKI(m.t, m.read("/etc/kubernetes/pki/ca.crt"), m.read("/etc/kubernetes/pki/ca.key"))
	}
	if !s.isRich() {
		return
	}
	m.holds("/etc/example.conf", 0o640, "key = \"value\"\nother = 'x'\n")
	m.holds("/etc/encoded", 0o600, "hello world\n")
	m.holds("/etc/appended", 0o644, "one more line\n")
	m.hasUser("admin")
	sudo := "admin ALL=(ALL) NOPASSWD:ALL\n"
	if got := m.read("/etc/sudoers.d/admin"); got != sudo {
		m.t.Errorf("sudo: %q", got)
	}
	if shadow := m.read("/etc/shadow"); !strings.Contains(shadow, "\nadmin:$6$abcdefgh$") {
		m.t.Error("the password of admin is lost, or locked")
	}
	st := m.merged.Storage
	if len(st.Disks) != 1 || st.Disks[0].Device != "/dev/vdb" || len(st.Disks[0].Partitions) != 1 || st.Disks[0].Partitions[0].Number != 1 {
		m.t.Errorf("disks: %+v", st.Disks)
	}
	if len(st.Filesystems) != 1 || st.Filesystems[0].Device != "/dev/vdb1" || st.Filesystems[0].Format != "ext4" || st.Filesystems[0].Label != "etcd_disk" {
		m.t.Errorf("file systems: %+v", st.Filesystems)
	}
	if mount := m.read("/etc/systemd/system/var-lib-etcddisk.mount"); !strings.Contains(mount, "Where=/var/lib/etcddisk") {
		m.t.Errorf("the mount is %q", mount)
	}
}

// hasUnits looks at the units of both sides: none has taken the place of another, and systemd takes all.
func (m *machine) hasUnits(s secret) {
	want := []string{ourUnit, "slipway-first-boot.service", "slipway-bootstrap.service", "slipway-finish.service", "slipway-report.service"}
	if s.Format == "ignition" {
		want = append(want, "kubeadm.service")
	} else {
		want = append(want, theirBootstrap)
		if s.isRich() {
			want = append(want, "slipway-capi-every-boot.service")
		}
	}
	seen := map[string]bool{}
	for _, u := range m.merged.Systemd.Units {
		if seen[u.Name] {
			m.t.Errorf("%s is there twice", u.Name)
		}
		seen[u.Name] = true
	}
	dir := filepath.Join(m.root, "etc/systemd/system")
	presets := m.read("/etc/systemd/system-preset/20-ignition.preset")
	var files []string
	for _, name := range want {
		if !seen[name] || !strings.Contains(presets, "enable "+name+"\n") {
			m.t.Errorf("%s is lost, or not enabled:\n%s", name, presets)
		}
		files = append(files, filepath.Join(dir, name))
	}
	argv := append([]string{program(m.t, "systemd-analyze", "systemd"), "verify", "--man=no", "--recursive-errors=no"}, files...)
	if out, err := run(dir, []string{"SYSTEMD_UNIT_PATH=" + dir + ":"}, argv...); err != nil || strings.TrimSpace(out) != "" {
		m.t.Errorf("%v\n%s", err, out)
	}
}

// theirBootstrap is the unit that runs the commands of a translated cloud-config.
const theirBootstrap = "slipway-capi-bootstrap.service"

// boots runs what systemd would, in its order, with a kubeadm that only says that it was called.
func (m *machine) boots(s secret) {
	bootstrap := theirBootstrap
	if s.Format == "ignition" {
		bootstrap = "kubeadm.service"
	}
	kubeadm := filepath.Join(m.root, "opt/bin/kubeadm")
	// Cluster API's own script for Ignition ends at the first failure; a cloud-config goes on, as with cloud-init.
	exit := map[string]string{"ignition": "0", "cloud-config": "1"}[s.Format]
	write(m.t, filepath.Join(m.root, "opt/bin/sysctl"), "#!/bin/sh\nexit "+exit+"\n", 0o755)
	write(m.t, kubeadm, "#!/bin/sh\necho \"kubeadm $1\" >> /var/log/ours\nexit 1\n", 0o755)
	if s.Format == "cloud-config" {
		if out, err := m.start(bootstrap); err == nil {
			m.t.Errorf("a join that failed counts as one that has succeeded:\n%s", out)
		}
		must(m.t, os.Remove(filepath.Join(m.root, "var/log/ours")))
	}
	write(m.t, kubeadm, "#!/bin/sh\necho \"kubeadm $1\" >> /var/log/ours\n", 0o755)
	units := []string{"slipway-first-boot.service", bootstrap, "slipway-bootstrap.service", "slipway-finish.service"}
	if s.Format == "cloud-config" {
		units = append(units, "slipway-capi-finish.service")
	}
	for _, unit := range units {
		if out, err := m.start(unit); err != nil {
			m.t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
	verb := map[bool]string{true: "init", false: "join"}[s.role() == "init"]
	if got := m.read("/var/log/ours"); got != "ours-first\nkubeadm "+verb+"\nours-last\n" {
		m.t.Errorf("on the first boot ran\n%s", got)
	}
	if got := m.read("/run/cluster-api/bootstrap-success.complete"); got != "success\n" {
		m.t.Errorf("the sentinel holds %q", got)
	}
	if s.isRich() {
		m.holds("/var/log/before", 0o644, "before 'kubeadm'\n")
		m.holds("/var/log/after", 0o644, "after\n")
	}
	if path, _ := kubeadmConfig(s); s.Format == "cloud-config" {
		for _, p := range []string{path, "/etc/slipway-capi/bootstrap" + path, "/etc/slipway/capi-bootstrap.sh"} {
			if _, err := os.Stat(filepath.Join(m.root, p)); !errors.Is(err, fs.ErrNotExist) {
				m.t.Errorf("%s is still there when all is done", p)
			}
		}
	}
}

var execRE = regexp.MustCompile(`(?m)^ExecStart=(.*)$`)

// start runs the commands of a oneshot unit inside of the folder, with this machine's programs.
func (m *machine) start(unit string) (string, error) {
	m.t.Helper()
	all := ""
	for _, c := range execRE.FindAllStringSubmatch(m.read("/etc/systemd/system/"+unit), -1) {
		all += c[1] + " || exit\n"
	}
	if all == "" {
		m.t.Errorf("%s runs nothing", unit)
	}
	const enter = `set -e
cd "$0"
mount --bind /usr usr
for d in bin sbin lib lib32 lib64 libx32; do [ ! -L /$d ] || ln -sfn "$(readlink /$d)" $d; done
mount --bind /dev dev
mkdir -p proc
mount --bind /proc proc
exec chroot . /usr/bin/env -i HOME=/root PATH=/opt/bin:/usr/sbin:/usr/bin:/sbin:/bin timeout 20 /bin/bash -c "$1"`
	return run(m.root, nil, program(m.t, "unshare", "util-linux"), "--mount", "/bin/sh", "-c", enter, m.root,
		"mkdir -p /var/lib/slipway /var/lib/slipway-capi\n"+all)
}

var kubernetesRE = regexp.MustCompile(`kubernetesVersion: \S+`)

// judgeKubeadm lets kubeadm read its configuration. The one that judges is newer than the one that was asked for.
func judgeKubeadm(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeadm.yaml")
	write(t, file, kubernetesRE.ReplaceAllString(text, "kubernetesVersion: v1.36.0"), 0o600)
	if out, err := run("", nil, part(t, "kubeadm"), "config", "validate", "--config", file); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// judgePKI reads the cluster's CA.
func judgePKI(t *testing.T, cert, key string) {
	t.Helper()
	c, _ := pem.Decode([]byte(cert))
	k, _ := pem.Decode([]byte(key))
	if c == nil || k == nil {
		t.Errorf("the cluster's CA is %q", cert)
		return
	}
	if parsed, err := x509.ParseCertificate(c.Bytes); err != nil || !parsed.IsCA {
		t.Errorf("the cluster's CA is no certificate: %v", err)
	}
}

// run runs a program and returns what it said.
func run(dir string, env []string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Base(argv[0]), err)
	}
	return string(out), err
}

func write(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(text), mode))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
