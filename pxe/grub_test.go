package pxe

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// scriptCases are decisions as loaders other than iPXE are told them; the texts are as bad as people and machines write.
func scriptCases() map[string]ScriptInput {
	d := inventory.Digest("sha256:" + strings.Repeat("ab", 32))
	image := &inventory.Image{Name: "debian-12", Arch: inventory.X8664, KernelArgs: []string{"console=ttyS0", "a=b;c$(reboot)|&{}", "mac=${mac}"}, Files: []inventory.ImageArtefact{
		{Role: inventory.RoleKernel, Name: "linux", Digest: d}, {Role: inventory.RoleInitrd, Name: "a.gz", Digest: d}, {Role: inventory.RoleInitrd, Name: "b.gz", Digest: d},
	}}
	in := ScriptInput{
		Client: Client{Stage: StageGRUB, MAC: "52:54:00:aa:00:01", Arch: inventory.X8664, Firmware: inventory.UEFI, Server: netip.MustParseAddr("10.0.0.1")},
		Host:   host(), Plan: plan(live, func(p *Plan) { p.Image = image; p.Rescue = image; p.Profile = &inventory.Profile{Name: "base"} }),
		Session: inventory.SessionID(strings.Repeat("ef", 16)), Base: "http://10.0.0.1",
		Decision: Decision{Reason: "it's a `test`; $reboot \"now\" } ' \\", Hint: "it’s fine\nexit", Again: 5 * time.Second},
	}
	all := map[string]ScriptInput{}
	for _, b := range []Boot{BootImage, BootWait, BootPark, BootDisk, BootIgnore, BootMenu, BootAgent} {
		in := in
		in.Decision.Boot = b
		in.Plan.Work = &Work{Boot: BootAgent, Agent: image, Args: []string{"slipway.debug=shell"}}
		all[string(b)] = in
		if b == BootMenu {
			in.Client.Choice = ChoiceMenu
			all["the menu itself"] = in
		}
		all[string(b)+" with two other instances"] = beside(in, "10.0.0.2", "10.0.0.3")
		in.Plan.Config = &ConfigOffer{HasInitrd: true}
		all[string(b)+" with a configuration"] = in
	}
	return all
}

// TestGRUBReadsItsScripts has GRUB's own checker read every script.
func TestGRUBReadsItsScripts(t *testing.T) {
	if _, err := exec.LookPath("grub-script-check"); err != nil {
		t.Skip("needs package grub-common")
	}
	check := func(t *testing.T, script []byte) {
		t.Helper()
		cmd := exec.Command("grub-script-check")
		cmd.Stdin = strings.NewReader(string(script))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, out, script)
		}
	}
	check(t, GRUBScript(netip.MustParseAddr("10.0.0.1")))
	check(t, GRUBScript(netip.Addr{}))
	for name, in := range scriptCases() {
		t.Run(name, func(t *testing.T) {
			script, err := Script(in)
			if err != nil {
				t.Fatal(err)
			}
			check(t, script)
			if in.Decision.Boot != BootMenu && !strings.Contains(string(script), `'Slipway: it'\''s a `+"`test`") {
				t.Errorf("it does not say why:\n%s", script)
			}
		})
	}
}

func TestGRUBNeverRunsWhatPeopleWrite(t *testing.T) {
	for name, in := range scriptCases() {
		script, err := Script(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(script), "\n") {
			outside := ""
			for i, part := range strings.Split(strings.ReplaceAll(line, `'\''`, ""), "'") {
				if i%2 == 0 {
					outside += part
				}
			}
			if strings.Contains(outside, "$reboot") || strings.Contains(outside, "$(") || strings.Contains(outside, "exit\n") {
				t.Errorf("%s: %q stands outside of quotes", name, line)
			}
		}
	}
}

