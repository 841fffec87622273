package talos

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const plain = `# made by hand
version: v1alpha1
machine:
  type: worker
  token: ` + "abc.def" + `
  network:
    interfaces:
      - interface: eth0 # stays
        dhcp: true
  files: []
cluster:
  controlPlane:
    endpoint: https://10.0.0.10:6443
---
apiVersion: v1alpha1
kind: HostnameConfig
auto: stable
---
apiVersion: v1alpha1
kind: TimeSyncConfig
`

func document(text string) *machineconfig.Config {
	return &machineconfig.Config{Document: &machineconfig.Passthrough{Format: "talos", Data: []byte(text)}}
}

func render(c *machineconfig.Config) (string, machineconfig.Report) {
	out, r := NewProvisioner().Render(machineconfig.Target{OS: "talos", Release: "1.13"}, c)
	if out == nil {
		return "", r
	}
	return string(out.Documents[0].Data), r
}

func TestAConfigIsMergedIntoAPlainDocument(t *testing.T) {
	c := document(strings.Replace(plain, "abc.def", late.Marker("secret://tok"), 1))
	c.Host = machineconfig.HostIdentity{Hostname: "n", Domain: "example.com"}
	c.Network = machineconfig.Network{
		Interfaces: []machineconfig.Interface{
			{Name: "eth0", L3: machineconfig.L3{Addresses: []string{"10.0.0.2/24"}}},
			{Name: "lan", MAC: "52:54:00:00:00:01", L3: machineconfig.L3{DHCP4: true}},
		},
		VLANs: []machineconfig.VLAN{{Name: "v", Parent: "eth0", ID: 7, L3: machineconfig.L3{DHCP6: true}}}, DNS: []string{"10.0.0.1", "10.0.0.1"},
	}
	c.Time.NTPServers = []string{"ntp"}
	c.Kernel = machineconfig.Kernel{Args: []string{"a=b"}, RemoveArgs: []string{"quiet"}, Modules: []string{"m"}, Sysctl: map[string]string{"b": "2", "a": "1"}}
	c.Files = []machineconfig.File{{Path: "/var/a", Content: machineconfig.Content{Secret: "secret://s"}, Mode: 0o600}}
	c.Boot.RootDevice = machineconfig.DeviceSelector{Path: "/dev/sda"}
	c.Trust.CAs = []string{"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"}
	got, r := render(c)
	if r != nil {
		t.Fatal(r)
	}
	again, _ := render(c)
	if got != again {
		t.Error("a second time it is different")
	}
	path := filepath.Join("testdata", "plain.golden")
	text := string(late.Redact([]byte(got)))
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if d := cmp.Diff(string(want), text); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	injected, err := late.Inject([]byte(got), func(string) ([]byte, error) { return []byte("a: \"b\"\n c"), nil })
	if err != nil {
		t.Fatal(err)
	}
	if docs, err := parse(injected, false); err != nil || scalar(lookup(docs.main, "machine", "token")) != "a: \"b\"\n c" {
		t.Errorf("a secret with quotes and lines breaks the document: %v\n%s", err, injected)
	}
}

