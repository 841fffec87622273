package egress_test

import (
	"fmt"
	"net/netip"

	"slipway.dev/slipway/inventory/egress"
)

// Addresses of this machine stay closed, unless an allow list opens them.
func ExamplePolicy_Check() {
	own := func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.0.0.1")} }
	policy := egress.New(egress.Config{Own: own, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for _, at := range []string{"10.0.0.5:443", "10.0.0.1:443", "127.0.0.1:443"} {
		fmt.Println(at, policy.Check(netip.MustParseAddrPort(at)))
	}
	// Output:
	// 10.0.0.5:443 <nil>
	// 10.0.0.1:443 the egress policy refuses 10.0.0.1:443: it is an address of this machine
	// 127.0.0.1:443 <nil>
}
