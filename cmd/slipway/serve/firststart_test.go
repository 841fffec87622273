package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"slipway.dev/slipway/cmd/slipway/serve/trouble"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/proxy"
)

func TestFirstSubnet(t *testing.T) {
	foreign := asked{servers: []netip.Addr{netip.MustParseAddr("10.0.0.2")}}
	for _, tc := range []struct {
		name, own, mode, ranged string
		others                  asked
		want                    inventory.SubnetMode
		first, last             string
	}{
		{name: "a quiet network gets its upper half as range", own: "10.0.0.1/24", mode: "auto", want: "full", first: "10.0.0.128", last: "10.0.0.254"},
		{name: "our own address at the top is left out", own: "10.0.0.254/24", mode: "auto", want: "full", first: "10.0.0.128", last: "10.0.0.253"},
		{name: "our own address at the start of the half is left out", own: "10.0.0.128/24", mode: "auto", want: "full", first: "10.0.0.129", last: "10.0.0.254"},
		{name: "our own address in the half takes the larger part", own: "10.0.0.240/24", mode: "full", want: "full", first: "10.0.0.128", last: "10.0.0.239"},
		{name: "a network with another server is left to it", own: "10.0.0.1/24", mode: "auto", others: foreign, want: "reservations"},
		{name: "a network that could not be asked may have another server", own: "10.0.0.1/24", mode: "auto", others: asked{err: errors.New("not permitted")}, want: "reservations"},
		{name: "half an answer is enough to know of another server", own: "10.0.0.1/24", mode: "auto", others: asked{servers: foreign.servers, err: errors.New("cut off")}, want: "reservations"},
		{name: "one that was not asked is not taken for a quiet one", own: "10.0.0.1/24", mode: "auto", others: notAsked, want: "reservations"},
		{name: "the admin can insist without an answer", own: "10.0.0.1/24", mode: "full", others: notAsked, want: "full", first: "10.0.0.128", last: "10.0.0.254"},
		{name: "the admin can insist", own: "10.0.0.1/24", mode: "full", others: foreign, want: "full", first: "10.0.0.128", last: "10.0.0.254"},
		{name: "a range can be given", own: "10.0.0.1/8", mode: "auto", ranged: "10.1.0.0-10.90.255.255", want: "full", first: "10.1.0.0", last: "10.90.255.255"},
		{name: "two addresses make no range", own: "10.0.0.1/30", mode: "auto", want: "full"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Default()
			c.Mode, c.Range = tc.mode, tc.ranged
			s, err := c.firstSubnet("Eno2.100", netip.MustParsePrefix(tc.own), tc.others)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != "eno2-100" || s.Mode != tc.want {
				t.Errorf("subnet %s in mode %s, want eno2-100 in mode %s", s.Name, s.Mode, tc.want)
			}
			if tc.first == "" {
				if len(s.Ranges) != 0 {
					t.Errorf("ranges %v, want none", s.Ranges)
				}
				return
			}
			want := inventory.Range{First: netip.MustParseAddr(tc.first), Last: netip.MustParseAddr(tc.last)}
			if len(s.Ranges) != 1 || s.Ranges[0] != want {
				t.Errorf("ranges %v, want %v", s.Ranges, want)
			}
		})
	}
}

func TestConfigurationErrorsNameFileLineAndHint(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"an unknown key", "interfaces: [lo]\nbootprot: 80\n", "slipway.yaml: line 2: field bootprot not found"},
		{"a value of the wrong kind", "interfaces: [lo]\n\nbootPort: eighty\n", "slipway.yaml: line 3: cannot unmarshal !!str `eighty` into int"},
		{"a word that is not known", "interfaces: [lo]\nmode: mirror\n", `slipway.yaml: line 2: --mode "mirror" is not known`},
		{"an unknown key of a quirk", "quirks:\n  - vendor: ACME\n    produkt: x\n", "slipway.yaml: line 3: field produkt not found"},
		{"a quirk that cannot be", "quirks:\n  - vendor: ACME\n  - vendor: ACME\n    firmware: ufi\n", `slipway.yaml: line 3: quirk: "ufi" is not a firmware`},
		{"a file that would be cut", "interfaces: [lo]\n" + strings.Repeat("# "+strings.Repeat("x", 1022)+"\n", 1024) + "mode: full\n", "slipway.yaml is larger than 1 MiB"},
		{"broken YAML", "interfaces: [lo\n", "slipway.yaml: line 1: did not find expected ',' or ']'"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "slipway.yaml")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			c := Default()
			err := c.ReadFile(path)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "in type") {
				t.Fatalf("error %v, want %s", err, tc.want)
			}
			if e, ok := err.(*inventory.Error); !ok || e.Hint == "" {
				t.Errorf("no hint with %v", err)
			}
		})
	}
}

