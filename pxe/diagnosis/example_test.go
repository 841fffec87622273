package diagnosis_test

import (
	"fmt"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/diagnosis"
)

// A host should boot an image, and its decision says why it does not.
func ExampleExplain() {
	now := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	causes := diagnosis.Explain(diagnosis.Case{
		Now: now, IsLate: true, Ours: []netip.Addr{netip.MustParseAddr("10.0.0.1")},
		Host:         &inventory.Host{Name: "node-1", State: inventory.Available},
		WantsNetboot: true, PowerOnAt: now.Add(-10 * time.Minute),
		Decision: pxe.Decision{Boot: pxe.BootDisk},
	})
	for _, c := range causes {
		fmt.Println(c.Rank, c.Code, c.Certainty)
		fmt.Println(c.Sentence)
	}
	// Output:
	// 1 no-packet cause
	// the machine has sent nothing since it was switched on
}
