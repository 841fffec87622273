package lease6_test

import (
	"fmt"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/lease6"
)

// A client takes the offered address. The caller stores the lease between Assign and Commit.
func Example() {
	book := lease6.New(lease6.Network{Subnets: []inventory.Subnet{{
		Name: "rack-1", CIDR: netip.MustParsePrefix("fd00:1::/64"), Mode: inventory.ModeFull,
		Ranges:   []inventory.Range{{First: netip.MustParseAddr("fd00:1::100"), Last: netip.MustParseAddr("fd00:1::100")}},
		LeaseFor: inventory.Duration(12 * time.Hour), BootLeaseFor: inventory.Duration(10 * time.Minute),
	}}}, nil)
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	client := lease6.Client{Subnet: "rack-1", DUID: "0001", IAID: 1, IsBoot: true}

	offer, _ := book.Offer(client, netip.Addr{}, now)
	fmt.Println("offer", offer.Address, "for", offer.For)

	_, l, why := book.Assign(client, offer.Address, now.Add(time.Second))
	fmt.Println(l.Address, "until", l.ExpiresAt.Format(time.TimeOnly), why == "")
	// l goes to the disk here. Only then may the client learn of it.
	fmt.Println("the REPLY may go out:", book.Commit(l))
	// Output:
	// offer fd00:1::100 for 10m0s
	// fd00:1::100 until 12:10:01 true
	// the REPLY may go out: true
}
