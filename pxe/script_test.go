package pxe

import (
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const testSession = inventory.SessionID("00112233445566778899aabbccddeeff")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (run with -update to accept):\n%s", path, diff)
	}
}

func input(c Client, d Decision) ScriptInput {
	c.Address, c.Server = netip.MustParseAddr("10.0.0.57"), netip.MustParseAddr("10.0.0.1")
	p := plan(live)
	p.Image.KernelArgs = []string{"auto=true", "priority=critical", "BOOTIF=${bootif}", "hostname=${hostname}", "url=${file:preseed.cfg}"}
	p.Image.Files = append(p.Image.Files, inventory.ImageArtefact{Role: inventory.RoleInitrd, Name: "firmware.cpio", Digest: inventory.Digest("sha256:" + strings.Repeat("c", 64))},
		inventory.ImageArtefact{Role: inventory.RoleRootfs, Name: "preseed.cfg", Digest: inventory.Digest("sha256:" + strings.Repeat("d", 64))})
	p.Profile.KernelArgs = []string{"console=${console}", "slipway.report=${report}", "---", "quiet"}
	p.Profile.Parameters = map[string]string{"console": "ttyS1,115200"}
	return ScriptInput{Client: c, Host: host(), Plan: p, Decision: d, Session: testSession, Base: "http://10.0.0.1"}
}

// configured is a boot with a configuration.
func configured(c Client, o ConfigOffer) ScriptInput {
	in := input(c, Decision{Boot: BootImage, Reason: "profile base gives it image debian-12"})
	in.Plan.Image.ConfigArgs = []string{"auto=true", "url=${config}"}
	in.Plan.Config = &o
	return in
}

// withMenu offers all that a menu can.
func withMenu(in ScriptInput) ScriptInput {
	in.Plan.Rescue = &inventory.Image{Name: "agent-x86-64"}
	in.Plan.Loaders = func(string) bool { return true }
	return in
}

// beside adds other instances on the network of the machine.
func beside(in ScriptInput, others ...string) ScriptInput {
	for _, a := range others {
		in.Others = append(in.Others, netip.MustParseAddr(a))
	}
	return in
}

// TestTheAgentKnowsOtherInstances holds that each boot loader gives our agent the instances that it asks when ours is gone.
func TestTheAgentKnowsOtherInstances(t *testing.T) {
	for _, stage := range []Stage{StageIPXE, StageGRUB, StagePXELinux} {
		for _, c := range []struct {
			base   string
			others []string
			want   []string
		}{
			{"http://10.0.0.1", nil, nil},
			{"http://10.0.0.1", []string{"10.0.0.2"}, []string{"slipway.other=http://10.0.0.2"}},
			{"http://10.0.0.1:8081", []string{"10.0.0.2", "10.0.0.3"}, []string{"slipway.other=http://10.0.0.2:8081", "slipway.other=http://10.0.0.3:8081"}},
			{"https://10.0.0.1:8443", []string{"10.0.0.2"}, nil}, // their certificates have their own addresses
		} {
			in := beside(input(asking(uefi()), Decision{Boot: BootAgent, Reason: "inspection"}), c.others...)
			in.Base, in.Client.Stage = c.base, stage
			agent := *in.Plan.Image
			agent.KernelArgs = nil
			in.Plan.Work = &Work{Boot: BootAgent, Agent: &agent}
			text, err := Script(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(text), want) {
					t.Errorf("%s, %s beside %v: no %s in\n%s", stage, c.base, c.others, want, text)
				}
			}
			if len(c.want) == 0 && strings.Contains(string(text), "slipway.other") {
				t.Errorf("%s, %s beside %v: it names others:\n%s", stage, c.base, c.others, text)
			}
		}
	}
}

