package newcomer

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/cmd/slipway/serve/invite"
	"slipway.dev/slipway/inventory"
)

// machine is a new machine, with a folder for its configuration.
type machine struct {
	t        *testing.T
	dir, etc string
}

func newMachine(t *testing.T) *machine {
	dir := t.TempDir()
	m := &machine{t, dir, filepath.Join(dir, "etc")}
	if err := os.Mkdir(m.etc, 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) file(name, text string) string {
	m.t.Helper()
	path := filepath.Join(m.etc, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	return path
}

// handed is what an instance sends.
func handed() invite.HandOver {
	return invite.HandOver{
		Name: "node2", Password: "pass-1234",
		Settings: "database: postgres://u@db/d?sslmode=disable\nsite: berlin\nbootTLSPort: 8443\nconfidential: true\n",
	}
}

func (m *machine) plan(h invite.HandOver, o Options) (*plan, error) {
	m.t.Helper()
	had, err := readConfig(filepath.Join(m.etc, "config.yaml"))
	if err != nil {
		m.t.Fatal(err)
	}
	return makePlan(had, h, o, had.dataDir(o.DataDir))
}

// written does what the plan says, and reads the file.
func (m *machine) written(p *plan) (serve.Config, string) {
	m.t.Helper()
	var w writer
	p.write(&w)
	if w.err != nil {
		m.t.Fatal(w.err)
	}
	text, err := os.ReadFile(p.config)
	if err != nil {
		m.t.Fatal(err)
	}
	c, err := serve.ParseSettings(text)
	if err != nil {
		m.t.Fatal(err)
	}
	return c, string(text)
}

func TestAConfigurationIsMade(t *testing.T) {
	m := newMachine(t)
	p, err := m.plan(handed(), Options{Interfaces: []string{"eno2"}, DataDir: "/data", InstanceListen: ":9"})
	if err != nil {
		t.Fatal(err)
	}
	c, text := m.written(p)
	if c.Site != "berlin" || c.BootTLSPort != 8443 || !c.Confidential || c.Instance != "node2" || c.DataDir != "/data" || c.InstanceListen != ":9" ||
		c.Interfaces[0] != "eno2" || c.DatabasePasswordFile != filepath.Join(m.etc, "database-password") {
		t.Errorf("%s", text)
	}
	if strings.Contains(text, "pass-1234") || strings.Contains(text, "keepHistory") {
		t.Errorf("it has the password, or defaults:\n%s", text)
	}
	if b, err := os.ReadFile(c.DatabasePasswordFile); err != nil || string(b) != "pass-1234\n" {
		t.Errorf("%q, %v", b, err)
	}
	// Once more, with the same.
	p, err = m.plan(handed(), Options{DataDir: "/data"})
	if err != nil || p.text != nil {
		t.Errorf("%s, %v", p.text, err)
	}
}

func TestMissingLinesAreAddedAndNoneIsChanged(t *testing.T) {
	const had = "# ours\ninterfaces: [eno2]   # the racks\nadminListen: 0.0.0.0:8067\nlogLevel: debug"
	m := newMachine(t)
	m.file("config.yaml", had)
	p, err := m.plan(handed(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, text := m.written(p)
	if !strings.HasPrefix(text, had+"\n# slipway instance join") || c.AdminListen != "0.0.0.0:8067" || c.Site != "berlin" || c.LogLevel != "debug" {
		t.Errorf("%s", text)
	}
	for text, want := range map[string]string{
		"interfaces: [eno2]\nsite: paris\n":                       "site is paris, and has to be berlin",
		"interfaces: [eno2]\nconfidential: false\n":               "confidential is the default, and has to be true",
		"interfaces: [eno2]\nbootPort: 8080\n":                    "bootPort is 8080, and has to be the default",
		"interfaces: [eno2]\ninstance: node3\n":                   "instance is node3, and has to be node2",
		"interfaces: [eno2]\ndatabase: postgres://u@other/d\n":    "database is postgres://u@other/d, and has to be postgres://u@db/d?sslmode=disable",
		"interfaces: [eno2]\nsecondFactor: admin\nsite: berlin\n": "secondFactor is admin, and has to be the default",
		"{interfaces: [eno2]}\n":                                  "no lines can be added at the end",
		"interfaces: [eno2]\n...\n":                               "no lines can be added at the end",
		"interfaces: [eno2]\ndataDir: /other\n":                   "dataDir is /other, and has to be /data",
		"interfaces: [eno2]\ninstanceListen: 10.0.0.1:8069\n":     "instanceListen is 10.0.0.1:8069, and has to be the default",
		"interfaces: [eno1]\n":                                    "interfaces is - eno1, and has to be - eno2",
	} {
		m.file("config.yaml", text)
		p, err := m.plan(handed(), Options{DataDir: "/data", InstanceListen: ":8069", Interfaces: []string{"eno2"}})
		if !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), want) || inventory.HintOf(err) == "" {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err == nil {
			t.Errorf("%s", p.text)
		}
	}
}

func TestFilesThatSettingsNameComeAlong(t *testing.T) {
	m := newMachine(t)
	h := handed()
	h.Settings = "database: postgres://u@db/d?sslmode=verify-full&sslrootcert=/there/ca.pem\ncatalogue: /there/c.yaml\n"
	h.Files = []invite.File{
		{Name: "database-ca.crt", Data: []byte("the CA\n")},
		{Name: "catalogue.yaml", Data: []byte("systems: []\n")},
		{Name: "../../etc/passwd", Data: []byte("root::0:0\n")},
		{Name: "oidc-secret", Data: []byte("nobody names it")},
	}
	p, err := m.plan(h, Options{Interfaces: []string{"eno2"}})
	if err != nil {
		t.Fatal(err)
	}
	var w writer
	p.write(&w)
	want := []string{"catalogue.yaml", "database-ca.crt", "database-password", "config.yaml"}
	for n := range want {
		want[n] = filepath.Join(m.etc, want[n])
	}
	if strings.Join(w.wrote, " ") != strings.Join(want, " ") || w.err != nil {
		t.Errorf("it wrote %q, %v", w.wrote, w.err)
	}
	if url := "postgres://u@db/d?sslmode=verify-full&sslrootcert=" + want[1]; p.want.Database != url || p.want.Catalogue != want[0] {
		t.Errorf("%s %s", p.want.Database, p.want.Catalogue)
	}
	if info, err := os.Stat(want[1]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	h.Files = h.Files[1:]
	if _, err := m.plan(h, Options{Interfaces: []string{"eno2"}}); !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), "database-ca.crt") {
		t.Errorf("a file is missing: %v", err)
	}
}

func TestFilesOfOthersStay(t *testing.T) {
	m := newMachine(t)
	m.file("database-password", "another\n")
	if _, err := m.plan(handed(), Options{Interfaces: []string{"eno2"}}); !inventory.IsKind(err, inventory.Conflict) ||
		!strings.Contains(err.Error(), "database-password exists") || strings.Contains(err.Error(), "pass-1234") {
		t.Errorf("another password: %v", err)
	}
	m.file("database-password", "pass-1234")
	ca := m.file("our-ca.pem", "the CA")
	m.file("config.yaml", "interfaces: [eno2]\ndatabase: postgres://u@db/d?sslmode=verify-full&sslrootcert="+ca+"\n")
	h := handed()
	h.Settings = "database: postgres://u@db/d?sslmode=verify-full&sslrootcert=/there/ca.pem\n"
	h.Files = []invite.File{{Name: "database-ca.crt", Data: []byte("the CA\n")}}
	p, err := m.plan(h, Options{})
	if err != nil || p.paths["database-ca.crt"] != ca {
		t.Fatalf("the same file under another name: %v", err)
	}
	h.Files[0].Data = []byte("another CA\n")
	if _, err := m.plan(h, Options{}); !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), "database is ") {
		t.Errorf("another CA: %v", err)
	}
}

