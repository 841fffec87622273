package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/kubeadm"
	"slipway.dev/slipway/machineconfig/osadapter"
)

func renderer() *Renderer {
	return New(Parts{
		Provisioners:  []machineconfig.Provisioner{ignition.New(), cloudinit.New()},
		Bootstrappers: []machineconfig.Bootstrapper{kubeadm.New()},
		Adapt:         osadapter.Apply,
	})
}

// input is a host with what it is given; change sets what a test is about.
func input(change func(*Input)) Input {
	in := Input{
		Host: &inventory.Host{
			ID: "0192-1", Name: "web-1", Place: inventory.Place{Site: "north", Rack: "r7"}, Labels: map[string]string{"zone": "a"},
			NICs: []inventory.NIC{{MAC: "52:54:00:00:00:01"}, {MAC: "52:54:00:00:00:02"}},
		},
		BootMAC: "52:54:00:00:00:02",
		Image: &inventory.Image{
			Name: "flatcar", OS: "flatcar", Release: "stable", Arch: inventory.X8664,
			Configs: []inventory.ImageConfig{{Format: "ignition", Version: "3.4.0", InitrdPath: "/usr/share/oem/config.ign"}, {Format: "cloud-init", Version: "24.4"}},
		},
		Profiles: []inventory.Profile{{Name: "web"}},
		Target: func(name string) (inventory.JoinTarget, error) {
			return inventory.JoinTarget{}, inventory.Errorf(inventory.NotFound, "no join target %s", name).WithHint("slipway target add %s", name)
		},
		HasSecret: func(name string) bool { return name == "known" },
		Secret:    func(string) ([]byte, error) { return []byte("value"), nil },
	}
	change(&in)
	return in
}

func TestNarrowerLayersWinAndAreNamed(t *testing.T) {
	res := renderer().Host(input(func(in *Input) {
		in.Layers = []inventory.Layer{
			{Scope: inventory.ScopeGlobal, Config: "host: {timezone: Etc/UTC, locale: C.UTF-8, keymap: de}\ntime: {ntpServers: [ntp.global]}"},
			{Scope: inventory.ScopeSite, Name: "north", Config: "host:\n  timezone: Europe/Oslo\n"},
			{Scope: inventory.ScopeRack, Name: "r7", Config: "host: {locale: nb_NO.UTF-8}"},
			{Scope: inventory.ScopeHost, Name: "0192-1", Config: "host: {keymap: us}"},
		}
		in.Profiles = []inventory.Profile{{Name: "base", Config: "host: {keymap: 'no'}"}, {Name: "web", Config: "host: {keymap: fi}"}}
	}))
	if err := res.Findings.Err(); err != nil {
		t.Fatal(err)
	}
	h := res.Config.Host
	want := machineconfig.HostIdentity{InstanceID: h.InstanceID, Hostname: "web-1", Locale: "nb_NO.UTF-8", Keymap: "us", Timezone: "Europe/Oslo"}
	if d := cmp.Diff(want, h); d != "" {
		t.Error(d)
	}
	for path, origin := range map[string]string{
		"/host/timezone": "layer site/north:2", "/host/locale": "layer rack/r7:1", "/host/keymap": "host web-1:1",
	} {
		if got := res.Config.Provenance[path]; !strings.HasPrefix(got, origin) {
			t.Errorf("%s comes from %q, want %q", path, got, origin)
		}
	}
}

func TestTheFormatIsTheImagesOrWhatTheProfileWants(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*Input)
		format  string
		finding string
	}{
		{"the image's first", func(*Input) {}, "ignition", ""},
		{"the profile's", func(in *Input) { in.Profiles[0].Format = "cloud-init" }, "cloud-init", ""},
		{"the one that takes the document", func(in *Input) {
			in.Profiles[0].Document = &inventory.Document{Format: inventory.DocCloudConfig, Text: "#cloud-config\nruncmd: [ls]\n"}
		}, "cloud-init", ""},
		{"one that the image does not read", func(in *Input) { in.Profiles[0].Format = "preseed" }, "", "image flatcar does not read preseed"},
		{"a document that nothing takes", func(in *Input) {
			in.Profiles[0].Document = &inventory.Document{Format: inventory.DocKickstart, Text: "text"}
		}, "", "cannot be given a document in kickstart"},
		{"an image that reads nothing", func(in *Input) { in.Image.Configs = nil }, "", "reads no configuration"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := renderer().Host(input(func(in *Input) {
				in.Profiles[0].Config = "host: {timezone: Etc/UTC}"
				c.change(in)
			}))
			if res.Format != c.format || !strings.Contains(fmt.Sprint(res.Findings), c.finding) || res.Findings.HasErrors() != (c.finding != "") {
				t.Errorf("format %q, findings %v", res.Format, res.Findings)
			}
			if c.finding != "" && res.Findings[0].Hint == "" {
				t.Error("no hint")
			}
		})
	}
}

