package ignition_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/machineconfig"
)

func TestIgnitionsParsersAcceptRenderings(t *testing.T) {
	judges(t)
	old, current := program(t, "ignition-validate", "ignition"), part(t, "ignition-validate")
	for i, j := range all(t).cases {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("%d.ign", i))
		write(t, file, string(j.doc), 0o600)
		if ignition.CanRead("3.3.0", ignition.SpecOf(j.doc)) {
			if out, err := run("", nil, old, file); err != nil || strings.TrimSpace(out) != "" {
				t.Errorf("%s: Ignition 2.14: %v\n%s", j.name, err, out)
			}
		}
		if out, err := run("", nil, current, file); err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("%s: Ignition 2.27: %v\n%s", j.name, err, out)
		}
	}
}

func TestParsersRefuseWhatIsWrong(t *testing.T) {
	judges(t)
	file := filepath.Join(t.TempDir(), "x.ign")
	write(t, file, `{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"relative"}]}}`, 0o600)
	for _, p := range []string{program(t, "ignition-validate", "ignition"), part(t, "ignition-validate")} {
		if out, err := run("", nil, p, file); err == nil {
			t.Errorf("%s lets anything through: %s", p, out)
		}
	}
}

// engine is one of the programs that become a machine's Ignition.
type engine struct{ name, path, spec, agent string }

func engines(t *testing.T) []engine {
	return []engine{
		{"Ignition 2.14", program(t, "ignition", "ignition"), "3.3.0", "Ignition/"},
		{"Ignition 2.27", part(t, "ignition"), "3.6.0", "Ignition/"},
	}
}

// TestEngineBringsWhatTheConfigSays fetches each rendering from our server and lets Ignition's own engine write it into
// a folder; what stands there is compared with the neutral config.
func TestEngineBringsWhatTheConfigSays(t *testing.T) {
	judges(t)
	if os.Getuid() != 0 {
		t.Fatal("Ignition's engine makes users and owners: run as root")
	}
	a := all(t)
	for _, e := range engines(t) {
		t.Run(e.name, func(t *testing.T) {
			n, left := 0, 0
			t.Run("cases", func(t *testing.T) { // ends when all have
				for i, j := range a.cases {
					if !ignition.CanRead(e.spec, ignition.SpecOf(j.doc)) {
						continue
					}
					if reason := needsMachine(j.config); reason != "" {
						left++
						continue
					}
					n++
					t.Run(j.name, func(t *testing.T) {
						t.Parallel() // each waits for the server's second answer
						path := fmt.Sprintf("/%s-%d.ign", strings.ReplaceAll(e.name, " ", "-"), i)
						a.add(map[string]string{path: string(j.doc)})
						root := apply(t, e, j, a.server.URL+path)
						if t.Failed() {
							return
						}
						compare(t, root, j)
					})
				}
			})
			t.Logf("%s applied %d renderings; %d need disks or systemd as the first process", e.name, n, left)
			if n < 5*left {
				t.Errorf("only %d renderings were applied", n)
			}
			for _, h := range a.requests {
				version, ok := ignition.Negotiate(h.Get("Accept"))
				if !ok || !strings.HasPrefix(h.Get("User-Agent"), e.agent) || version != e.spec {
					t.Fatalf("Accept %q, User-Agent %q: we read %q, want %s", h.Get("Accept"), h.Get("User-Agent"), version, e.spec)
				}
			}
			for path, times := range a.asked {
				if strings.HasSuffix(path, ".ign") && times != 2 {
					t.Errorf("%s was asked for %d times; after one 503 comes one more", path, times)
				}
			}
			a.requests = nil
		})
	}
}

// needsMachine says why a rendering cannot be applied to a folder.
func needsMachine(c *machineconfig.Config) string {
	if len(c.Storage.LUKS) > 0 {
		return "the stage files wants the keys that the stage disks has written"
	}
	for _, u := range c.Units {
		if at := strings.IndexByte(u.Name, '@'); at > 0 && u.Name[at+1] != '.' && u.Enabled != nil && *u.Enabled {
			return "Ignition asks systemd for its version to enable an instance"
		}
	}
	return ""
}

