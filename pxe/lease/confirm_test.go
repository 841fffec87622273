package lease

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"slipway.dev/slipway/inventory"
)

func TestConfirm(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(x *table)
	}{
		{"selecting another address than the one offered is refused", func(x *table) {
			x.offer(client(1), "")
			x.want("request", x.ask(client(1), Selecting, "10.0.0.11"), "nak: "+string(NotWhatWasGiven))
		}},
		{"selecting without naming an address takes the offer", func(x *table) {
			x.offer(client(1), "")
			x.want("request", x.ask(client(1), Selecting, ""), "10.0.0.10")
		}},
		{"a request that names nothing and follows no offer is not answered", func(x *table) {
			x.want("request", x.ask(client(1), Selecting, ""), "silent: "+string(NoAddress))
			x.want("renew", x.ask(client(1), Renewing, ""), "silent: "+string(NoAddress))
		}},
		{"a request repeated after its answer was lost is answered again", func(x *table) {
			x.want("join", x.join(client(1)), "10.0.0.10")
			x.want("again", x.ask(client(1), Selecting, "10.0.0.10"), "10.0.0.10")
		}},
		{"init-reboot on another network is refused", func(x *table) {
			x.want("request", x.ask(client(1), InitReboot, "192.168.0.9"), "nak: "+string(WrongNetwork))
		}},
		{"init-reboot with the own address is granted", func(x *table) {
			x.join(client(1))
			x.want("request", x.ask(client(1), InitReboot, "10.0.0.10"), "10.0.0.10")
		}},
		{"init-reboot with another machine's address is refused", func(x *table) {
			x.join(client(1))
			x.want("request", x.ask(client(2), InitReboot, "10.0.0.10"), "nak: "+string(TakenByAnother))
		}},
		{"an address we lost the record of is granted when it is free", func(x *table) {
			x.want("renew", x.ask(client(1), Renewing, "10.0.0.13"), "10.0.0.13")
			x.want("other", x.ask(client(2), Rebinding, "10.0.0.13"), "nak: "+string(TakenByAnother))
		}},
		{"renewing prolongs the lease", func(x *table) {
			x.join(client(1))
			x.now = x.now.Add(12 * time.Hour)
			x.ask(client(1), Renewing, "10.0.0.10")
			if got := x.rows[addr("10.0.0.10")].ExpiresAt; !got.Equal(x.now.Add(24 * time.Hour)) {
				x.t.Errorf("ends at %s", got)
			}
		}},
		{"renewing after the end works while nobody else has the address", func(x *table) {
			x.join(client(1))
			x.now = x.now.Add(72 * time.Hour)
			x.want("renew", x.ask(client(1), Rebinding, "10.0.0.10"), "10.0.0.10")
		}},
		{"an acknowledgement that could not be stored promises nothing", func(x *table) {
			x.offer(client(1), "")
			r := x.book.Confirm(client(1), Selecting, addr("10.0.0.10"), x.now)
			x.book.Abort(r.Lease, x.now)
			x.now = x.now.Add(OfferFor)
			x.want("other", x.offer(client(2), "10.0.0.10"), "10.0.0.10")
		}},
		{"an acknowledgement that is being stored keeps its address", func(x *table) {
			x.offer(client(1), "")
			r := x.book.Confirm(client(1), Selecting, addr("10.0.0.10"), x.now)
			x.now = x.now.Add(2 * OfferFor)
			x.want("other", x.offer(client(2), "10.0.0.10"), "10.0.0.11")
			if !x.book.Commit(r.Lease) {
				x.t.Error("commit refused")
			}
		}},
		{"a lease declined while it was being stored is not committed", func(x *table) {
			x.offer(client(1), "")
			r := x.book.Confirm(client(1), Selecting, addr("10.0.0.10"), x.now)
			x.book.Decline(client(1), addr("10.0.0.10"), x.now)
			if x.book.Commit(r.Lease) {
				x.t.Error("commit of a declined address")
			}
		}},
		{"two answers to one request both count", func(x *table) {
			x.offer(client(1), "")
			r1 := x.book.Confirm(client(1), Selecting, addr("10.0.0.10"), x.now)
			r2 := x.book.Confirm(client(1), Selecting, addr("10.0.0.10"), x.now)
			if !x.book.Commit(r1.Lease) || !x.book.Commit(r2.Lease) {
				x.t.Error("one was refused")
			}
		}},
		{"a client that took another server's offer leaves ours", func(x *table) {
			x.offer(client(1), "")
			x.book.Forget(client(1))
			x.want("other", x.offer(client(2), ""), "10.0.0.10")
		}},
		{"reconfiguration does not lose an acknowledgement that is being stored", func(x *table) {
			x.offer(client(1), "")
			r := x.book.Confirm(client(1), Selecting, addr("10.0.0.10"), x.now)
			x.book.Reconfigure(x.net)
			x.want("other", x.offer(client(2), "10.0.0.10"), "10.0.0.11")
			if !x.book.Commit(r.Lease) {
				x.t.Error("commit refused")
			}
		}},
		{"boot leases are short", func(x *table) {
			c := client(1)
			c.IsBoot = true
			x.join(c)
			if l := x.rows[addr("10.0.0.10")]; !l.IsBoot || !l.ExpiresAt.Equal(x.now.Add(10*time.Minute)) {
				x.t.Errorf("%+v", l)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.do(newTable(t, rack())) })
	}
}

