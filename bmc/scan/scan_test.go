package scan

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	bmcsim "github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/hal/mock"
	"github.com/bougou/go-ipmi/pkg/server"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/ipmi/ipmitest"
	"slipway.dev/slipway/inventory"
)

// controller starts go-ipmi's server on an address of the loopback network.
func controller(t *testing.T, addr string) netip.AddrPort {
	t.Helper()
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := server.NewServer(bmcsim.New(bmcsim.DeviceInfo{IPMIVersion: 0x02}, [16]byte{}, mock.New()), c)
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(context.Background()) }()
	t.Cleanup(func() { s.Close(); <-done })
	return netip.MustParseAddrPort(c.LocalAddr().String())
}

// speaker answers every datagram with the same bytes, none at all for nil.
func speaker(t *testing.T, addr string, answer []byte) {
	t.Helper()
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			_, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer != nil {
				c.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() { c.Close(); <-done })
}

func TestScanFindsControllersAmongOthers(t *testing.T) {
	port := controller(t, "127.0.0.3:0").Port()
	controller(t, fmt.Sprintf("127.0.0.9:%d", port))
	speaker(t, fmt.Sprintf("127.0.0.5:%d", port), []byte("GET / HTTP/1.1\r\n\r\n and more of it"))
	speaker(t, fmt.Sprintf("127.0.0.6:%d", port), nil)
	speaker(t, fmt.Sprintf("127.0.0.7:%d", port), append([]byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x40, 0, 0, 16}, make([]byte, 16)...)) // RMCP without IPMI

	redfish := func(_ context.Context, a netip.Addr) (Found, error) {
		if a.As4()[3] != 9 {
			return Found{}, inventory.Errorf(inventory.Unavailable, "nothing")
		}
		return Found{Address: "https://127.0.0.9", Vendor: "Dell\x1b[31m", Product: strings.Repeat("x", 500)}, nil
	}
	r, err := ParseRange("127.0.0.0/28")
	if err != nil {
		t.Fatal(err)
	}
	var got []Found
	n, err := Scan(t.Context(), Config{
		Range: r, IPMIPort: port, Redfish: redfish, Timeout: 300 * time.Millisecond,
		MAC: func(netip.Addr) inventory.MAC { return "52:54:00:aa:00:01" },
	}, func(f Found) { got = append(got, f) })
	if err != nil || n != 14 {
		t.Fatalf("%d addresses, %v", n, err)
	}
	slices.SortFunc(got, func(a, b Found) int {
		return cmp.Or(a.IP.Compare(b.IP), strings.Compare(string(a.Driver), string(b.Driver)))
	})
	ipmiFound := func(ip string) Found {
		return Found{
			IP: netip.MustParseAddr(ip), Driver: inventory.IPMI, Address: fmt.Sprintf("%s:%d", ip, port), Version: "2.0",
			MAC: "52:54:00:aa:00:01",
		}
	}
	want := []Found{ipmiFound("127.0.0.3"), ipmiFound("127.0.0.9"), {
		IP: netip.MustParseAddr("127.0.0.9"), Driver: inventory.Redfish, Address: "https://127.0.0.9", Vendor: "Dell [31m",
		Product: strings.Repeat("x", 120), MAC: "52:54:00:aa:00:01",
	}}
	if diff := gocmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreFields(Found{}, "Warning")); diff != "" {
		t.Error(diff)
	}
}

func TestScanFindsARealSimulator(t *testing.T) {
	s := ipmitest.Start(t, ipmitest.Options{Addr: "127.0.0.4:0", User: "slipway", Password: "secret"})
	at := netip.MustParseAddrPort(s.Addr)
	var got []Found
	_, err := Scan(t.Context(), Config{Range: Range{at.Addr(), at.Addr()}, IPMIPort: at.Port()}, func(f Found) { got = append(got, f) })
	if err != nil || len(got) != 1 || got[0].Version != "2.0" || got[0].Address != s.Addr || got[0].UUID != ipmitest.UUID {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestScanKeepsItsRateAndItsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, all atomic.Int64
		redfish := func(ctx context.Context, _ netip.Addr) (Found, error) {
			all.Add(1)
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			<-ctx.Done() // nobody there
			return Found{}, ctx.Err()
		}
		r, err := ParseRange("10.0.0.0/23")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		c := Config{Range: r, SkipIPMI: true, Redfish: redfish, Parallel: 8, Rate: 100, Timeout: 50 * time.Millisecond}
		if n, err := Scan(t.Context(), c, func(Found) {}); err != nil || n != 510 || all.Load() != 510 {
			t.Errorf("%d addresses, %v", n, err)
		}
		if took := time.Since(start); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("510 addresses at 100 a second took %s", took)
		}
		c.Rate, start = 10_000, time.Now()
		if _, err := Scan(t.Context(), c, func(Found) {}); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < 3*time.Second || most.Load() != 8 {
			t.Errorf("eight at once: %d were, for %s", most.Load(), took)
		}
	})
}

func TestScanEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		stuck := func(ctx context.Context, _ netip.Addr) (Found, error) { <-ctx.Done(); return Found{}, ctx.Err() }
		r, err := ParseRange("10.0.0.0/16")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		n, err := Scan(ctx, Config{Range: r, SkipIPMI: true, Redfish: stuck}, func(Found) {})
		if bmc.KindOf(err) != inventory.Unavailable || n == 0 || n >= 65534 || time.Since(start) != time.Second {
			t.Errorf("%d addresses, %v, %s", n, err, time.Since(start))
		}
	})
}

func TestScanRefusesNonsense(t *testing.T) {
	for name, c := range map[string]Config{
		"no range":            {},
		"nothing to look for": {Range: FromPrefix(netip.MustParsePrefix("10.0.0.0/24")), SkipIPMI: true},
		"a huge range":        {Range: FromPrefix(netip.MustParsePrefix("10.0.0.0/8"))},
	} {
		if n, err := Scan(t.Context(), c, nil); n != 0 || bmc.KindOf(err) != inventory.Invalid {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

func TestParseRange(t *testing.T) {
	for text, want := range map[string]struct {
		first, last string
		n           int
	}{
		"10.0.0.0/24":                   {"10.0.0.1", "10.0.0.254", 254},
		"10.0.0.77/24":                  {"10.0.0.1", "10.0.0.254", 254},
		"10.0.0.0/31":                   {"10.0.0.0", "10.0.0.1", 2},
		"10.0.0.5/32":                   {"10.0.0.5", "10.0.0.5", 1},
		"10.0.0.5":                      {"10.0.0.5", "10.0.0.5", 1},
		"10.0.0.5 - 10.0.1.4":           {"10.0.0.5", "10.0.1.4", 256},
		"10.1.0.0/16":                   {"10.1.0.1", "10.1.255.254", 65534},
		"10.0.0.1-10.1.0.0":             {"10.0.0.1", "10.1.0.0", 65536},
		"fd00::/112":                    {"fd00::", "fd00::ffff", 65536},
		"fd00::1-fd00::10":              {"fd00::1", "fd00::10", 16},
		"10.0.0.1-10.1.0.1":             {},
		"10.0.0.9-10.0.0.1":             {},
		"10.0.0.0/15":                   {},
		"fd00::/64":                     {},
		"fd00::1-fd01::1":               {},
		"::1-10.0.0.1":                  {},
		"224.0.0.0/24":                  {},
		"0.0.0.0-0.0.0.9":               {},
		"255.255.255.0-255.255.255.255": {},
		"::ffff:10.0.0.1":               {},
		"10.0.0.1-":                     {},
		"10.0.0":                        {},
		"":                              {},
		"10.0.0.0/24/24":                {},
	} {
		r, err := ParseRange(text)
		if want.n == 0 {
			if bmc.KindOf(err) != inventory.Invalid {
				t.Errorf("%q: %v, %v", text, r, err)
			}
			continue
		}
		n := 0
		for range r.All() {
			n++
		}
		if err != nil || r.First.String() != want.first || r.Last.String() != want.last || r.N() != want.n || n != want.n {
			t.Errorf("%q: %v, %d, %d, %v", text, r, r.N(), n, err)
		}
	}
}

func FuzzParseRange(f *testing.F) {
	f.Add("10.0.0.0/24")
	f.Add("fd00::1-fd00::10")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRange(s)
		if err != nil {
			return
		}
		n := 0
		for range r.All() {
			n++
		}
		if n != r.N() || n < 1 || n > MaxN {
			t.Errorf("%q has %d addresses, and says %d", s, n, r.N())
		}
	})
}
