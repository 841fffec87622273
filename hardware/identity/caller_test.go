package identity

import (
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

const (
	own   = inventory.MAC("52:54:00:aa:00:01")
	own2  = inventory.MAC("52:54:00:aa:00:02")
	thief = inventory.MAC("52:54:00:bb:00:01")
)

func TestARequestBelongsToABootByOneOfTheWaysOnly(t *testing.T) {
	at, other := netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("10.0.0.66")
	six := netip.MustParseAddr("2001:db8::5")
	boot := Boot{Address: at, Ports: []inventory.MAC{own, own2}}
	for name, c := range map[string]struct {
		boot   Boot
		caller Caller
		way    Way
		why    string
	}{
		"its own address":                         {boot, Caller{Source: at}, ByAddress, ""},
		"a key from anywhere":                     {boot, Caller{Source: other, HasKey: true}, ByKey, ""},
		"a new lease of its own":                  {boot, Caller{Source: other, Lessee: own}, ByLease, ""},
		"a lease of its other port":               {boot, Caller{Source: other, Lessee: own2}, ByLease, ""},
		"an IPv6 address that it uses":            {boot, Caller{Source: six, Neighbour: own}, ByNeighbour, ""},
		"the address of its configuration":        {boot, Caller{Source: other, Configured: []netip.Addr{other}}, ByConfig, ""},
		"a configured one that it uses":           {boot, Caller{Source: other, Neighbour: own, Configured: []netip.Addr{other}}, ByConfig, ""},
		"the first that asks":                     {Boot{Ports: boot.Ports}, Caller{Source: other}, AsFirst, ""},
		"the first, and the network vouches":      {Boot{Ports: boot.Ports}, Caller{Source: other, Neighbour: own}, ByNeighbour, ""},
		"another address":                         {boot, Caller{Source: other}, "", "no address of the machine"},
		"no address":                              {boot, Caller{}, "", "not known"},
		"no address of a boot that has none":      {Boot{Ports: boot.Ports}, Caller{}, "", "not known"},
		"a lease of another machine":              {boot, Caller{Source: other, Lessee: thief}, "", "leased to " + string(thief)},
		"a leased address that its port is at":    {boot, Caller{Source: other, Lessee: thief, Neighbour: own}, "", "leased to " + string(thief)},
		"an address that another machine uses":    {boot, Caller{Source: other, Neighbour: thief}, "", "used by " + string(thief)},
		"a configured one, used by another":       {boot, Caller{Source: other, Neighbour: thief, Configured: []netip.Addr{other}}, "", "used by"},
		"the first, at the lease of another":      {Boot{Ports: boot.Ports}, Caller{Source: other, Lessee: thief}, "", "leased to"},
		"the first, where another machine is":     {Boot{Ports: boot.Ports}, Caller{Source: other, Neighbour: thief}, "", "used by"},
		"a host without ports, and nobody leases": {Boot{Address: at}, Caller{Source: other}, "", "no address of the machine"},
	} {
		t.Run(name, func(t *testing.T) {
			way, why := WayOf(c.boot, c.caller)
			if way != c.way || !strings.Contains(why, c.why) || (way == "") != (why != "") {
				t.Errorf("%q because of %q, want %q and %q", way, why, c.way, c.why)
			}
		})
	}
}
