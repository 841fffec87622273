package installer

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"slipway.dev/slipway/installer/kickstart"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// scripts returns the bodies of the sections of a kickstart file, by their headers. Of sections with the same header each
// further one has its number behind it.
func scripts(ks []byte) map[string]string {
	out := map[string]string{}
	header := ""
	for line := range strings.Lines(string(ks)) {
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case first == "%end":
			header = ""
		case header == "" && strings.HasPrefix(first, "%") && first != "%include":
			first := strings.TrimSpace(line)
			header = first
			for n := 2; out[header] != ""; n++ {
				header = fmt.Sprint(first, " ", n)
			}
		case header != "":
			out[header] += line
		}
	}
	return out
}

func run(t *testing.T, stdin string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestKickstartSatisfiesPykickstart(t *testing.T) {
	judge(t, nil)
	validator := os.Getenv("SLIPWAY_KSVALIDATOR")
	if validator == "" {
		t.Skip("pykickstart is not in Debian: set SLIPWAY_KSVALIDATOR to a ksvalidator program to have it judge")
	}
	versions := map[string]string{"rocky 9": "RHEL9", "almalinux 8.10": "RHEL8", "rhel 10": "RHEL10", "fedora 43": "F43"}
	seen := map[string]bool{} // a second per file: what only differs in its scripts is judged once
	each(t, kickstart.New(), func(t *testing.T, target machineconfig.Target, _ *machineconfig.Config, r *machineconfig.Rendered) {
		ks := inject(t, r.Documents[0].Data)
		commands, _, _ := bytes.Cut(ks, []byte("\n%"))
		key := target.String() + string(commands)
		if seen[key] && target.OS != "rocky" {
			return
		}
		seen[key] = true
		out := run(t, "", validator, "-v", versions[target.String()], write(t, "ks.cfg", ks))
		for line := range strings.Lines(out) {
			if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "Checking kickstart file") {
				t.Errorf("ksvalidator says: %s", line)
			}
		}
	})
}

func TestScriptsOfKickstartAreScripts(t *testing.T) {
	judge(t, map[string]string{"bash": "bash", "shellcheck": "shellcheck"})
	all := newShellScripts(t, "#!/bin/bash", []string{"bash", "-n"})
	each(t, kickstart.New(), func(t *testing.T, _ machineconfig.Target, _ *machineconfig.Config, r *machineconfig.Rendered) {
		for header, body := range scripts(inject(t, r.Documents[0].Data)) {
			if strings.HasPrefix(header, "%packages") {
				continue
			}
			all.add(t, body)
		}
	})
	all.judge(t)
}

// tree makes a root in which a script can run as in an installed system: the programs of this machine, and an /etc of
// its own. What Enterprise Linux has and Debian lacks is a stub.
const tree = `
set -e
R=$1
mkdir -p $R/usr $R/proc $R/dev $R/tmp $R/root $R/run $R/var/lib $R/home $R/stub $R/etc/dnf $R/etc/systemd/system $R/etc/sudoers.d
mount --bind /usr $R/usr; mount -o remount,bind,ro $R/usr; mkdir $R/usrlocal; mount --bind $R/usrlocal $R/usr/local
mount -t tmpfs tmpfs $R/dev; mknod $R/dev/null c 1 3; chmod 666 $R/dev/null; ln -s /proc/self/fd $R/dev/fd; ln -s /proc/self/fd/0 $R/dev/stdin
mount -t proc proc $R/proc
for d in bin sbin lib lib64; do ln -sfn usr/$d $R/$d; done
printf 'root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/sbin/nologin\n' > $R/etc/passwd; printf 'root:*:1::::::\n' > $R/etc/shadow
printf 'root:x:0:\ndaemon:x:1:\nwheel:x:10:\nadm:x:4:\n' > $R/etc/group; : > $R/etc/gshadow; : > $R/etc/dnf/dnf.conf
cp /etc/login.defs /etc/nsswitch.conf $R/etc/; mkdir -p $R/etc/default; cp /etc/default/useradd $R/etc/default/
for s in grubby update-ca-trust restorecon; do printf '#!/bin/sh\necho "$0 $*" >> /stub/log\n' > $R/stub/$s; chmod 755 $R/stub/$s; done
printf '#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done; printf "fetched %%s" "$1" > "$out"\n' > $R/stub/curl; chmod 755 $R/stub/curl
printf '#!/bin/sh\ncat >/dev/null\n' > $R/stub/sha256sum; chmod 755 $R/stub/sha256sum
`