// apply runs the stages fetch and files as in an initramfs, with a first document that only names ours.
func apply(t *testing.T, e engine, j judged, url string) string {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		must(t, os.Chmod(d, 0o755)) // the engine writes SSH keys as the user
	}
	root := filepath.Join(dir, "root")
	for _, d := range []string{"etc/selinux", "etc/systemd/system", "var/tmp", "run", "tmp", "home", "usr/bin"} {
		must(t, os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	for _, f := range []string{"passwd", "group", "shadow", "gshadow", "login.defs"} {
		b, err := os.ReadFile("/etc/" + f)
		must(t, err)
		write(t, filepath.Join(root, "etc", f), string(b), 0o600)
	}
	addGroups(t, root, j.config)
	write(t, filepath.Join(root, "etc/selinux/config"), "SELINUX=disabled\nSELINUXTYPE=targeted\n", 0o644)
	write(t, filepath.Join(root, "etc/profile"), "# the OS's own\n", 0o644)
	for _, u := range j.config.Units { // what is turned off has to be there and on
		if u.Enabled != nil && !*u.Enabled && u.Contents == "" {
			write(t, filepath.Join(root, "usr/lib/systemd/system", u.Name), "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n", 0o644)
			wants := filepath.Join(root, "etc/systemd/system/multi-user.target.wants")
			must(t, os.MkdirAll(wants, 0o755))
			must(t, os.Symlink("/usr/lib/systemd/system/"+u.Name, filepath.Join(wants, u.Name)))
		}
	}
	write(t, filepath.Join(dir, "stub/setfiles"), "#!/bin/sh\nexit 0\n", 0o755)
	first := filepath.Join(dir, "first.ign")
	write(t, first, `{"ignition":{"version":"3.0.0","config":{"replace":{"source":"`+url+`"}}}}`, 0o600)
	env := []string{"IGNITION_CONFIG_FILE=" + first, "PATH=" + filepath.Join(dir, "stub") + ":" + os.Getenv("PATH")}
	for _, stage := range []string{"fetch", "files"} {
		out, err := run(dir, env, e.path, "-platform", "file", "-root", root, "-log-to-stdout", "-config-cache", filepath.Join(dir, "cache"),
			"-state-file", filepath.Join(dir, "state"), "-neednet", filepath.Join(dir, "neednet"), "-stage", stage)
		if err != nil {
			t.Errorf("stage %s: %v\n%s", stage, err, tail(out))
			return root
		}
	}
	// What systemd does at every boot with the stages of volatile files.
	if confs, _ := filepath.Glob(filepath.Join(root, "etc/tmpfiles.d/slipway-*.conf")); len(confs) > 0 {
		argv := []string{program(t, "systemd-tmpfiles", "systemd"), "--create", "--root=" + root}
		if out, err := run(dir, nil, append(argv, confs...)...); err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("%v\n%s", err, out)
		}
	}
	return root
}

// addGroups adds the groups that a real OS has.
func addGroups(t *testing.T, root string, c *machineconfig.Config) {
	b, err := os.ReadFile(filepath.Join(root, "etc/group"))
	must(t, err)
	have, gid := string(b), 61000
	var want []string
	for _, u := range c.Users {
		want = append(append(want, u.Groups...), u.PrimaryGroup)
	}
	for _, g := range want {
		isOurs := slices.ContainsFunc(c.Groups, func(x machineconfig.Group) bool { return x.Name == g })
		if g != "" && !isOurs && !strings.Contains("\n"+have, "\n"+g+":") {
			have += fmt.Sprintf("%s:x:%d:\n", g, gid)
			gid++
		}
	}
	write(t, filepath.Join(root, "etc/group"), have, 0o644)
}

