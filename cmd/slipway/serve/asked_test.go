package serve

import (
	"errors"
	"io"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

// rack makes the subnets of an interface that is ready.
func rack(t *testing.T) (*subnetMaker, doctor.Interface) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	c := Default()
	c.Interfaces, c.DataDir, c.LogTo = []string{"lo"}, t.TempDir(), io.Discard
	return &subnetMaker{cfg: &c, store: store, log: newLog(c)}, doctor.Interface{Name: "lo", IsThere: true, IsUp: true, HasLink: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}
}

func (m *subnetMaker) subnetForTest(t *testing.T) (s inventory.Subnet) {
	t.Helper()
	if err := m.store.Read(t.Context(), func(tx inventory.Tx) error {
		all, err := tx.Subnets().List(inventory.Page{})
		if len(all) == 1 {
			s = all[0]
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestANetworkThatCouldNotBeAskedIsAskedAgainAtTheNextStart(t *testing.T) {
	silent, heard := asked{}, asked{servers: []netip.Addr{netip.MustParseAddr("10.0.0.2")}}
	for _, tc := range []struct {
		name   string
		change bool // somebody changes the subnet between the starts
		next   asked
		want   inventory.SubnetMode
		again  bool // the start after that asks once more
	}{
		{name: "then nobody answers", next: silent, want: inventory.ModeFull},
		{name: "then another server answers", next: heard, want: inventory.ModeReservations},
		{name: "it cannot be asked then either", next: notAsked, want: inventory.ModeReservations, again: true},
		{name: "somebody has changed the subnet", change: true, next: silent, want: inventory.ModeReservations},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, eth := rack(t)
			checks, err := m.subnetOf(t.Context(), eth, asked{err: errors.New("UDP port 68 is taken by dhclient")})
			if err != nil || len(checks) != 1 || checks[0].Status != warning || !strings.Contains(checks[0].Detail, "dhclient") || checks[0].Hint == "" {
				t.Fatalf("%v, %+v", err, checks)
			}
			s := m.subnetForTest(t)
			if s.Mode != inventory.ModeReservations || len(s.Ranges) != 0 {
				t.Fatalf("without an answer: %+v", s)
			}
			if tc.change {
				if err := m.store.Write(t.Context(), func(tx inventory.Tx) error { s.MTU = 1500; return tx.Subnets().Update(&s, time.Now()) }); err != nil {
					t.Fatal(err)
				}
			}
			if names, err := m.unserved(t.Context()); err != nil || len(names) == 1 == tc.change {
				t.Fatalf("the next start asks on %v, %v", names, err)
			}
			if _, err := m.subnetOf(t.Context(), eth, tc.next); err != nil {
				t.Fatal(err)
			}
			s = m.subnetForTest(t)
			if s.Mode != tc.want || (len(s.Ranges) > 0) != (tc.want == inventory.ModeFull) {
				t.Errorf("%+v", s)
			}
			if names, err := m.unserved(t.Context()); err != nil || len(names) == 1 != tc.again {
				t.Errorf("the start after that asks on %v, %v", names, err)
			}
		})
	}
}

func TestNoSubnetIsMadeOnAnInterfaceWithoutLinkBeforeItCouldBeAsked(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*Config, *doctor.Interface)
		want inventory.SubnetMode // "": none is made
	}{
		"it is down":                     {func(_ *Config, i *doctor.Interface) { i.IsUp = false }, ""},
		"it has no link":                 {func(_ *Config, i *doctor.Interface) { i.HasLink = false }, ""},
		"it has no address":              {func(_ *Config, i *doctor.Interface) { i.Prefixes = nil }, ""},
		"it is down, and the mode given": {func(c *Config, i *doctor.Interface) { i.IsUp, c.Mode = false, "proxy" }, inventory.ModeProxy},
	} {
		t.Run(name, func(t *testing.T) {
			m, eth := rack(t)
			tc.edit(m.cfg, &eth)
			if _, err := m.subnetOf(t.Context(), eth, notAsked); err != nil {
				t.Fatal(err)
			}
			if s := m.subnetForTest(t); s.Mode != tc.want {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestTwoInterfacesInOneNetworkAreNamed(t *testing.T) {
	addrs := func(name string) []netip.Addr {
		return map[string][]netip.Addr{"eth1": {netip.MustParseAddr("10.0.0.1")}, "eth2": {netip.MustParseAddr("10.0.0.3")}, "eth3": {netip.MustParseAddr("10.3.0.1")}}[name]
	}
	subnets := []inventory.Subnet{
		{Name: "rack1", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Interface: "eth1"}, {Name: "any", CIDR: netip.MustParsePrefix("10.3.0.0/24")},
	}
	checks := sharedNetworks([]string{"eth1", "eth2", "eth3"}, addrs, subnets)
	if len(checks) != 1 || checks[0].Status != failed || checks[0].Name != "network of eth2" || !strings.Contains(checks[0].Detail, "served on eth1: no machine is answered on eth2") {
		t.Errorf("%+v", checks)
	}
}
