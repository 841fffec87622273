package capi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// understood is what cloud-init makes of a seed.
type understood struct {
	Config map[string]any `json:"config"`
	Apply  struct {
		Owners map[string]string `json:"owners"`
	} `json:"apply"`
	Users struct {
		Users map[string]map[string]any `json:"users"`
	} `json:"users"`
	Runcmd  string `json:"runcmd"`
	Bootcmd string `json:"bootcmd"`
	root    string
}

// driver runs cloud-init's own code: the processor of user-data, its part handlers, write_files, users and runcmd.
var driver = filepath.Join("..", "cloudinit", "testdata", "driver.py")

func python(t *testing.T, stdin []byte, args ...string) ([]byte, error) {
	t.Helper()
	program(t, "cloud-init", "cloud-init")
	cmd := exec.Command(program(t, "/usr/bin/python3", "python3"), args...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if tree := os.Getenv("SLIPWAY_CLOUDINIT_NEWER"); tree != "" {
		cmd.Env = append(cmd.Env, "PYTHONPATH="+tree)
	}
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), &stderr
	out, err := cmd.Output()
	if err != nil {
		return append(out, stderr.Bytes()...), err
	}
	return out, nil
}

// seedOf finds the documents that the cloud-init of the installed system will read, and checks that they get there.
func seedOf(t *testing.T, d *seed, on image) (user, meta []byte) {
	t.Helper()
	const folder = "/var/lib/cloud/seed/nocloud/"
	switch on.format {
	case "cloud-init":
		return d.documents["user-data"], d.documents["meta-data"]
	case "kickstart":
		ks := string(d.documents["ks.cfg"])
		here := func(name string) []byte {
			_, rest, ok := strings.Cut(ks, "cat > '"+folder+name+"' << '")
			tag, rest, _ := strings.Cut(rest, "'\n")
			text, _, ended := strings.Cut(rest, "\n"+tag+"\n")
			if !ok || !ended {
				t.Fatalf("the kickstart writes no %s", name)
			}
			return []byte(text + "\n")
		}
		return here("user-data"), here("meta-data")
	}
	main := string(d.documents[map[string]string{"preseed": "preseed.cfg", "autoinstall": "user-data"}[on.format]])
	for _, name := range []string{"user-data", "meta-data"} {
		if !strings.Contains(main, "http://192.0.2.1/c/0123456789abcdef/seed-"+name) || !strings.Contains(main, "/target"+folder) {
			t.Errorf("the installer does not fetch the seed's %s:\n%s", name, main)
		}
	}
	if d.documents["seed-user-data"] == nil {
		t.Fatalf("there is no seed among the documents of %s", on)
	}
	return d.documents["seed-user-data"], d.documents["seed-meta-data"]
}

// TestCloudInitBootsWithEverySecret lets cloud-init's own code merge what is delivered: the secret's part and ours.
func TestCloudInitBootsWithEverySecret(t *testing.T) {
	judges(t)
	type one struct {
		s  secret
		on image
		d  *seed
	}
	var all []one
	var in []map[string]string
	var roots []string
	for _, s := range secrets(t) {
		for _, on := range images {
			if s.Format == "ignition" || on.format == "ignition" {
				continue
			}
			d := deliver(t, s, on)
			user, meta := seedOf(t, d, on)
			root := t.TempDir()
			in = append(in, map[string]string{"user": base64.StdEncoding.EncodeToString(user), "meta": string(meta), "root": root})
			all, roots = append(all, one{s, on, d}), append(roots, root)
		}
	}
	stdin, err := json.Marshal(in)
	must(t, err)
	out, err := python(t, stdin, driver, "all")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []*understood
	must(t, json.Unmarshal(out, &got))
	for i, c := range all {
		t.Run(c.s.Name+" on "+c.on.String(), func(t *testing.T) {
			got[i].root = roots[i]
			got[i].judge(t, c.s, c.on, c.d)
		})
	}
	t.Logf("cloud-init read %d seeds", len(all))
}

