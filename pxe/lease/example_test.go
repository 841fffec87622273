package lease_test

import (
	"fmt"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/lease"
)

// A client takes the offered address. The caller stores the lease between Confirm and Commit.
func Example() {
	book := lease.New(lease.Network{Subnets: []inventory.Subnet{{
		Name: "rack-1", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Mode: inventory.ModeFull,
		Ranges:   []inventory.Range{{First: netip.MustParseAddr("10.0.0.100"), Last: netip.MustParseAddr("10.0.0.199")}},
		LeaseFor: inventory.Duration(12 * time.Hour), BootLeaseFor: inventory.Duration(10 * time.Minute),
	}}}, nil)
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	client := lease.Client{Subnet: "rack-1", MAC: "52:54:00:12:34:56", IsBoot: true}

	offer, _ := book.Offer(client, netip.Addr{}, now)
	fmt.Println("offer", offer.Address, "for", offer.For)

	r := book.Confirm(client, lease.Selecting, offer.Address, now.Add(time.Second))
	fmt.Println(r.Verdict, r.Lease.Address, "until", r.Lease.ExpiresAt.Format(time.TimeOnly))
	// r.Lease goes to the disk here. Only then may the client learn of it.
	fmt.Println("the ACK may go out:", book.Commit(r.Lease))
	// Output:
	// offer 10.0.0.100 for 10m0s
	// ack 10.0.0.100 until 12:10:01
	// the ACK may go out: true
}