func TestThePostScriptMakesTheInstalledSystem(t *testing.T) {
	judge(t, map[string]string{"unshare": "util-linux", "chroot": "coreutils", "systemd-tmpfiles": "systemd", "useradd": "passwd"})
	if os.Getuid() != 0 {
		t.Fatal("needs root for a root directory of its own")
	}
	done := 0
	each(t, kickstart.New(), func(t *testing.T, target machineconfig.Target, c *machineconfig.Config, r *machineconfig.Rendered) {
		if target.OS != "rocky" {
			return // the script differs in nothing that matters here
		}
		done++
		root := t.TempDir()
		post := ""
		for header, body := range scripts(inject(t, r.Documents[0].Data)) {
			if strings.HasPrefix(header, "%post --interpreter=/bin/bash") && strings.HasPrefix(body, "set -euo pipefail\n") {
				post = body // the others are the admin's
			}
		}
		var accounts strings.Builder
		for _, g := range c.Groups {
			if !g.System || g.GID != nil {
				fmt.Fprintf(&accounts, "groupadd %s %s\n", gid(g.GID), g.Name)
			}
		}
		for _, u := range c.Users {
			if !u.System && u.Name != "root" {
				fmt.Fprintf(&accounts, "useradd -m $(getent group %[1]s >/dev/null && echo -g %[1]s) %[1]s\n", u.Name)
			}
		}
		for _, u := range c.Units {
			if u.Contents == "" && !u.Masked {
				fmt.Fprintf(&accounts, "printf '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n' > /etc/systemd/system/%s\n", u.Name)
			}
		}
		script := tree + "\nchroot $R /usr/bin/env -i PATH=/stub:/usr/sbin:/usr/bin SYSTEMD_OFFLINE=1 /bin/bash -c " + late.ShellWord(accounts.String()+"\n/bin/bash /dev/stdin") + "\n" +
			"for f in $R/etc/tmpfiles.d/slipway*; do [ ! -e $f ] || chroot $R systemd-tmpfiles --create ${f#$R}; done\n"
		cmd := exec.Command("unshare", "--mount", "bash", "-c", script, "bash", root)
		cmd.Stdin = strings.NewReader(post)
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, post)
		}
		checkTree(t, root, c)
		if t.Failed() {
			t.Logf("%s", post)
		}
	})
	if done < 30 {
		t.Errorf("only %d cases were run", done)
	}
}

func gid(n *int) string {
	if n == nil {
		return ""
	}
	return "-g " + strconv.Itoa(*n)
}

// at is where a path of the installed system stands.
func at(root, p string) string {
	if rest, ok := strings.CutPrefix(p, "/usr/local/"); ok {
		return filepath.Join(root, "usrlocal", rest)
	}
	return filepath.Join(root, p)
}

func checkTree(t *testing.T, root string, c *machineconfig.Config) {
	t.Helper()
	for i := range c.Files {
		checkFile(t, root, &c.Files[i])
	}
	for _, d := range c.Dirs {
		checkMode(t, root, d.Path, d.Mode.Or(0o755), d.Owner, d.Group)
	}
	for _, l := range c.Links {
		if got, err := os.Readlink(at(root, l.Path)); !l.Hard && got != l.Target {
			t.Errorf("%s points to %q, not %q: %v", l.Path, got, l.Target, err)
		}
	}
	for _, u := range c.Units {
		p := filepath.Join(root, "/etc/systemd/system", u.Name)
		text, err := os.ReadFile(p)
		if u.Masked {
			if to, _ := os.Readlink(p); to != "/dev/null" {
				t.Errorf("%s is not masked", u.Name)
			}
		} else if u.Contents != "" && strings.TrimSpace(string(text)) != strings.TrimSpace(string(inject(t, []byte(u.Contents)))) {
			t.Errorf("%s: %v: %s", u.Name, err, text)
		}
		for _, d := range u.DropIns {
			if _, err := os.Stat(p + ".d/" + d.Name); err != nil {
				t.Error(err)
			}
		}
	}
	for _, u := range c.Users {
		if u.Sudo == "" {
			continue
		}
		p := filepath.Join("/etc/sudoers.d", "slipway-"+strings.ReplaceAll(u.Name, ".", "_"))
		checkMode(t, root, p, 0o440, "", "")
		if text, _ := os.ReadFile(root + p); string(text) != u.Name+" "+u.Sudo+"\n" {
			t.Errorf("%s: %q", p, text)
		}
	}
}

func checkFile(t *testing.T, root string, f *machineconfig.File) {
	t.Helper()
	want := inject(t, []byte(f.Text))
	switch {
	case f.Secret != "":
		want = []byte(value(f.Secret))
	case f.Base64 != "":
		want, _ = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(f.Base64), ""))
	case f.Remote != nil:
		want = []byte("fetched " + f.Remote.URL)
	}
	p := f.Path
	if f.IsVolatile() {
		if f.Append || f.Owner+f.Group != "" {
			p = "/etc/slipway/stage" + f.Path
		}
	} else if !f.Append {
		checkMode(t, root, f.Path, f.Mode.Or(0o644), f.Owner, f.Group)
	}
	got, err := os.ReadFile(at(root, p))
	if err != nil || !bytes.Equal(got, want) && !(f.Append && bytes.HasSuffix(got, want)) {
		t.Errorf("%s: %v\ngot  %q\nwant %q", f.Path, err, got, want)
	}
}

func checkMode(t *testing.T, root, p string, mode machineconfig.Mode, owner, group string) {
	t.Helper()
	s, err := os.Lstat(at(root, p))
	if err != nil {
		t.Error(err)
		return
	}
	st := s.Sys().(*syscall.Stat_t)
	if got := machineconfig.Mode(st.Mode & 0o7777); got != mode {
		t.Errorf("%s has mode %s, not %s", p, got, mode)
	}
	if want := id(t, root, "passwd", owner); st.Uid != want {
		t.Errorf("%s belongs to %d, not %d", p, st.Uid, want)
	}
	if want := id(t, root, "group", group); st.Gid != want {
		t.Errorf("%s is of group %d, not %d", p, st.Gid, want)
	}
}

// id looks a name up in the tree's own files.
func id(t *testing.T, root, file, name string) uint32 {
	t.Helper()
	if name == "" || name == "root" {
		return 0
	}
	text, _ := os.ReadFile(filepath.Join(root, "etc", file))
	for line := range strings.Lines(string(text)) {
		f := strings.Split(line, ":")
		if f[0] == name {
			n, _ := strconv.Atoi(f[2])
			return uint32(n)
		}
	}
	t.Errorf("no %s in %s", name, file)
	return 0
}