func TestWhatCannotBeMergedIsAFinding(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		change func(*machineconfig.Config)
		want   string // path and code
	}{
		"a file elsewhere":        {func(c *machineconfig.Config) { c.Files = []machineconfig.File{{Path: "/etc/motd"}} }, "/files/~1etc~1motd not-expressible"},
		"a file that leaves /var": {func(c *machineconfig.Config) { c.Files = []machineconfig.File{{Path: "/var/../etc/motd"}} }, "/files/~1var~1..~1etc~1motd not-expressible"},
		"a file of bytes": {func(c *machineconfig.Config) {
			c.Files = []machineconfig.File{{Path: "/var/a", Content: machineconfig.Content{Base64: "/w=="}}}
		}, "/files/~1var~1a not-expressible"},
		"a file of somebody":        {func(c *machineconfig.Config) { c.Files = []machineconfig.File{{Path: "/var/a", Owner: "me"}} }, "/files/~1var~1a not-expressible"},
		"a disk of two sizes":       {func(c *machineconfig.Config) { c.Boot.RootDevice = machineconfig.DeviceSelector{MinGiB: 1, MaxGiB: 2} }, "/boot/rootDevice not-expressible"},
		"a disk that does not turn": {func(c *machineconfig.Config) { c.Boot.RootDevice.Rotational = &no }, "/boot/rootDevice not-expressible"},
		"the port that booted": {func(c *machineconfig.Config) {
			c.Network.Interfaces = []machineconfig.Interface{{Name: "a", MAC: "boot"}}
		}, "/network/interfaces/a/mac not-expressible"},
		"no advertisements by MAC": {func(c *machineconfig.Config) {
			c.Network.Interfaces = []machineconfig.Interface{{Name: "a", MAC: "52:54:00:00:00:01", L3: machineconfig.L3{AcceptRA: &no}}}
		}, "/network/interfaces/a/acceptRA not-expressible"},
		"a bridge over a MAC": {func(c *machineconfig.Config) {
			c.Network.Interfaces = []machineconfig.Interface{{Name: "a", MAC: "52:54:00:00:00:01"}}
			c.Network.Bridges = []machineconfig.Bridge{{Name: "b", Members: []string{"a"}}}
		}, "/network/bridges/b/members not-expressible"},
		"a bond over a MAC and a name": {func(c *machineconfig.Config) {
			c.Network.Interfaces = []machineconfig.Interface{{Name: "a", MAC: "52:54:00:00:00:01"}}
			c.Network.Bonds = []machineconfig.Bond{{Name: "b", Mode: "802.3ad", Members: []string{"a", "c"}}}
		}, "/network/bonds/b/members not-expressible"},
		"another role": {func(c *machineconfig.Config) {
			c.Bootstrap = &machineconfig.BootstrapSpec{Role: machineconfig.ControlPlane}
		}, "/bootstrap/role invalid"},
		"two machine configurations": {func(c *machineconfig.Config) {
			c.Activation = &machineconfig.Activation{Native: &machineconfig.Passthrough{Format: "talos"}}
		}, "/bootstrap/secret two-documents"},
		"an activation":                {func(c *machineconfig.Config) { c.Activation = &machineconfig.Activation{Kind: "kubeadm"} }, "/bootstrap/kind not-expressible"},
		"no document":                  {func(c *machineconfig.Config) { c.Document = nil }, "/bootstrap no-document"},
		"a document of another format": {func(c *machineconfig.Config) { c.Document.Format = "butane" }, "/document wrong-format"},
		"arguments of the image": {func(c *machineconfig.Config) {
			*c = *document(strings.Replace(plain, "  files: []", "  install: {grubUseUKICmdline: true}", 1))
			c.Kernel.Args = []string{"a"}
		}, "/kernel/args not-expressible"},
		"a list where a map stands": {func(c *machineconfig.Config) {
			*c = *document(strings.Replace(plain, "  files: []", "  files: {a: b}", 1))
			c.Files = []machineconfig.File{{Path: "/var/a"}}
		}, "/document invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := document(plain)
			c.change(cfg)
			out, r := render(cfg)
			if len(r) != 1 || r[0].Path+" "+r[0].Code != c.want || out != "" {
				t.Errorf("%v", r)
			}
		})
	}
}

func TestASecretDocumentTakesNothingButAuthorities(t *testing.T) {
	a, _, err := New().Emit(machineconfig.BootstrapInput{Spec: machineconfig.BootstrapSpec{Secret: "m"}, Secret: []byte(plain)})
	if err != nil {
		t.Fatal(err)
	}
	c := &machineconfig.Config{Activation: a, Host: machineconfig.HostIdentity{Hostname: "n"}, Trust: machineconfig.Trust{CAs: []string{"PEM\n"}}}
	out, r := render(c)
	want := "«secret://m»\n---\napiVersion: v1alpha1\nkind: TrustedRootsConfig\nname: slipway-0\ncertificates: |\n  PEM\n"
	if got := string(late.Redact([]byte(out))); got != want || len(r) != 1 || r[0].Severity != machineconfig.SeverityWarning {
		t.Errorf("%v\n%s", r, got)
	}
	c.Time.NTPServers = []string{"a"}
	if out, r := render(c); out != "" || len(r) != 2 || r[1].Path != "/time" || !strings.Contains(r[1].Hint, "secret") {
		t.Errorf("%v\n%s", r, out)
	}
}