func TestWhatGRUBIsGivenForAnImage(t *testing.T) {
	in := scriptCases()["image with a configuration"]
	script, err := Script(in)
	if err != nil {
		t.Fatal(err)
	}
	root := "'(tftp,10.0.0.1)/boot/" + strings.Repeat("ef", 16)
	for _, want := range []string{
		"if linux " + root + "/artefact/" + strings.Repeat("ab", 32) + "/linux' 'console=ttyS0'", "'mac=52:54:00:aa:00:01'; then",
		"if initrd " + root + "/artefact/" + strings.Repeat("ab", 32) + "/a.gz' ", root + "/config.cpio'; then boot; fi", "cat " + root + "/report?step=progress",
	} {
		if !strings.Contains(string(script), want) {
			t.Errorf("no %s in\n%s", want, script)
		}
	}
	for name, others := range map[string][]string{"grub-one-other": {"10.0.0.2"}, "grub-two-others": {"10.0.0.2", "10.0.0.3"}} {
		script, err := Script(beside(in, others...))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, script)
	}
	in.Plan.Image.KernelArgs = []string{`quote="it"`}
	if _, err := Script(in); err == nil {
		t.Error("an argument with quotes is passed")
	}
}

func TestEveryFileOfAScriptIsServed(t *testing.T) {
	for _, stage := range []Stage{StageGRUB, StagePXELinux} {
		for name, in := range scriptCases() {
			in.Client.Stage = stage
			if stage == StagePXELinux { // it passes no such argument
				image := *in.Plan.Image
				image.KernelArgs = []string{"console=ttyS0"}
				in.Plan.Image, in.Plan.Work = &image, &Work{Boot: BootAgent, Agent: &image}
			}
			script, err := Script(in)
			if err != nil {
				t.Fatal(name, err)
			}
			n := 0
			for _, word := range strings.FieldsFunc(string(script), func(r rune) bool { return r == '\'' || r == '"' || r == ' ' || r == '\n' }) {
				word, isFile := strings.CutPrefix(strings.TrimPrefix(word, "(tftp,10.0.0.1)"), "/")
				if !isFile || strings.HasPrefix(word, "EFI/") || word == "memtest.efi" {
					continue
				}
				n++
				if !IsBootFile(word) {
					t.Errorf("%s %s: nothing serves %s", stage, name, word)
				}
			}
			if n == 0 && (in.Decision.Boot == BootImage || in.Decision.Boot == BootAgent) {
				t.Errorf("%s %s names no file:\n%s", stage, name, script)
			}
		}
	}
}

func TestWhatUBootIsGiven(t *testing.T) {
	in := scriptCases()["image"]
	in.Client.Stage = StagePXELinux
	if _, err := Script(in); err == nil {
		t.Error("an argument with ; is passed")
	}
	in.Plan.Image.KernelArgs = []string{"console=ttyS0", "x=1"}
	script, err := Script(in)
	if err != nil {
		t.Fatal(err)
	}
	s := string(script)
	if !strings.Contains(s, "  INITRD /boot/"+strings.Repeat("ef", 16)+"/initrds\n") || !strings.Contains(s, "  APPEND console=ttyS0 x=1\n") {
		t.Errorf("got\n%s", s)
	}
	in = scriptCases()["wait"]
	in.Client.Stage = StagePXELinux
	if script, err = Script(in); err != nil || !strings.Contains(string(script), "MENU TITLE Slipway: web1 waits: it's") || !strings.Contains(string(script), "LOCALBOOT") {
		t.Errorf("got %v\n%s", err, script)
	}
}