func compare(t *testing.T, root string, j judged) {
	ids := readIDs(t, root)
	for _, f := range j.config.Files {
		compareFile(t, root, j, f, ids)
	}
	if a := j.config.Activation; a != nil {
		for _, f := range a.Files {
			compareFile(t, root, j, f, ids)
		}
		if a.Prelude != nil && read(t, root, "/etc/prelude") != "it came" {
			t.Error("the prelude was not merged")
		}
	}
	for _, d := range j.config.Dirs {
		if s := stat(t, root, d.Path); s != nil && (!s.IsDir() || perm(s) != uint32(d.Mode.Or(0o755))) {
			t.Errorf("%s has mode %o, want %s", d.Path, perm(s), d.Mode.Or(0o755))
		}
	}
	for _, l := range j.config.Links {
		if l.Hard {
			x, y := stat(t, root, l.Path), stat(t, root, l.Target)
			if x != nil && y != nil && !os.SameFile(x, y) {
				t.Errorf("%s is not the same file as %s", l.Path, l.Target)
			}
		} else if to, err := os.Readlink(filepath.Join(root, l.Path)); err != nil || to != l.Target {
			t.Errorf("%s leads to %q, %v", l.Path, to, err)
		}
	}
	compareUnits(t, root, j)
	compareUsers(t, root, j)
	if h := j.config.Host.Hostname; h != "" && strings.TrimSpace(read(t, root, "/etc/hostname")) != h {
		t.Errorf("/etc/hostname holds %q", read(t, root, "/etc/hostname"))
	}
	if u := j.config.PhoneHome.URL; u != "" {
		if got := read(t, root, "/etc/slipway/report-url"); got != j.expand(u)+"\n" {
			t.Errorf("the report goes to %q", got)
		}
		if s := stat(t, root, "/etc/slipway/report-url"); s != nil && perm(s) != 0o600 {
			t.Errorf("report-url has mode %o", perm(s))
		}
	}
}

func compareFile(t *testing.T, root string, j judged, f machineconfig.File, ids map[string]uint32) {
	path := f.Path
	if rest, ok := strings.CutPrefix(path, "/var/run/"); ok {
		path = "/run/" + rest
	}
	want := j.expand(f.Text)
	switch {
	case f.Secret != "":
		want = j.values[f.Secret]
	case f.Remote != nil:
		want = j.remote[strings.TrimPrefix(f.Remote.URL, f.Remote.URL[:strings.Index(f.Remote.URL, "/remote/")])]
	case f.Base64 != "":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(f.Base64), ""))
		must(t, err)
		want = string(b)
	}
	got := read(t, root, path)
	if f.Append && !strings.HasSuffix(got, want) || !f.Append && got != want {
		t.Errorf("%s: %s", path, cmp.Diff(want, got))
	}
	s := stat(t, root, path)
	if s == nil {
		return
	}
	if perm(s) != uint32(f.Mode.Or(0o644)) {
		t.Errorf("%s has mode %o, want %s", path, perm(s), f.Mode.Or(0o644))
	}
	if id := ids[f.Owner]; f.Owner != "" && s.Sys().(*syscall.Stat_t).Uid != id {
		t.Errorf("%s belongs to %d, want %s (%d)", path, s.Sys().(*syscall.Stat_t).Uid, f.Owner, id)
	}
}

func compareUnits(t *testing.T, root string, j judged) {
	presets := read(t, root, "/etc/systemd/system-preset/20-ignition.preset")
	for _, u := range j.config.Units {
		file := "/etc/systemd/system/" + u.Name
		if u.Masked {
			if to, err := os.Readlink(filepath.Join(root, file)); err != nil || to != "/dev/null" {
				t.Errorf("%s is not masked: %q, %v", u.Name, to, err)
			}
		} else if u.Contents != "" && read(t, root, file) != j.expand(u.Contents) {
			t.Errorf("%s: %s", u.Name, cmp.Diff(j.expand(u.Contents), read(t, root, file)))
		}
		for _, d := range u.DropIns {
			if got := read(t, root, file+".d/"+d.Name); got != j.expand(d.Contents) {
				t.Errorf("%s %s holds %q", u.Name, d.Name, got)
			}
		}
		if u.Enabled != nil {
			line := map[bool]string{true: "enable ", false: "disable "}[*u.Enabled] + u.Name
			if !strings.Contains("\n"+presets, "\n"+line+"\n") {
				t.Errorf("%q is not among the presets:\n%s", line, presets)
			}
		}
	}
}