func TestScripts(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   ScriptInput
	}{
		{"image-uefi", input(asking(uefi()), Decision{Boot: BootImage, Reason: "profile base gives it image debian-12"})},
		{"image-bios", input(asking(bios()), Decision{Boot: BootImage, Reason: "profile base gives it image debian-12"})},
		{"image-config-url", configured(asking(uefi()), ConfigOffer{Name: "preseed.cfg", Args: []string{"quiet"}})},
		{"image-config-initrd", configured(asking(uefi()), ConfigOffer{Name: "preseed.cfg", HasInitrd: true})},
		{"image-config-tls", configured(asking(bios()), ConfigOffer{HasInitrd: true, Base: "https://10.0.0.1:8443"})},
		{"image-one-other", beside(configured(asking(uefi()), ConfigOffer{HasInitrd: true}), "10.0.0.2")},
		{"image-two-others", beside(configured(asking(bios()), ConfigOffer{HasInitrd: true}), "10.0.0.2", "10.0.0.3")},
		{"wait", input(asking(uefi()), Decision{Boot: BootWait, Reason: "not accepted", Hint: "slipway host accept web1", Again: AskAgain})},
		{"wait-two-others", beside(input(asking(uefi()), Decision{Boot: BootWait, Reason: "not accepted"}), "10.0.0.2", "10.0.0.3")},
		{"park", input(asking(uefi()), Decision{Boot: BootPark, Reason: "quarantined: 5 boots in vain", Hint: "slipway host release web1", Again: ParkFor})},
		{"disk-exit", input(asking(uefi()), Decision{Boot: BootDisk, Disk: inventory.DiskExit, Reason: "installed: it boots from its own disk"})},
		{"disk-sanboot", input(asking(bios()), Decision{Boot: BootDisk, Disk: inventory.DiskSanboot, Reason: "not accepted: it boots from its own disk"})},
		{"menu", withMenu(input(asking(uefi()), Decision{Boot: BootMenu, Reason: "boot menu", Again: 2 * time.Minute}))},
		{"ignore", input(asking(uefi()), Decision{Boot: BootIgnore, Reason: "the subnet ignores such machines"})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Script(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			checkScript(t, string(got))
			golden(t, tt.name, got)
		})
	}
	t.Run("ask", func(t *testing.T) {
		got := AskScript("http://10.0.0.1:8081", testSession)
		checkScript(t, string(got))
		golden(t, "ask", got)
	})
	t.Run("ask beside another instance", func(t *testing.T) {
		got := string(AskScript("http://10.0.0.1:8081", testSession, netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.1")))
		checkScript(t, got)
		ours, other := strings.Index(got, " http://10.0.0.1:8081/boot/"), strings.Index(got, " http://10.0.0.2:8081/boot/")
		if n := strings.Count(got, "\nchain "); n != 2 || ours < 0 || other < ours {
			t.Error(got)
		}
	})
	t.Run("ask without a session", func(t *testing.T) {
		got := string(AskScript("http://10.0.0.1", ""))
		checkScript(t, got)
		if !strings.Contains(got, " http://10.0.0.1/boot/script?mac=") {
			t.Error(got)
		}
	})
	t.Run("no script for no decision", func(t *testing.T) {
		if _, err := Script(input(asking(uefi()), Decision{})); err == nil {
			t.Error("accepted")
		}
	})
	t.Run("a machine nobody knows is called by its MAC", func(t *testing.T) {
		in := input(asking(uefi()), Decision{Boot: BootWait, Reason: "x"})
		in.Host = nil
		if got, _ := Script(in); !strings.Contains(string(got), "Slipway: 52-54-00-aa-00-01 waits") {
			t.Error(string(got))
		}
	})
}

func TestCheckArgs(t *testing.T) {
	profile := func(edit func(*inventory.Profile)) *inventory.Profile {
		p := &inventory.Profile{Name: "base", Image: "debian-12"}
		edit(p)
		return p
	}
	args := func(a ...string) *inventory.Profile {
		return profile(func(p *inventory.Profile) { p.KernelArgs = a })
	}
	for _, tt := range []struct {
		name string
		p    *inventory.Profile
		want string // part of the message, "" for none
	}{
		{"no profile", nil, ""},
		{"everything we know", args(VariableNames()...), ""},
		{"a file of the image", args("x=${file:initrd.gz}"), ""},
		{"a file that the image lacks", args("x=${file:rootfs}"), "nothing is called ${file:rootfs}"},
		{"a misspelt variable", args("x=${hostnam}"), "nothing is called ${hostnam}"},
		{"an empty variable", args("x=${}"), "nothing is called ${}"},
		{"a parameter", profile(func(p *inventory.Profile) {
			p.KernelArgs, p.Parameters = []string{"disk=${disk}"}, map[string]string{"disk": "/dev/sda"}
		}), ""},
		{"a parameter that uses a variable", profile(func(p *inventory.Profile) {
			p.KernelArgs, p.Parameters = []string{"x=${seed}"}, map[string]string{"seed": "${base}/seed"}
		}), ""},
		{"a parameter that uses a parameter", profile(func(p *inventory.Profile) {
			p.Parameters = map[string]string{"a": "${b}", "b": "${a}"}
		}), "nothing is called"},
		{"a parameter called like a variable", profile(func(p *inventory.Profile) { p.Parameters = map[string]string{"mac": "x"} }), "built in"},
		{"an argument with spaces", args(`dyndbg="file x.c +p"`), ""},
		{"the kernel's own separator", args("---", "quiet"), ""},
		{"a semicolon inside a word", args("ds=nocloud;s=${base}/x"), ""},
		{"a word that ends the command", args("a || reboot"), "ends a command"},
		{"a word that begins a comment", args("a #b"), "ends a command"},
		{"a number sign inside a word", args("a#b"), ""},
		{"a backslash at the end", args(`a\`), "backslash"},
		{"a backslash inside", args(`a\b`), ""},
		{"an open variable", args("${mac"), "${ is left"},
		{"a variable put together from two", profile(func(p *inventory.Profile) {
			p.KernelArgs, p.Parameters = []string{"${a}{mac}"}, map[string]string{"a": "$"}
		}), "${ is left"},
		{"what is not ASCII", args("name=Zürich"), "printable ASCII"},
		{"too much", args(strings.Repeat("a", 1000), strings.Repeat("b", 1100)), "bytes long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckArgs(testImage(), tt.p)
			if tt.want == "" && err != nil {
				t.Fatal(err)
			}
			var e *inventory.Error
			if tt.want != "" && (!errors.As(err, &e) || e.Kind != inventory.Invalid || !strings.Contains(e.Msg, tt.want)) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain text stays", "profile base, image x", "profile base, image x"},
		{"no command follows", "a || reboot && exit ; sanboot", "a '||' reboot '&&' exit ';' sanboot"},
		{"a number sign does not hide the rest", "port #4 down", "port '#4 down"},
		{"nothing is replaced", "${net0/mac} $${x}", "$ {net0/mac} $$ {x}"},
		{"a line ends where we say", "a\nreboot\r\nexit\\", "a reboot exit/"},
		{"what a console cannot show", "Zürich ’x’", "Z?rich 'x'"},
		{"long text is cut", strings.Repeat("word ", 100), strings.TrimSpace(strings.Repeat("word ", 60)) + " ..."},
		{"nothing", " \x00 ", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := quote(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzScript puts hostile text wherever text can come from and compares the shape of the scripts with those of harmless
// text: it must not add, end or change a command.
func FuzzScript(f *testing.F) {
	for _, s := range []string{
		"a || reboot", "x\nchain http://evil/\n", "${serial}", "a\\", "#", ";", "$", "{x}", "\x00\xff", "--help", "a && b", ":label",
		"\r\nexit", "’", "||", strings.Repeat("long ", 200),
	} {
		f.Add(s, s, s)
	}
	f.Fuzz(func(t *testing.T, reason, name, arg string) {
		shapes := func(reason, name, arg string) (out [][]string) {
			for _, c := range []Client{asking(uefi()), asking(bios())} {
				for _, d := range []Decision{{Boot: BootWait}, {Boot: BootPark}, {Boot: BootDisk}, {Boot: BootImage}} {
					d.Reason, d.Hint, d.Again = "r"+reason, "h"+reason, time.Minute
					in := input(c, d)
					in.Host.Name = name
					in.Host.Product, in.Host.Serial = reason, reason
					in.Plan.Image.Name = "debian-12"
					in.Plan.Profile.Parameters = map[string]string{"console": arg}
					in.Plan.Profile.KernelArgs = append(in.Plan.Profile.KernelArgs, arg)
					got, err := Script(in)
					if err != nil {
						out = append(out, nil) // refused: the engine shows that instead
						continue
					}
					out = append(out, checkScript(t, string(got)))
				}
			}
			return append(out, checkScript(t, string(AskScript("http://10.0.0.1"+arg, inventory.SessionID(name)))))
		}
		harmless, hostile := shapes("x", "web1", "x=y"), shapes(reason, name, arg)
		for i := range harmless {
			if hostile[i] == nil {
				continue
			}
			if diff := cmp.Diff(harmless[i], hostile[i]); diff != "" {
				t.Errorf("script %d changed its shape:\n%s", i, diff)
			}
		}
	})
}

// Somebody who only saw the address of a boot cannot speak as its agent.
func TestOnlyTheScriptThatStartsTheAgentHasItsKey(t *testing.T) {
	const key = "ffeeddccbbaa99887766554433221100"
	c := Client{Stage: StageIPXE, MAC: "52:54:00:aa:00:01", Firmware: inventory.UEFI, Arch: inventory.X8664}
	for _, d := range []Decision{{Boot: BootAgent}, {Boot: BootWait}, {Boot: BootDisk}, {Boot: BootPark}} {
		in := input(c, d)
		agent := *in.Plan.Image
		agent.KernelArgs = []string{"slipway.session=${base}/boot/${session}"}
		in.Plan.Work = &Work{Boot: BootAgent, Agent: &agent}
		if in.AgentKey = key; d.Boot != BootAgent {
			in.AgentKey = ""
		}
		text, err := Script(in)
		if err != nil {
			t.Fatal(err)
		}
		word := "slipway.session=http://10.0.0.1/boot/" + string(testSession) + "/" + key
		if has := strings.Contains(string(text), word); has != (d.Boot == BootAgent) || strings.Count(string(text), key) > 1 {
			t.Errorf("%s:\n%s", d.Boot, text)
		}
	}
}