// TestWhatPXELINUXIsGiven has a BIOS machine ask, which can wait and ask again.
func TestWhatPXELINUXIsGiven(t *testing.T) {
	for name, want := range map[string][]string{
		"image": {"PROMPT 0\n", "  LINUX /boot/" + strings.Repeat("ef", 16) + "/artefact/", "  INITRD /boot/" + strings.Repeat("ef", 16) + "/initrds\n", "  APPEND console=ttyS0\n"},
		"wait":  {"SAY Slipway: web1 waits: it's", "PROMPT 1\n", "TIMEOUT ", "  CONFIG pxelinux.cfg/01-52-54-00-aa-00-01\n"},
		"park":  {"SAY Slipway: web1 is parked: ", "  CONFIG pxelinux.cfg/01-52-54-00-aa-00-01\n"},
		"disk":  {"SAY Slipway: web1 boots from its own disk", "PROMPT 0\n", "  LOCALBOOT -1\n"},
	} {
		in, ok := scriptCases()[name]
		if !ok {
			t.Errorf("no case %s", name)
			continue
		}
		in.Client.Stage, in.Client.Firmware = StagePXELinux, inventory.BIOS
		if name == "image" {
			in.Plan.Image.KernelArgs = []string{"console=ttyS0"}
		}
		script, err := Script(in)
		for _, line := range want {
			if err != nil || !strings.Contains(string(script), line) {
				t.Errorf("%s has no %q: %v\n%s", name, line, err, script)
			}
		}
		if strings.Contains(string(script), "MENU") {
			t.Errorf("%s holds what PXELINUX shows nowhere:\n%s", name, script)
		}
	}
}

func TestNamesThatLoadersAskFor(t *testing.T) {
	session := strings.Repeat("ef", 16)
	hex := strings.Repeat("ab", 32)
	for name, want := range map[string]FileKind{
		"grub/grub.cfg":                                   FileGRUB,
		"grub.cfg":                                        FileGRUB,
		"ubuntu/grub.cfg-01-52-54-00-aa-00-01":            FileGRUB,
		"grub/ask?mac=52:54:00:aa:00:01&lockdown=y":       FileAsk,
		"pxelinux.cfg/01-52-54-00-aa-00-01":               FilePXELinux,
		"boot/" + session + "/artefact/" + hex + "/linux": FileArtefact,
		"boot/" + session + "/config.cpio":                FileArchive,
		"boot/" + session + "/initrds":                    FileInitrds,
		"boot/" + session + "/report?step=disk":           FileReport,
		"grub/grub.cfg-C0A80001":                          "",
		"grub/x86_64-efi/command.lst":                     "",
		"pxelinux.cfg/C0A80001":                           "",
		"pxelinux.cfg/default-arm-bcm283x":                "",
		"revocations.efi":                                 "",
		"boot/" + session + "/artefact/" + hex[2:] + "/x": "",
		"boot/" + session + "/../../etc/passwd":           "",
		"boot/" + session + "/script":                     "",
		"grub/ask?" + strings.Repeat("x", 500):            "",
		"../grub/grub.cfg/..":                             "",
	} {
		if f, ok := ParseFile(name); f.Kind != want && ok || ok != (want != "") {
			t.Errorf("%s is taken for %+v, %v", name, f, ok)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add("grub/ask?mac=52:54:00:aa:00:01&serial=a&b=c")
	f.Add("boot/" + strings.Repeat("ef", 16) + "/report?step=disk")
	f.Fuzz(func(t *testing.T, name string) {
		if file, ok := ParseFile(name); ok && file.Kind == "" {
			t.Errorf("%q is served as nothing", name)
		} else if file.Kind == FileAsk {
			_, _ = ParseAsk(file.Query)
		}
	})
}

func TestWhatGRUBSaysOfItself(t *testing.T) {
	c, err := ParseAsk("mac=52:54:00:aa:00:01&cpu=x86_64&platform=efi&lockdown=y&uuid=&serial=S 1&mac=66:66:66:66:66:66&choice=disk")
	if err != nil || c.MAC != "52:54:00:aa:00:01" || c.Arch != inventory.X8664 || c.Firmware != inventory.UEFI || c.SecureBoot != SecureBootOn || c.Identity.Serial != "S 1" || c.Choice != ChoiceDisk {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, _ := ParseAsk("mac=52:54:00:aa:00:01&lockdown="); c.SecureBoot != SecureBootOff {
		t.Errorf("without lockdown: %q", c.SecureBoot)
	}
	if _, err := ParseAsk("mac=no"); err == nil {
		t.Error("a MAC that is none is taken")
	}
}
