package installer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"slipway.dev/slipway/machineconfig"
)

// sh runs a script with the shell that has no extensions.
func sh(t *testing.T, script string, args ...string) string {
	t.Helper()
	out, err := exec.Command("/bin/sh", append([]string{"-euc", script, "sh"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, script)
	}
	return string(out)
}

func TestGrubSnippetsChangeTheArguments(t *testing.T) {
	before := "GRUB_CMDLINE_LINUX='quiet a=1'; GRUB_CMDLINE_LINUX_DEFAULT='x quiet quiet splash quietly'\n"
	got := sh(t, before+GrubWithout([]string{"quiet", "a=1"})+"\n"+GrubWith([]string{"panic=30", `b='c d'\1`})+"\n"+
		`for v in $GRUB_CMDLINE_LINUX; do printf '%s\n' "$v"; done; echo --; for v in $GRUB_CMDLINE_LINUX_DEFAULT; do echo $v; done`)
	if want := "panic=30\nb='c\nd'\\1\n--\nx\nsplash\nquietly\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPickFindsTheDisk runs the function on a made-up /sys.
func TestPickFindsTheDisk(t *testing.T) {
	root := t.TempDir()
	disks := []struct{ name, removable, size, serial, wwn, model, rotational string }{
		{"loop0", "0", "99999999", "L", "", "", "0"},
		{"sda", "1", "99999999", "USB", "0xdead", "Stick", "0"},
		{"sdb", "0", "0", "EMPTY", "", "", "0"},
		{"sdc", "0", "4194304", "it's 1", "naa.5000c500", "BIG DISK", "1"},
		{"nvme0n1", "0", "41943040", "N1", "eui.0025", "Fast", "0"},
		{"sdd", "0", "419430400", "D", "", "BIG DISK", "1"},
	}
	for _, d := range disks {
		dir := root + "/block/" + d.name
		for name, text := range map[string]string{
			"removable": d.removable, "size": d.size, "serial": d.serial, "wwid": d.wwn, "device/model": d.model, "queue/rotational": d.rotational,
		} {
			p := dir + "/" + name
			if err := os.MkdirAll(p[:strings.LastIndexByte(p, '/')], 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	no, yes := false, true
	pick := strings.ReplaceAll(Pick, "/sys/block", root+"/block")
	for want, sel := range map[string]machineconfig.DeviceSelector{
		"/dev/nvme0n1":    {}, // the first by name that is no stick and not empty
		"/dev/sdc":        {Serial: "it's 1"},
		"none":            {Serial: "it's"},
		"none ":           {Serial: "USB"},
		"none  ":          {Serial: "EMPTY"},
		"/dev/sdc ":       {WWN: "0x5000C500"},
		"/dev/nvme0n1 ":   {WWN: "0025"},
		"/dev/sdc  ":      {Model: "BIG"},
		"/dev/sdd":        {Model: "BIG", MinGiB: 3},
		"/dev/sdd ":       {MinGiB: 200},
		"none   ":         {MinGiB: 201},
		"/dev/sdc   ":     {MaxGiB: 2},
		"none    ":        {MaxGiB: 1},
		"/dev/sdc    ":    {Rotational: &yes},
		"/dev/nvme0n1  ":  {Rotational: &no, MinGiB: 20, MaxGiB: 20},
		"/dev/sdd  ":      {Path: "/dev/sdd", Model: "DISK"},
		"none     ":       {Path: "/dev/sdd", Serial: "it's 1"},
		"/dev/sdd   ":     {Choose: machineconfig.Largest},
		"/dev/sdc     ":   {Choose: machineconfig.Smallest},
		"/dev/nvme0n1   ": {Choose: machineconfig.Fastest},
		"/dev/sdd    ":    {Choose: machineconfig.Fastest, Model: "BIG"},
		"none      ":      {Choose: machineconfig.Largest, MinGiB: 201},
	} {
		for name, text := range map[string]string{"as lines": pick, "joined": strings.ReplaceAll(pick, "\n", " ")} {
			got := strings.TrimSpace(sh(t, "udevadm() { :; }\n"+text+"\n"+PickCall(sel)+" || echo none"))
			if got != strings.TrimSpace(want) {
				t.Errorf("%s, %s: got %s, want %s", Describe(sel), name, got, want)
			}
		}
	}
}

func TestGuestTargets(t *testing.T) {
	for release, want := range map[string]string{"debian 12": "22.4.2", "rocky 9.4": "24.4", "ubuntu 24.04": "24.4", "debian 99": oldest} {
		os, version, _ := strings.Cut(release, " ")
		got := GuestTarget(machineconfig.Target{OS: os, Release: version, InitrdPath: "/preseed.cfg"})
		if got.Tool != want || got.InitrdPath != SeedFolder+"user-data" {
			t.Errorf("%s: %+v", release, got)
		}
	}
}

func TestWhoDoesNotReportHasNoCommand(t *testing.T) {
	no := false
	for _, p := range []machineconfig.PhoneHome{{}, {URL: "u", Enabled: &no}} {
		if got := Curl.Report(&machineconfig.Config{PhoneHome: p}, "up", 1); got != "" {
			t.Errorf("%+v: %q", p, got)
		}
	}
}

// TestTheNextInstanceIsAsked runs what installers ask with, in the shells that they have. The instance of the boot is gone for good.
func TestTheNextInstanceIsAsked(t *testing.T) {
	var busy atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" && busy.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "got "+r.URL.RequestURI())
	}))
	defer server.Close()
	const gone = "http://127.0.0.1:1/boot/key"
	for _, shell := range [][]string{{"bash", "-ec"}, {"busybox", "sh", "-c"}} {
		for _, p := range []Program{Curl, Wget} {
			for _, c := range []struct{ urls, want string }{
				{server.URL + "/boot/key", "got /boot/key?step=installed"},
				{gone + " " + server.URL + "/boot/key", "got /boot/key?step=installed"},
				{gone + " " + server.URL + "/busy " + gone, "got /busy?step=installed"}, // in its third round
				{gone, ""},
			} {
				busy.Store(0)
				file := t.TempDir() + "/answer"
				command := strings.ReplaceAll(p.ask(c.urls, "?step=installed", file, 3), "sleep 5", "sleep 0")
				out, err := exec.CommandContext(t.Context(), shell[0], append(shell[1:], command)...).CombinedOutput()
				if (err == nil) != (c.want != "") {
					t.Errorf("%v %s at %s: %v: %s", shell, p, c.urls, err, out)
				}
				if got, _ := os.ReadFile(file); string(got) != c.want {
					t.Errorf("%v %s at %s: the answer is %q: %s", shell, p, c.urls, got, out)
				}
			}
		}
	}
}

// TestEachCommandRunsAsItIsWritten runs scripts of several commands, of which one could end or swallow the others.
func TestEachCommandRunsAsItIsWritten(t *testing.T) {
	for _, odd := range []string{
		"exit 0", "echo odd # comment", "cd /proc", "echo 'a\nb'", "sleep 0 &", "set +e; false; true", "cat <<EOF\nx\nEOF", "return 0 2>/dev/null || true", "trap 'echo trapped' EXIT",
		"echo a \\", "exec true", "echo(){ :; }; echo gone", "if true; then echo b; fi", "\n\n", "echo ')'", "shopt -s extglob",
	} {
		script := Script([]machineconfig.Command{{Shell: "echo first"}, {Shell: odd}, {Argv: []string{"echo", "la$t", "it's"}}})
		file := t.TempDir() + "/s"
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("bash", "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%q: bash -n: %s", odd, out)
		}
		out, err := exec.Command("bash", file).CombinedOutput()
		if text := string(out); err != nil || !strings.HasPrefix(text, "first\n") || !strings.HasSuffix(text, "la$t it's\n") {
			t.Errorf("%q: %v: %s", odd, err, out)
		}
	}
	for _, bad := range []string{"false", "echo 'open", "exit 3", "false\ntrue", "if true; then"} {
		script := Script([]machineconfig.Command{{Shell: bad}, {Shell: "echo more"}})
		out, err := exec.Command("bash", "-c", script).CombinedOutput()
		if err == nil || strings.Contains(string(out), "more\n") {
			t.Errorf("%q: it went on: %s", bad, out)
		}
	}
}
