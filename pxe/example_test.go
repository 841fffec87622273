package pxe_test

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// discover is what UEFI firmware of x86_64 sends when it boots from the network.
var discover = pxe.Packet{MAC: "52:54:00:12:34:56", Class60: "PXEClient:Arch:00007:UNDI:003016", Arch93: []uint16{7}}

// A DHCP server asks who sent a packet.
func ExampleClassify() {
	c := pxe.Classify(discover)
	fmt.Println(c.Stage, c.Arch, c.Firmware)
	// Output:
	// firmware x86_64 uefi
}

// A host that nobody has accepted yet is identified, and then waits for a person.
func ExampleDecide() {
	d := pxe.Decide(pxe.Classify(discover), nil, pxe.Plan{
		Policy:  inventory.UnknownWait,
		Loaders: func(string) bool { return true },
	}, time.Now())
	fmt.Println(d.Loader)
	fmt.Println(d.Boot, "because", d.Reason)
	// Output:
	// snponly.efi
	// wait because not accepted
}