func TestBadSettingsAreRefusedWithAHint(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*Config)
		want string
	}{
		{"no interface", func(c *Config) { c.Interfaces = nil }, "no interface"},
		{"an interface that is not there", func(c *Config) { c.Interfaces = []string{"eno99"} }, `no interface "eno99"`},
		{"an interface named twice", func(c *Config) { c.Interfaces = []string{"lo", "lo"} }, `interface "lo" is named twice`},
		{"the loopback interface", func(*Config) {}, "no machine boots on \"lo\""},
		{"a port beyond the last", func(c *Config) { c.BootPort = 99999 }, "is not between 1 and 65535"},
		{"an unknown mode", func(c *Config) { c.Mode = "mirror" }, `--mode "mirror" is not known`},
		{"a reversed word for unknown machines", func(c *Config) { c.Unknown = "boot" }, `--unknown "boot" is not known`},
		{"a range with one end", func(c *Config) { c.Range = "10.0.0.1" }, "is not a range"},
		{"a certificate without its key", func(c *Config) { c.AdminTLSCert = "a.crt" }, "go together"},
		{"a proxy without address", func(c *Config) { c.TrustedProxies = []string{"proxy.example"} }, "neither an address nor a network"},
		{"a proxy that is everybody", func(c *Config) { c.TrustedProxies = []string{"0.0.0.0/0"} }, "trusts everybody"},
		{"PROXY protocol of anybody", func(c *Config) { c.AdminProxyProtocol = true }, "needs trustedProxies"},
		{"an external URL with a path", func(c *Config) { c.ExternalURL = "https://example.org/slipway" }, "is no address without a path"},
		{"an admin door without port", func(c *Config) { c.AdminListen = "127.0.0.1" }, "is not an address with a port"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Default()
			c.Interfaces = []string{"lo"}
			tc.edit(&c)
			err := c.Validate()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want one with %q", err, tc.want)
			}
			var e *inventory.Error
			if !errors.As(err, &e) || e.Hint == "" {
				t.Errorf("no hint with %v", err)
			}
		})
	}
}

// takenPort is a TCP port that another program has, and its process.
func takenPort(t *testing.T) (port, pid int) {
	t.Helper()
	taken, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := taken.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "600")
	cmd.ExtraFiles = []*os.File{f}
	if err := errors.Join(cmd.Start(), f.Close(), taken.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return taken.Addr().(*net.TCPAddr).Port, cmd.Process.Pid
}

