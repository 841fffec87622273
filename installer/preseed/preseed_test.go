package preseed

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig/layer"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/test/corpus"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	withInitrd = machineconfig.Target{OS: "debian", Release: "12", Arch: inventory.X8664, InitrdPath: "/preseed.cfg"}
	fetching   = machineconfig.Target{OS: "debian", Release: "13", Arch: inventory.X8664}
)

func render(t *testing.T, target machineconfig.Target, c *machineconfig.Config) *machineconfig.Rendered {
	t.Helper()
	r, report := New().Render(target, c)
	if report.HasErrors() {
		t.Fatal(report)
	}
	return r
}

// text is all documents of a rendering, with what stands for late values shown as a reference.
func text(r *machineconfig.Rendered) string {
	var b strings.Builder
	for _, d := range r.Documents {
		b.WriteString("-- " + d.Name + " " + d.Path + " --\n" + string(late.Redact(d.Data)))
	}
	return b.String()
}

// outline is text without what package cloudinit has written: that is its own tests' business.
func outline(r *machineconfig.Rendered) string {
	out := machineconfig.Rendered{Documents: append([]machineconfig.Document{}, r.Documents...)}
	for i := range out.Documents[1:] {
		out.Documents[i+1].Data = nil
	}
	return text(&out)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	p := "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(p, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", p, d)
	}
}

func full() *machineconfig.Config {
	uid, yes := 1001, true
	return &machineconfig.Config{
		Host: machineconfig.HostIdentity{InstanceID: "i-1", Hostname: "node-1", Domain: "lab.example", Locale: "de_DE.UTF-8", Keymap: "de", Timezone: "Europe/Berlin"},
		Boot: machineconfig.Boot{RootDevice: machineconfig.DeviceSelector{Serial: "it's 1", MinGiB: 100, Rotational: &yes}, PowerAfter: machineconfig.PowerOff},
		Network: machineconfig.Network{DNS: []string{"192.0.2.53"}, Interfaces: []machineconfig.Interface{{Name: "eno1", MAC: "52:54:00:12:34:56", L3: machineconfig.L3{
			Addresses: []string{"192.0.2.7/26"}, Routes: []machineconfig.Route{{To: "0.0.0.0/0", Via: "192.0.2.1"}},
		}}}},
		Storage:   machineconfig.Storage{Layout: "lvm"},
		Users:     []machineconfig.User{{Name: "root", PasswordHash: "secret://root"}, {Name: "ada", UID: &uid, Groups: []string{"sudo"}, PasswordHash: "secret://ada"}},
		Files:     []machineconfig.File{{Path: "/etc/motd", Content: machineconfig.Content{Text: "hello\n"}}},
		Kernel:    machineconfig.Kernel{Args: []string{"panic=30"}, RemoveArgs: []string{"quiet"}},
		Time:      machineconfig.Time{NTPServers: []string{"ntp.example", "ntp2.example"}},
		Packages:  machineconfig.Packages{Install: []string{"curl"}, Repos: []machineconfig.Repo{{ID: "debian", URL: "https://mirror.example/debian", Suite: "bookworm"}}},
		PhoneHome: machineconfig.PhoneHome{URL: late.Marker("session://report")},
	}
}

func custom() *machineconfig.Config {
	return &machineconfig.Config{
		Boot: machineconfig.Boot{RootDevice: machineconfig.DeviceSelector{Path: "/dev/vda"}},
		Storage: machineconfig.Storage{
			Disks: []machineconfig.Disk{{Name: "a", WipeTable: true, Partitions: []machineconfig.Partition{
				{Label: "esp", SizeMiB: 512, TypeGUID: strings.ToUpper(espGUID)}, {Label: "swap", SizeMiB: 1024}, {Label: "pv"},
			}}},
			LVM:         []machineconfig.VolumeGroup{{Name: "vg0", Devices: []string{"pv"}, LVs: []machineconfig.LogicalVolume{{Name: "root", SizeMiB: 2000}, {Name: "var"}}}},
			Filesystems: []machineconfig.Filesystem{{Device: "swap", Format: "swap"}, {Device: "vg0/root", Format: "ext4", MountPoint: "/", Label: "ROOT"}, {Device: "vg0/var", Format: "xfs", MountPoint: "/var", MountOptions: []string{"noatime"}}},
		},
	}
}

