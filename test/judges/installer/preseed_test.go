package installer

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"slipway.dev/slipway/installer/preseed"
	"slipway.dev/slipway/machineconfig"
)

// answers reads a preseed file as Debian's installer does.
func answers(doc []byte) map[string]string {
	out := map[string]string{}
	joined := strings.ReplaceAll(string(doc), "\\\n", " ")
	for line := range strings.Lines(joined) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 4)
		if strings.HasPrefix(line, "#") || len(f) < 3 {
			continue
		}
		out[f[1]] = ""
		if len(f) == 4 {
			out[f[1]] = f[3]
		}
	}
	return out
}

func TestDebconfTakesEveryPreseedFile(t *testing.T) {
	judge(t, map[string]string{"debconf-set-selections": "debconf"})
	each(t, preseed.New(), func(t *testing.T, _ machineconfig.Target, _ *machineconfig.Config, r *machineconfig.Rendered) {
		cmd := exec.Command("debconf-set-selections", "-c", write(t, "preseed.cfg", inject(t, r.Documents[0].Data)))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %s", err, out)
		}
	})
}

func TestCommandsOfPreseedAreScripts(t *testing.T) {
	judge(t, map[string]string{"dash": "dash", "shellcheck": "shellcheck", "busybox": "busybox-static"})
	all := newShellScripts(t, "#!/bin/sh", []string{"dash", "-n"}, []string{"busybox", "sh", "-n"})
	each(t, preseed.New(), func(t *testing.T, _ machineconfig.Target, _ *machineconfig.Config, r *machineconfig.Rendered) {
		for question, text := range answers(inject(t, r.Documents[0].Data)) {
			if !strings.HasSuffix(question, "_command") {
				continue
			}
			all.add(t, text)
		}
	})
	all.judge(t)
}

// TestTheLateCommandPlantsTheSeed runs the command in a root that has what Debian's installer has, and has cloud-init
// judge what it leaves on the installed system.
func TestTheLateCommandPlantsTheSeed(t *testing.T) {
	judge(t, map[string]string{"unshare": "util-linux", "busybox": "busybox-static", "cloud-init": "cloud-init"})
	if os.Getuid() != 0 {
		t.Fatal("needs root for a root directory of its own")
	}
	each(t, preseed.New(), func(t *testing.T, target machineconfig.Target, c *machineconfig.Config, r *machineconfig.Rendered) {
		root := t.TempDir()
		late := answers(inject(t, r.Documents[0].Data))["preseed/late_command"]
		const script = `
set -e
R=$1
mkdir -p $R/usr $R/bb $R/stub $R/tmp $R/dev $R/target/etc/cloud/cloud.cfg.d $R/target/etc/network $R/target/var/lib $R/target/var/log $R/target/tmp $R/var/log
: > $R/var/log/syslog
mount --bind /usr $R/usr; for d in bin sbin lib lib64; do ln -sfn usr/$d $R/$d; done; : > $R/dev/null
for a in sh mkdir cp rm chmod printf echo cat test sleep; do ln -s /usr/bin/busybox $R/bb/$a; done
printf '#!/bin/sh\necho "in-target $*" >> /log\n' > $R/stub/in-target
printf '#!/bin/sh\n[ "$1" = --help ] && exit 1; out=; while [ $# -gt 1 ]; do [ "$1" = -O ] && out=$2; shift; done; echo "wget $1" >> /log; [ "$out" = /dev/null ] || cp "/seed/${1##*/}" "$out"\n' > $R/stub/wget
chmod 755 $R/stub/*
exec chroot $R /bb/sh -c "PATH=/stub:/bb; $2"
`
		for _, d := range r.Documents[1:] {
			name := root + "/seed/" + d.Name
			if d.Path != "" {
				name = root + d.Path
			}
			if err := os.MkdirAll(name[:strings.LastIndexByte(name, '/')], 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, inject(t, d.Data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		run(t, "", "unshare", "--mount", "bash", "-c", script, "bash", root, late)
		home := root + "/target/var/lib/cloud/seed/nocloud/"
		for _, d := range r.Documents[1:] {
			if strings.HasPrefix(d.Name, "script-") {
				continue // it is run and taken away
			}
			got, err := os.ReadFile(home + strings.TrimPrefix(d.Name, "seed-"))
			if err != nil || string(got) != string(inject(t, d.Data)) {
				t.Errorf("%s is not what was rendered: %v", d.Name, err)
			}
			if s, err := os.Stat(home + strings.TrimPrefix(d.Name, "seed-")); err != nil || s.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", d.Name, s, err)
			}
		}
		cfg, _ := os.ReadFile(root + "/target/etc/cloud/cloud.cfg.d/99-slipway.cfg")
		if !strings.HasPrefix(string(cfg), "datasource_list: [ NoCloud ]\n") {
			t.Errorf("99-slipway.cfg: %q", cfg)
		}
		isOn := c.PhoneHome.Enabled == nil || *c.PhoneHome.Enabled
		if log, _ := os.ReadFile(root + "/log"); isOn && !strings.Contains(string(log), "wget http://192.0.2.1/r/0123456789abcdef?step=installed") {
			t.Errorf("no report: %s", log)
		}
	})
}
