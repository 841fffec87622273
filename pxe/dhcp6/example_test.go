package dhcp6_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/dhcp6"
	"slipway.dev/slipway/pxe/lease6"
)

// A server needs a book of addresses, a store for leases, and an engine that decides on boots.
func ExampleNew() {
	var (
		leases dhcp6.Leases // writes leases to the disk
		boots  dhcp6.Boots  // says what a machine boots
	)
	book := lease6.New(lease6.Network{Subnets: []inventory.Subnet{{
		Name: "rack-1", CIDR: netip.MustParsePrefix("fd00:1::/64"), Mode: inventory.ModeReservations,
	}}}, nil)
	server := dhcp6.New(dhcp6.Config{
		Interfaces: []string{"eth0"}, Book: book, Leases: leases, Boots: boots, BootPort: 80,
		DUID: []byte{0, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, Now: time.Now, Log: slog.Default(),
	})
	ctx, stop := context.WithTimeout(context.Background(), time.Hour)
	defer stop()
	fmt.Println(server.Serve(ctx))
}