func TestGolden(t *testing.T) {
	golden(t, "full-initrd", outline(render(t, withInitrd, full())))
	golden(t, "full-fetched", outline(render(t, fetching, full())))
	golden(t, "recipe", outline(render(t, withInitrd, custom())))
	golden(t, "empty", outline(render(t, withInitrd, &machineconfig.Config{})))
}

func TestTheSeedIsFetchedOnlyWithoutAnInitrd(t *testing.T) {
	for _, d := range render(t, withInitrd, full()).Documents {
		if d.Path == "" {
			t.Errorf("%s has no place in the initrd", d.Name)
		}
		if refs := late.References(d.Data); strings.Contains(strings.Join(refs, " "), "session://config") {
			t.Errorf("%s fetches: %v", d.Name, refs)
		}
	}
	r := render(t, fetching, full())
	for _, d := range r.Documents {
		if d.Path != "" {
			t.Errorf("%s stands in the initrd, which is not ours", d.Name)
		}
	}
	if !strings.Contains(text(r), "'«session://config/seed-user-data»'") {
		t.Error("nothing fetches the seed")
	}
	if strings.Contains(text(r), "netcfg/get_ipaddress") {
		t.Error("says a network that is up before the file is read")
	}
}

func TestWhatTheInstallerCannotMakeIsLeftToCloudInit(t *testing.T) {
	low, lock := 999, true
	for name, u := range map[string]machineconfig.User{
		"without a password":     {Name: "u"},
		"with a locked password": {Name: "u", PasswordHash: "$6$x", LockPassword: &lock},
		"of the system":          {Name: "u", PasswordHash: "$6$x", System: true},
		"with a home":            {Name: "u", PasswordHash: "$6$x", Home: "/srv/u"},
		"with a low number":      {Name: "u", PasswordHash: "$6$x", UID: &low},
		"in a group of its own":  {Name: "u", PasswordHash: "$6$x", Groups: []string{"ops"}},
		"that is root":           {Name: "root", PasswordHash: "$6$x"},
	} {
		got := text(render(t, withInitrd, &machineconfig.Config{Users: []machineconfig.User{u}}))
		if !strings.Contains(got, "passwd/make-user boolean false") || strings.Contains(got, "passwd/username") {
			t.Errorf("the installer makes a user %s", name)
		}
		if !strings.Contains(got, "-- seed-user-data") {
			t.Errorf("nobody makes a user %s", name)
		}
	}
}

func TestRefusesWhatARecipeCannotSay(t *testing.T) {
	for path, change := range map[string]func(*machineconfig.Storage){
		"/storage/disks/b":                         func(s *machineconfig.Storage) { s.Disks = append(s.Disks, machineconfig.Disk{Name: "b"}) },
		"/storage/layout":                          func(s *machineconfig.Storage) { s.Layout = "lvm" },
		"/storage/disks/a/partitions/esp/startMiB": func(s *machineconfig.Storage) { s.Disks[0].Partitions[0].StartMiB = 1 },
		"/storage/disks/a/partitions/esp/guid":     func(s *machineconfig.Storage) { s.Disks[0].Partitions[0].GUID = "x" },
		"/storage/disks/a/partitions/esp/number":   func(s *machineconfig.Storage) { s.Disks[0].Partitions[0].Number = 2 },
		"/storage/lvm/vg1":                         func(s *machineconfig.Storage) { s.LVM = append(s.LVM, machineconfig.VolumeGroup{Name: "vg1"}) },
		"/storage/filesystems/vg0~1root":           func(s *machineconfig.Storage) { s.Filesystems[1].UUID = "x" },
		"/storage/filesystems/nowhere":             func(s *machineconfig.Storage) { s.Filesystems[0].Device = "nowhere" },
		"/storage/disks/a":                         func(s *machineconfig.Storage) { s.Filesystems[1].MountPoint = `/a"b` },
	} {
		c := custom()
		change(&c.Storage)
		_, report := New().Render(withInitrd, c)
		found := false
		for _, f := range report {
			found = found || f.Path == path && f.Severity == machineconfig.SeverityError && f.Hint != ""
		}
		if !found {
			t.Errorf("no finding at %s: %v", path, report)
		}
	}
}