func TestErrorsNameTheirPlace(t *testing.T) {
	for _, c := range []struct{ name, config, path, source, message string }{
		{"a secret that is missing", "files:\n- path: /etc/x\n  secret: secret://nowhere", "/files/~1etc~1x/secret", "profile web:3", `there is no secret "nowhere"`},
		{"a secret in a template", "files:\n- path: /etc/x\n  text: '{{ secret \"nowhere\" }}'", "", "", `there is no secret "nowhere"`},
		{"a bootstrapper that is not", "bootstrap: {kind: puppet}", "/bootstrap/kind", "", `puppet`},
		{"a join target that is not", "bootstrap: {kind: kubeadm, target: prod, version: 1.35.0}", "/bootstrap/target", "", "no join target prod"},
		{"what the format cannot say", "packages: {install: [nginx]}", "/packages/install", "profile web:1", "not expressible in ignition for flatcar"},
		{"an unknown key", "hostt: {}", "/hostt", "profile web:1:1", "hostt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := renderer().Host(input(func(in *Input) { in.Profiles[0].Config = c.config }))
			if !res.Findings.HasErrors() || res.Documents != nil || res.Digest != "" && res.Documents != nil {
				t.Fatalf("rendered: %v", res.Findings)
			}
			f := res.Findings[0]
			if f.Path != c.path || !strings.HasPrefix(f.Source, c.source) || !strings.Contains(f.Message, c.message) || f.Hint == "" {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestALossMustBeAccepted(t *testing.T) {
	cells := cloudinit.New().Capabilities(machineconfig.Target{OS: "debian", Release: "12", Tool: "22.4.2"})
	lossy := ""
	for _, f := range machineconfig.Fields() {
		if cells[f.Path].Support == machineconfig.Lossy {
			lossy = f.Path
		}
	}
	t.Logf("a field that is carried in part: %q", lossy)
	in := func(accepts ...string) Input {
		return input(func(in *Input) {
			in.Profiles[0] = inventory.Profile{Name: "web", Format: "cloud-init", Config: "kernel: {args: [quiet]}\nstorage: {disks: [{name: a, device: {path: /dev/sdb}, partitions: [{label: data}]}]}", Accepts: accepts}
		})
	}
	refused := renderer().Host(in())
	for _, f := range refused.Findings {
		if f.Code == "lossy" && (f.Hint == "" || !strings.Contains(f.Hint, "accepts")) {
			t.Errorf("%+v does not say how to accept it", f)
		}
	}
}

func TestTheDigestIsThatOfWhatIsServed(t *testing.T) {
	r := renderer()
	one := r.Host(input(func(in *Input) { in.Profiles[0].Config = "host: {timezone: Etc/UTC}" }))
	same := renderer().Host(input(func(in *Input) { in.Profiles[0].Config = "# a comment\nhost:\n  timezone: Etc/UTC\n" }))
	other := r.Host(input(func(in *Input) { in.Profiles[0].Config = "host: {timezone: Etc/GMT}" }))
	if one.Digest == "" || one.Digest != same.Digest || one.Digest == other.Digest {
		t.Errorf("digests %s %s %s", one.Digest, same.Digest, other.Digest)
	}
}

func TestPartsOfSecrets(t *testing.T) {
	r := renderer()
	if got, err := r.Part([]byte("ca.crt: |\n  PEM\nca.key: k"), "ca.crt"); err != nil || string(got) != "PEM\n" {
		t.Errorf("%q %v", got, err)
	}
	for _, value := range []string{"no map", "- a", "ca.key: x", "\x00"} {
		if _, err := r.Part([]byte(value), "ca.crt"); err == nil {
			t.Errorf("%q has a ca.crt", value)
		}
	}
}

// fleet is what a site with a web server profile looks like.
func fleet(n int) Input {
	return input(func(in *Input) {
		in.Host.ID, in.Host.Name = inventory.HostID(fmt.Sprintf("0192-%d", n)), fmt.Sprintf("web-%d", n)
		in.Layers = []inventory.Layer{{Scope: inventory.ScopeGlobal, Config: "host: {timezone: Etc/UTC}\ntime: {ntpServers: [ntp1.example, ntp2.example]}\nusers: [{name: admin, sshKeys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl a@b'], sudo: 'ALL=(ALL) NOPASSWD:ALL'}]"}}
		in.Profiles[0].Config = `
network: {interfaces: [{name: eno1, mac: boot, addresses: [10.0.0.7/24], routes: [{to: 0.0.0.0/0, via: 10.0.0.1}], dns: [10.0.0.2]}]}
files:
- {path: /etc/motd, text: "This is {{ .Host.Name }} in {{ .Host.Place.Rack }}\n"}
- {path: /etc/app/key, mode: "0600", secret: secret://known}
- {path: /etc/app/conf, text: "listen = 0.0.0.0:8080\n"}
units: [{name: app.service, enabled: true, contents: "[Service]\nExecStart=/opt/app/bin/app\n[Install]\nWantedBy=multi-user.target\n"}]
kernel: {sysctl: {net.ipv4.ip_forward: "1"}, modules: [br_netfilter]}
commands: [{shell: "systemctl restart systemd-sysctl"}]
`
	})
}

// The goal is 1,000 hosts in 5 s on two cores: 10 ms each.
func BenchmarkHost(b *testing.B) {
	for _, format := range []string{"ignition", "cloud-init"} {
		b.Run(format, func(b *testing.B) {
			r := renderer()
			for n := 0; b.Loop(); n++ {
				in := fleet(n)
				in.Profiles[0].Format = format
				if res := r.Host(in); res.Findings.HasErrors() {
					b.Fatal(res.Findings)
				}
			}
		})
	}
}

func TestWhatASecretHoldsIsLookedAt(t *testing.T) {
	for _, c := range []struct{ name, value, config, finding string }{
		{"a part of a map", "a: x\nb: 1\nc: [1]", `files: [{path: /x, secret: "secret://known#a"}]`, ""},
		{"a part that is a number", "a: x\nb: 1", `files: [{path: /x, secret: "secret://known#b"}]`, ""},
		{"a part that is a list", "a: x\nc: [1]", `files: [{path: /x, secret: "secret://known#c"}]`, "secret known: the secret holds no"},
		{"a part that is not there", "a: x", `files: [{path: /x, secret: "secret://known#zz"}]`, "secret known: the secret holds no"},
		{"a part of no map", "text", `files: [{path: /x, secret: "secret://known#a"}]`, "secret known: the secret is not a map"},
		{"a hash", "$6$salt$hash", "users: [{name: admin, passwordHash: secret://known}]", ""},
		{"a password where a hash belongs", "hunter2", "users: [{name: admin, passwordHash: secret://known}]", "holds no hash"},
		{"a hash with a second line", "$6$salt$hash\nroot:x", "users: [{name: admin, passwordHash: secret://known}]", "holds no hash"},
		{"a password of the default user", "hunter2", "defaultUser: {passwordHash: secret://known}", "holds no hash"},
		{"a password of a mount with a second setting", "a\nuid=0", "storage: {mounts: [{mountPoint: /a, source: //a/b, type: cifs, username: u, password: secret://known}]}", "has a line break"},
		{"a key of a tunnel with a second setting", "a\n[Peer]", "network: {wireguards: [{name: wg0, addresses: [10.9.0.1/24], privateKey: secret://known}]}", "holds no key"},
		{"a key of a tunnel", "QM6RAd9Fc4iEkVUsuURbKmzWrxQs0tOGJKgAbmpcA1E=", "network: {wireguards: [{name: wg0, addresses: [10.9.0.1/24], privateKey: secret://known}]}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := renderer().Host(input(func(in *Input) {
				in.Profiles[0].Config = c.config
				in.Secret = func(string) ([]byte, error) { return []byte(c.value), nil }
			}))
			if c.finding == "" && !res.Findings.HasErrors() {
				return
			}
			if c.finding == "" || !res.Findings.HasErrors() || !strings.Contains(res.Findings[0].Message, c.finding) || res.Findings[0].Hint == "" {
				t.Errorf("%v", res.Findings)
			}
			if strings.Contains(fmt.Sprint(res.Findings), "hunter2") {
				t.Error("the secret is told")
			}
		})
	}
}