func TestAStartThatFailsLeavesNoSubnetAndUsesUpNoToken(t *testing.T) {
	port, holder := takenPort(t)
	for _, tc := range []struct {
		name string
		edit func(*Config)
		says string
	}{
		{"a range outside of the network", func(c *Config) { c.Range = "10.0.0.1-10.0.0.2" }, "10.0.0.1"},
		{"a loader folder that is not there", func(c *Config) { c.Loaders = []string{"/nonexistent"} }, "/nonexistent"},
		{"a catalogue that is not there", func(c *Config) { c.Catalogue = "/nonexistent" }, "/nonexistent"},
		{"a boot port that another program has", func(c *Config) { c.BootPort = port }, fmt.Sprintf("sleep (pid %d)", holder)},
		{"an admin port that another program has", func(c *Config) { c.AdminListen = fmt.Sprintf("127.0.0.1:%d", port) }, fmt.Sprintf("sleep (pid %d)", holder)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			c := Default()
			c.Interfaces, c.Mode, c.Out, c.LogTo = []string{"lo"}, "full", &out, io.Discard
			c.DataDir, c.AdminListen = t.TempDir(), "127.0.0.1:0"
			tc.edit(&c)
			store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			a := &appliance{cfg: c, db: store, log: newLog(c), metrics: prometheus.NewRegistry(), alarms: trouble.NewAlarms(), reserve: trouble.OpenReserve(c.DataDir, newLog(c))}
			a.gates = trouble.NewGates(1024, false, a.isKnownAt, nil, proxy.Trusted{})
			if a.egress, err = egressPolicy(&a.cfg, &a.adminPort); err != nil {
				t.Fatal(err)
			}
			if err := a.join(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer a.member.Leave()
			err = a.start(t.Context())
			if err == nil && c.Range != "" {
				err = a.settle(t.Context())
			} else if err == nil {
				err = a.serve(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("it starts, or says %v", err)
			}
			if err := store.Read(t.Context(), func(tx inventory.Tx) error {
				tokens, err := tx.ListTokens()
				subnets, err1 := tx.Subnets().List(inventory.Page{})
				if _, statErr := os.Stat(filepath.Join(c.DataDir, firstTokenFile)); statErr == nil {
					t.Error("there is a file of a token")
				}
				if len(tokens) != 0 || len(subnets) != 0 || strings.Contains(out.String(), "token") {
					t.Errorf("there is a token %v or a subnet %v; shown: %s", tokens, subnets, out.String())
				}
				return errors.Join(err, err1)
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestSettingsForAFirstStartThatComeTooLateAreNoticed(t *testing.T) {
	has := inventory.Subnet{
		Mode: inventory.ModeFull, Unknown: inventory.UnknownDisk,
		Ranges: []inventory.Range{{First: netip.MustParseAddr("10.0.0.10"), Last: netip.MustParseAddr("10.0.0.20")}},
	}
	for _, tc := range []struct {
		name string
		edit func(*Config)
		want bool
	}{
		{"the defaults", func(*Config) {}, false},
		{"what it is anyway", func(c *Config) { c.Mode, c.Unknown, c.Range = "full", "disk", "10.0.0.10-10.0.0.20" }, false},
		{"another mode", func(c *Config) { c.Mode = "reservations" }, true},
		{"another policy", func(c *Config) { c.Unknown = "wait" }, true},
		{"another range", func(c *Config) { c.Range = "10.0.0.10-10.0.0.30" }, true},
	} {
		c := Default()
		if tc.edit(&c); c.wantsOther(has) != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, !tc.want, tc.want)
		}
	}
}

func TestTheFirstTokenLiesInAFileForADay(t *testing.T) {
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	dir, now := t.TempDir(), time.Now()
	if err := os.WriteFile(filepath.Join(dir, firstTokenFile), []byte("left by somebody"), 0o644); err != nil {
		t.Fatal(err)
	}
	path, err := firstToken(t.Context(), store, dir, now)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v, mode %v", err, statErr, info.Mode())
	}
	if err := store.Read(t.Context(), func(tx inventory.Tx) error {
		k, err := tx.FindTokenByHash(access.HashToken(strings.TrimSpace(string(text))))
		if err != nil || k.Grants.Everywhere() != inventory.Admin || k.ExpiresAt.Sub(now).Round(time.Minute) != firstTokenFor {
			t.Errorf("token %+v, %v", k, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if again, err := firstToken(t.Context(), store, dir, now); again != "" || err != nil {
		t.Errorf("a second start makes another: %q, %v", again, err)
	}
	if err := store.Write(t.Context(), func(tx inventory.Tx) error { return tx.DeleteToken(firstTokenName) }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- dropFirstToken(ctx, store, dir, slog.New(slog.DiscardHandler)) }()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err != nil {
			break
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file stays when its token is gone")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTheDataDirectoryIsForNobodyElse(t *testing.T) {
	made, old := filepath.Join(t.TempDir(), "a", "b"), filepath.Join(t.TempDir(), "old")
	if err := os.Mkdir(old, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{made, old} {
		if err := makeDataDir(dir); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
}
