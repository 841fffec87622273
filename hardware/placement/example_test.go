package placement_test

import (
	"fmt"

	"slipway.dev/slipway/hardware/placement"
	"slipway.dev/slipway/inventory"
)

// A machine gets a host that fits. For a machine without one, the choice counts what kept the hosts out.
func ExampleChoose() {
	hosts := []placement.Candidate{
		{Host: inventory.Host{ID: "h1", Name: "node-1", State: inventory.Available, Labels: map[string]string{"zone": "a"}}},
		{Host: inventory.Host{ID: "h2", Name: "node-2", State: inventory.Available, Labels: map[string]string{"zone": "b"}}},
		{Host: inventory.Host{ID: "h3", Name: "node-3", State: inventory.Failed, Labels: map[string]string{"zone": "c"}}},
	}
	for _, selector := range []string{"zone=b", "zone=c"} {
		machine := inventory.Machine{Name: "web-1", Placement: inventory.Placement{Selector: selector}}
		choice := placement.Choose(placement.Demand{Machine: machine}, hosts)
		if choice.Host != nil {
			fmt.Println("host", choice.Host.Name)
			continue
		}
		fmt.Println(choice.Reason)
	}
	// Output:
	// host node-2
	// no host: 2 do not match the selector zone=c, 1 has failed and is in quarantine
}