func TestSecretsThatAreNoMachineConfigurationAreRefusedWithoutBeingShown(t *testing.T) {
	canary := "canary0123"
	for name, text := range map[string]string{
		"no YAML":              "a: [" + canary,
		"an unknown anchor":    "a: *" + canary,
		"a list":               "- " + canary,
		"another version":      strings.Replace(plain, "v1alpha1", canary, 1),
		"another type":         strings.Replace(plain, "worker", canary, 1),
		"no token":             strings.Replace(plain, "token:", "tokens:", 1),
		"no endpoint":          strings.Replace(plain, "https://10.0.0.10:6443", "", 1),
		"a key twice":          strings.Replace(plain, "  type: worker", "  type: worker\n  type: "+canary, 1),
		"an alias":             strings.Replace(plain, "abc.def", "&a "+canary+"\n  env: *a", 1),
		"two main documents":   plain + "---\nversion: " + canary,
		"a kind without group": plain + "---\nkind: X\na: " + canary,
		"a map as a key":       plain + "---\n{a: b}: " + canary,
		"nothing":              "# " + canary,
		"too deep":             strings.Repeat("{a: ", 200) + canary + strings.Repeat("}", 200),
		"too long":             plain + strings.Repeat("# "+canary+"\n", 100000),
		"too many documents":   plain + strings.Repeat("---\na: b\nkind: c\napiVersion: d\n", 300),
	} {
		t.Run(name, func(t *testing.T) {
			a, _, err := New().Emit(machineconfig.BootstrapInput{Spec: machineconfig.BootstrapSpec{Secret: "m"}, Secret: []byte(text)})
			var e *inventory.Error
			if a != nil || !errors.As(err, &e) || e.Hint == "" || strings.Contains(err.Error(), canary) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestWhatADocumentLacksIsNamedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"\nversion: v1alpha1\nmachine: {type: worker}\n":                       "line 2: the document has no cluster",
		"\nversion: v1alpha1\ncluster: {}\n":                                   "line 2: the document has no machine",
		"version: v1alpha1\nmachine: {type: worker}\ncluster: []\n":            "line 3: cluster is not a map",
		"machine: {}\ncluster: {}\nversion: v2\n":                              "line 3: version is not v1alpha1",
		"version: v1alpha1\nmachine:\n  type: node\ncluster: {clusterName: a}": "line 3: machine.type is neither",
	} {
		if _, err := parse([]byte(text), false); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestOtherSpecificationsThatAreRefused(t *testing.T) {
	for name, in := range map[string]machineconfig.BootstrapInput{
		"no secret and no document": {Spec: machineconfig.BootstrapSpec{}},
		"labels for a secret":       {Spec: machineconfig.BootstrapSpec{Secret: "m", Labels: map[string]string{"a": "b"}}},
		"another role":              {Spec: machineconfig.BootstrapSpec{Secret: "m", Role: machineconfig.Init}, Secret: []byte(plain)},
	} {
		if a, _, err := New().Emit(in); a != nil || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if a, _, err := New().Emit(machineconfig.BootstrapInput{Config: document(plain)}); a != nil || err != nil {
		t.Errorf("a document of the profile: %v %v", a, err)
	}
}

func TestEveryFieldHasACell(t *testing.T) {
	cells := NewProvisioner().Capabilities(machineconfig.Target{})
	if len(cells) != len(machineconfig.Fields()) {
		t.Errorf("%d cells for %d fields", len(cells), len(machineconfig.Fields()))
	}
	for path, c := range cells {
		if c.Support == 0 || c.Support == machineconfig.Unsupported && c.Note == "" {
			t.Errorf("%s: %+v", path, c)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add(plain, "n", "eth0", "/var/a", "x")
	f.Add("version: v1alpha1\nmachine: {type: worker, token: a, network: [], files: {}}\ncluster: {controlPlane: {endpoint: x}}", "n", "a", "/var/b", late.Marker("secret://x"))
	f.Fuzz(func(t *testing.T, doc, name, port, path, text string) {
		c := document(doc)
		c.Host.Hostname = name
		c.Network.Interfaces = []machineconfig.Interface{{Name: port, L3: machineconfig.L3{Addresses: []string{text}}}}
		c.Network.VLANs = []machineconfig.VLAN{{Name: text, Parent: port, ID: 3}}
		c.Files = []machineconfig.File{{Path: path, Content: machineconfig.Content{Text: text}}}
		c.Kernel = machineconfig.Kernel{Args: []string{text}, Modules: []string{text}, Sysctl: map[string]string{text: text}}
		c.Time.NTPServers = []string{text}
		out, r := render(c)
		if (out == "") != r.HasErrors() {
			t.Fatalf("%v\n%s", r, out)
		}
		if out != "" {
			if _, err := parse([]byte(out), false); err != nil {
				t.Fatalf("what we write we do not read: %v\n%s", err, out)
			}
		}
	})
}

func TestMembersAndInterfacesThatAreThereGetNoSecondEntry(t *testing.T) {
	c := document(strings.Replace(plain, "interface: eth0 # stays", "deviceSelector: {hardwareAddr: \"52:54:00:00:00:AB\"}", 1))
	c.Network.Interfaces = []machineconfig.Interface{
		{Name: "a", MAC: "52:54:00:00:00:ab", L3: machineconfig.L3{Addresses: []string{"10.0.0.2/24"}}}, {Name: "b"}, {Name: "c"},
	}
	c.Network.Bonds = []machineconfig.Bond{{Name: "bond0", Mode: "802.3ad", Members: []string{"b", "c"}}}
	out, r := render(c)
	docs, err := parse([]byte(out), false)
	if err != nil {
		t.Fatal(err, r)
	}
	all := lookup(docs.main, "machine", "network", "interfaces").Content
	if len(all) != 2 || lookup(all[0], "addresses") == nil || scalar(lookup(all[1], "interface")) != "bond0" {
		t.Errorf("%d entries in\n%s", len(all), out)
	}
}