func compareUsers(t *testing.T, root string, j judged) {
	passwd, shadow, group := read(t, root, "/etc/passwd"), read(t, root, "/etc/shadow"), read(t, root, "/etc/group")
	for _, u := range j.config.Users {
		line := lineOf(passwd, u.Name)
		f := strings.Split(line, ":")
		if len(f) < 7 || u.UID != nil && f[2] != fmt.Sprint(*u.UID) || u.Gecos != "" && f[4] != u.Gecos || u.Shell != "" && f[6] != u.Shell || u.Home != "" && f[5] != u.Home {
			t.Errorf("%s is %q", u.Name, line)
			continue
		}
		hash := u.PasswordHash
		if v, ok := j.values[hash]; ok {
			hash = v
		} else {
			hash = j.expand(hash)
		}
		if u.LockPassword != nil && *u.LockPassword && hash != "" {
			hash = "!" + hash
		}
		if s := strings.Split(lineOf(shadow, u.Name), ":"); hash != "" && (len(s) < 2 || s[1] != hash) {
			t.Errorf("the password of %s is %q, want %q", u.Name, lineOf(shadow, u.Name), hash)
		}
		for _, k := range u.SSHKeys {
			keys, _ := filepath.Glob(filepath.Join(root, f[5], ".ssh/authorized_keys*"))
			more, _ := filepath.Glob(filepath.Join(root, f[5], ".ssh/authorized_keys.d/*"))
			if !slices.ContainsFunc(append(keys, more...), func(p string) bool {
				b, err := os.ReadFile(p)
				return err == nil && strings.Contains(string(b), k)
			}) {
				t.Errorf("%s has no key %q", u.Name, k)
			}
		}
		for _, g := range u.Groups {
			if members := strings.Split(lineOf(group, g), ":"); len(members) < 4 || !slices.Contains(strings.Split(members[3], ","), u.Name) {
				t.Errorf("%s is not in the group %s: %q", u.Name, g, lineOf(group, g))
			}
		}
		if u.Sudo != "" {
			file := "/etc/sudoers.d/" + strings.ReplaceAll(u.Name, ".", "_")
			if s := stat(t, root, file); s != nil && perm(s) != 0o440 || read(t, root, file) != u.Name+" "+u.Sudo+"\n" {
				t.Errorf("%s holds %q", file, read(t, root, file))
			}
		}
	}
	for _, g := range j.config.Groups {
		if f := strings.Split(lineOf(group, g.Name), ":"); len(f) < 3 || g.GID != nil && f[2] != fmt.Sprint(*g.GID) {
			t.Errorf("the group %s is %q", g.Name, f)
		}
	}
}

func lineOf(text, name string) string {
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, name+":") {
			return strings.TrimSpace(l)
		}
	}
	return ""
}

func readIDs(t *testing.T, root string) map[string]uint32 {
	ids := map[string]uint32{}
	for l := range strings.Lines(read(t, root, "/etc/passwd")) {
		var id uint32
		f := strings.Split(l, ":")
		if len(f) > 2 {
			if _, err := fmt.Sscan(f[2], &id); err == nil {
				ids[f[0]] = id
			}
		}
	}
	return ids
}

func read(t *testing.T, root, path string) string {
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	return string(b)
}

func stat(t *testing.T, root, path string) os.FileInfo {
	s, err := os.Stat(filepath.Join(root, path))
	if err != nil {
		t.Error(err)
		return nil
	}
	return s
}

// perm is the mode as chmod writes it.
func perm(s os.FileInfo) uint32 { return s.Sys().(*syscall.Stat_t).Mode & 0o7777 }

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

func tail(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