func (u *understood) judge(t *testing.T, s secret, on image, d *seed) {
	read := func(path string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(u.root, path))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	path, _ := kubeadmConfig(s)
	join := read(path)
	want := []string{"name: '" + hostname + "'"}
	if s.role() != "init" {
		want = append(want, "slipway://"+d.instance)
	}
	for _, w := range want {
		if !strings.Contains(join, w) {
			t.Errorf("%q is not in\n%s", w, join)
		}
	}
	judgeKubeadm(t, join)
	if s.role() != "worker" {
		judgePKI(t, read("/etc/kubernetes/pki/ca.crt"), read("/etc/kubernetes/pki/ca.key"))
	}
	read("/run/cluster-api/placeholder")
	verb := map[bool]string{true: "init", false: "join"}[s.role() == "init"]
	order := []string{"kubeadm " + verb + " --config " + path, "'test' '-e' '/run/cluster-api/bootstrap-success.complete'", "ours-last", "finish"}
	if s.isRich() {
		order = append([]string{"before 'kubeadm'"}, order...)
	}
	if on.format != "kickstart" || strings.Contains(u.Runcmd, "ours-first") {
		order = append([]string{"ours-first"}, order...)
	}
	at := -1
	for _, w := range order {
		i := strings.Index(u.Runcmd, w)
		if i <= at {
			t.Errorf("%q is not where it belongs in\n%s", w, u.Runcmd)
		}
		at = i
	}
	if on.format == "cloud-init" {
		if got := read(ourFile); got != "ours = 100%\n" {
			t.Errorf("%s holds %q", ourFile, got)
		}
		if _, ok := u.Users.Users["ours"]; !ok {
			t.Errorf("our user is lost: %v", u.Users.Users)
		}
	}
	if s.isRich() {
		u.judgeRich(t, read)
	}
}

func (u *understood) judgeRich(t *testing.T, read func(string) string) {
	admin := u.Users.Users["admin"]
	if admin == nil || admin["lock_passwd"] != false || admin["sudo"] != "ALL=(ALL) NOPASSWD:ALL" || !strings.HasPrefix(admin["passwd"].(string), "$6$abcdefgh$") {
		t.Errorf("admin is %v", admin)
	}
	for path, want := range map[string]string{
		"/etc/example.conf": "key = \"value\"\nother = 'x'\n", "/etc/encoded": "hello world\n", "/etc/appended": "one more line\n",
	} {
		if got := strings.TrimRight(read(path), "\n"); got != strings.TrimRight(want, "\n") {
			t.Errorf("%s holds %q", path, got)
		}
	}
	if !strings.Contains(u.Bootcmd, "echo booting > /dev/kmsg") {
		t.Errorf("bootcmd is %s", u.Bootcmd)
	}
	for _, key := range []string{"ntp", "disk_setup", "fs_setup", "mounts"} {
		if u.Config[key] == nil {
			t.Errorf("%s is lost", key)
		}
	}
}

// TestCloudInitsSchemaTakesTheTestSecrets shows that what Cluster API writes is what cloud-init expects, so that the
// other tests judge real secrets. Its own reader of templates is too old, so they are filled in by hand.
func TestCloudInitsSchemaTakesTheTestSecrets(t *testing.T) {
	judges(t)
	for _, s := range secrets(t) {
		if s.Format != "cloud-config" {
			continue
		}
		_, text, _ := strings.Cut(s.Value, "\n")
		text = strings.NewReplacer("{{ ds.meta_data.local_hostname }}", hostname, "{{ ds.meta_data.instance_id }}", "i-1").Replace(text)
		file := filepath.Join(t.TempDir(), "user-data")
		write(t, file, text, 0o600)
		out, err := python(t, nil, "-m", "cloudinit.cmd.main", "schema", "--config-file", file)
		// The schema of 22.4 wants a text there; its module takes the number that Cluster API writes.
		const known = "Cloud config schema errors: fs_setup.0.partition: 1 is not valid under any of the given schemas\n"
		if err != nil && !bytes.HasSuffix(out, []byte(known)) {
			t.Errorf("%s: %v\n%s", s.Name, err, out)
		}
	}
}