func TestInterfacesByTheirNetworks(t *testing.T) {
	if got, err := interfaces([]string{"a"}, []string{"b"}, nil); err != nil || got[0] != "a" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := interfaces(nil, []string{"b"}, nil); err != nil || got[0] != "b" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := interfaces(nil, nil, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("203.0.113.0/30")}); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("in no network: %v", err)
	}
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && i.Flags&net.FlagLoopback == 0 && p.Addr().Is4() {
				if got, err := interfaces(nil, nil, []netip.Prefix{p.Masked()}); err != nil || got[0] == "" {
					t.Errorf("%s: %q, %v", p, got, err)
				}
			}
		}
	}
}

func TestAProofIsDrawnOnceForACode(t *testing.T) {
	dir := t.TempDir()
	a, err := proofFor(dir, "one")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := proofFor(dir, "one"); err != nil || string(b) != string(a) {
		t.Errorf("again: %x, %x, %v", a, b, err)
	}
	if b, err := proofFor(dir, "two"); err != nil || string(b) == string(a) {
		t.Errorf("another code: %v", err)
	}
	if info, err := os.Stat(proofFile(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(proofFile(dir), []byte("two 12\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := proofFor(dir, "two"); err != nil || len(b) != 32 {
		t.Errorf("after a damaged file: %x, %v", b, err)
	}
}