func TestAckHoldsWhatToStore(t *testing.T) {
	x := newTable(t, rack(), inventory.Reservation{Address: addr("10.0.0.77"), Subnet: "rack", MAC: macN(1), Hostname: "web1"})
	c := client(1)
	c.ClientID, c.Hostname, c.IsBoot = "01525400000001", "localhost\x00\n", true
	x.offer(c, "")
	got := x.book.Confirm(c, Selecting, addr("10.0.0.77"), t0)
	want := Result{Verdict: Ack, For: 10 * time.Minute, Hostname: "web1", Lease: inventory.Lease{
		Address: addr("10.0.0.77"), Subnet: "rack",
		MAC: macN(1), ClientID: "01525400000001", Hostname: "localhost", State: inventory.LeaseBound, IsBoot: true, StartsAt: t0,
		ExpiresAt: t0.Add(10 * time.Minute),
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
	x.book.Commit(got.Lease)
	if found, ok := x.book.Find("rack", addr("10.0.0.77")); !ok || found != got.Lease {
		t.Errorf("Find: %+v, %v", found, ok)
	}
}

func TestFirstUseIsProbedOnce(t *testing.T) {
	x := newTable(t, rack(), inventory.Reservation{Address: addr("10.0.0.77"), Subnet: "rack", MAC: macN(2)})
	first := func(n int) bool {
		o, _ := x.book.Offer(client(n), netip.Addr{}, x.now)
		return o.IsFirstUse
	}
	if !first(1) {
		t.Error("a pool address was not to be probed at its first use")
	}
	x.ask(client(1), Selecting, "10.0.0.10")
	if first(1) {
		t.Error("an address the client had is to be probed")
	}
	if first(2) {
		t.Error("a reserved address is to be probed")
	}
	if r := x.book.Confirm(client(3), InitReboot, addr("10.0.0.13"), x.now); !r.IsFirstUse {
		t.Error("an address taken over without an offer was not to be probed")
	}
}

func TestStateOf(t *testing.T) {
	zero, a := netip.IPv4Unspecified(), addr("10.0.0.10")
	for _, tt := range []struct {
		name           string
		names, unicast bool
		wanted, ciaddr netip.Addr
		want           State
	}{
		{"naming a server is selecting", true, false, a, zero, Selecting},
		{"an address wanted and none used is init-reboot", false, false, a, zero, InitReboot},
		{"an address used and sent to us alone is renewing", false, true, netip.Addr{}, a, Renewing},
		{"an address used and sent to all is rebinding", false, false, netip.Addr{}, a, Rebinding},
		{"nothing at all is a ROM that takes its offer", false, false, netip.Addr{}, zero, Selecting},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := StateOf(tt.names, tt.wanted, tt.ciaddr, tt.unicast); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestSubnetFor(t *testing.T) {
	subnets := []inventory.Subnet{
		{Name: "a", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Interface: "eth0"},
		{Name: "b", CIDR: netip.MustParsePrefix("10.0.1.0/24"), Interface: "eth0"},
		{Name: "c", CIDR: netip.MustParsePrefix("10.0.2.0/24"), Interface: "eth1"},
		{Name: "d", CIDR: netip.MustParsePrefix("10.9.0.0/24")},
	}
	zero := netip.IPv4Unspecified()
	for _, tt := range []struct {
		name string
		path Path
		want string
	}{
		{"link selection counts first", Path{Link: addr("10.0.2.1"), Selected: addr("10.0.0.0"), Relay: addr("10.9.0.1"), Interface: "eth0"}, "c"},
		{"subnet selection counts before the relay", Path{Selected: addr("10.0.1.0"), Relay: addr("10.9.0.1"), Interface: "eth0"}, "b"},
		{"a relay stands in the client's subnet", Path{Relay: addr("10.9.0.1"), Interface: "eth0"}, "d"},
		{"a relay of an unknown subnet is not served by the interface's", Path{Relay: addr("172.16.0.1"), Interface: "eth0"}, ""},
		{"a client that renews is where its address is", Path{Client: addr("10.0.1.77"), Relay: zero, Interface: "eth0", Local: []netip.Addr{addr("10.0.0.1")}}, "b"},
		{"an address of another interface does not count", Path{Client: addr("10.0.2.77"), Interface: "eth0", Local: []netip.Addr{addr("10.0.0.1")}}, "a"},
		{"without an address our own on the interface counts", Path{Client: zero, Interface: "eth0", Local: []netip.Addr{addr("10.0.1.1")}}, "b"},
		{"a subnet without an interface is found by our address", Path{Interface: "eth7", Local: []netip.Addr{addr("10.9.0.5")}}, "d"},
		{"an interface with an address of no subnet still has its own", Path{Interface: "eth1", Local: []netip.Addr{addr("192.0.2.1")}}, "c"},
		{"an unknown interface has none", Path{Interface: "eth7", Local: []netip.Addr{addr("192.0.2.1")}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := SubnetFor(subnets, tt.path); got.Name != tt.want {
				t.Errorf("got %q, want %q", got.Name, tt.want)
			}
		})
	}
}
