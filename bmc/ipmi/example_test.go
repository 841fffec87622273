package ipmi_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/ipmi"
	"slipway.dev/slipway/inventory"
)

// Open checks the options. The first call logs in, by RMCP+ (IPMI 2.0).
func ExampleOpen() {
	d, err := ipmi.Open(bmc.Target{BMC: inventory.BMC{Driver: inventory.IPMI, Address: "10.0.0.5", Username: "admin"}, Password: "secret"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = d.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	fmt.Println(d.Power(ctx))
}

// Probe sends three packets that need no login.
func ExampleProbe() {
	found, err := ipmi.Probe(context.Background(), netip.MustParseAddrPort("10.0.0.5:623"), time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("IPMI", found.Version, "by", found.Vendor)
}