func TestLineBreaksInAnswersAreRefused(t *testing.T) {
	for _, odd := range []string{"Ada\nd-i preseed/late_command string rm -rf /", `Ada\nL`, `Ada\`, "Ada\x7f"} {
		c := full()
		c.Users[1].Gecos = odd
		if r, report := New().Render(withInitrd, c); r != nil || !report.HasErrors() {
			t.Errorf("%q is an answer", odd)
		}
		c = full()
		c.Boot.RootDevice.Serial = odd
		if r, report := New().Render(withInitrd, c); (r != nil) != (odd == `Ada\`) {
			t.Errorf("%q is in a command: %v", odd, report)
		}
	}
}

func TestOwnDocument(t *testing.T) {
	const ok = "# mine\nd-i time/zone string Etc/UTC\nd-i preseed/late_command string echo one; \\\n# no\n  echo two;\n"
	c := &machineconfig.Config{
		Host: machineconfig.HostIdentity{Hostname: "node-1"}, PhoneHome: full().PhoneHome, Kernel: machineconfig.Kernel{Args: []string{"x"}},
		Document: &machineconfig.Passthrough{Format: "preseed", Data: []byte(ok)},
	}
	r, report := New().Render(withInitrd, c)
	if r == nil || len(report) != 1 || report[0].Path != "/kernel/args" {
		t.Fatal(report)
	}
	golden(t, "document", text(r))
	for bad, source := range map[string]string{
		"d-i time/zone":                               "document:1:1",
		"\n\nd-i time/zone strin x":                   "document:3:1",
		"d-i a/b strin x":                             "document:1:1",
		"d-i a/b boolean yes":                         "document:1:1",
		" # comment of mine":                          "document:1:1",
		"d-i a/b string c\nd-i c/d string e \\":       "document:2:1",
		"d-i a/b string \\\n# x\n\n c\nd-i c/d text1": "document:5:1",
	} {
		c.Document.Data = []byte(bad)
		r, report := New().Render(withInitrd, c)
		if r != nil || !report.HasErrors() || report[0].Source != source || report[0].Hint == "" {
			t.Errorf("%q: %+v", bad, report)
		}
	}
}

// TestALateCommandRunsAsItIsWritten runs the composed command as the installer does: sh -c.
func TestALateCommandRunsAsItIsWritten(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"tabs":               {"d-i\tpreseed/late_command\tstring\tin-target systemctl enable ssh; in-target touch /etc/done", "in-target systemctl enable ssh\nin-target touch /etc/done\nwget\n"},
		"blanks and tabs":    {"d-i  preseed/late_command \t string \t in-target a", "in-target a\nwget\n"},
		"in the background":  {"d-i preseed/late_command string in-target touch /etc/done; true &", "in-target touch /etc/done\nwget\n"},
		"a comment":          {"d-i preseed/late_command string in-target a # all of it", "in-target a\nwget\n"},
		"a semicolon":        {"d-i preseed/late_command string in-target a;", "in-target a\nwget\n"},
		"quotes":             {`d-i preseed/late_command string in-target "it's" '$x'`, "in-target it's $x\nwget\n"},
		"its own end":        {"d-i preseed/late_command string in-target a; exit 0", "in-target a\nwget\n"},
		"a failure":          {"d-i preseed/late_command string in-target a; false", "in-target a\n"},
		"an or":              {"d-i preseed/late_command string false || in-target a", "in-target a\nwget\n"},
		"over several lines": {"d-i preseed/late_command string in-target a; \\\n  in-target b", "in-target a\nin-target b\nwget\n"},
		"nothing":            {"d-i preseed/late_command string", "wget\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r, report := New().Render(withInitrd, &machineconfig.Config{
				PhoneHome: full().PhoneHome, Document: &machineconfig.Passthrough{Format: "preseed", Data: []byte(c.line + "\n")},
			})
			if r == nil {
				t.Fatal(report)
			}
			data, err := late.Inject(r.Documents[0].Data, func(string) ([]byte, error) { return []byte("http://192.0.2.1/it's"), nil })
			if err != nil {
				t.Fatal(err)
			}
			command := ""
			for _, l := range logical(string(data)) {
				if q, v := questionOf(l.text); q == "preseed/late_command" {
					command = v
				}
			}
			log := filepath.Join(t.TempDir(), "log")
			shell := t.TempDir()
			for name, does := range map[string]string{
				"in-target": `echo "in-target $*" >>"$LOG"`, "wget": `[ "$1" = --help ] || echo wget >>"$LOG"`,
			} {
				if err := os.WriteFile(filepath.Join(shell, name), []byte("#!/bin/sh\n"+does+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := exec.Command("sh", "-n", "-c", command).CombinedOutput(); err != nil {
				t.Fatalf("%q is no shell: %s", command, out)
			}
			cmd := exec.Command("sh", "-c", command)
			cmd.Env = append(os.Environ(), "LOG="+log, "PATH="+shell+":"+os.Getenv("PATH"))
			_ = cmd.Run() // a failure is one of the cases
			if got, _ := os.ReadFile(log); string(got) != c.want {
				t.Errorf("%q does %q, want %q", command, got, c.want)
			}
		})
	}
}

func TestTheHostsNameWinsOverThePreseedFile(t *testing.T) {
	r, report := New().Render(withInitrd, &machineconfig.Config{
		Host:     machineconfig.HostIdentity{Hostname: "node-1"},
		Document: &machineconfig.Passthrough{Format: "preseed", Data: []byte("# mine\nd-i\tnetcfg/hostname\tstring\tdoc-name\nd-i netcfg/get_domain string example\nd-i odd string x\n")},
	})
	if r == nil {
		t.Fatal(report)
	}
	text := string(r.Documents[0].Data)
	if strings.Contains(text, "doc-name") || !strings.Contains(text, "netcfg/hostname string node-1\n") || !strings.Contains(text, "netcfg/get_domain string example\n") {
		t.Error(text)
	}
	var got []string
	for _, f := range report {
		got = append(got, f.Code+" "+f.Source)
	}
	slices.Sort(got)
	if want := []string{"odd-question document:4:1", "overridden document:2:1"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestAnAnswerThatDoesNotCountIsNamed(t *testing.T) {
	doc := "d-i preseed/late_command string echo 1\nd-i time/zone string UTC\nd-i time/zone seen false\nd-i preseed/late_command string echo 2\n"
	c := &machineconfig.Config{Document: &machineconfig.Passthrough{Format: "preseed", Data: []byte(doc)}}
	r, report := New().Render(withInitrd, c)
	if r == nil || len(report) != 1 || report[0].Code != "answered-again" || report[0].Source != "document:1:1" || !strings.Contains(report[0].Hint, "one answer") {
		t.Errorf("found %+v", report)
	}
}

func FuzzDocument(f *testing.F) {
	f.Add("d-i a/b string c \\\n d\n# x\nd-i preseed/late_command string x\n")
	f.Fuzz(func(t *testing.T, doc string) {
		c := &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "h"}, Document: &machineconfig.Passthrough{Format: "preseed", Data: []byte(doc)}}
		if r, report := New().Render(withInitrd, c); (r == nil) != report.HasErrors() {
			t.Error("neither a rendering nor an error, or both")
		}
	})
}

func FuzzRender(f *testing.F) {
	cases, err := corpus.All()
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		f.Add(strings.Join(c.Layers, "\n---\n"), "x'\n%")
	}
	f.Fuzz(func(t *testing.T, text, odd string) {
		l, report := layer.Parse(text, "fuzz")
		if report.HasErrors() {
			return
		}
		c, report := layer.Merge(l)
		if report.HasErrors() {
			return
		}
		c.Host.Domain, c.Boot.RootDevice.Serial = odd, odd
		r, report := New().Render(withInitrd, c)
		if (r == nil) != report.HasErrors() {
			t.Fatal("neither a rendering nor an error, or both")
		}
		if r == nil {
			return
		}
		for _, l := range logical(string(r.Documents[0].Data)) {
			if n := len(strings.Fields(l.text)); n > 0 && n < 3 || installer.HasControl(l.text) {
				t.Errorf("not an answer: %q", l.text)
			}
		}
	})
}
