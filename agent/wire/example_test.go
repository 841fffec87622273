package wire_test

import (
	"encoding/json"
	"fmt"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// A task and the report that answers it, as they are on the wire.
func Example() {
	task := wire.Task{
		ID: "01JDZ4", Kind: wire.Wipe, Reason: "the host is released",
		Wipe: &wire.WipeTask{Mode: inventory.CleanQuick, Keep: []inventory.DiskHint{{Serial: "S2"}}},
	}
	text, err := json.Marshal(task)
	fmt.Println(string(text), err)

	text, err = json.Marshal(wire.Report{State: wire.Failed, Error: "disk sda is read-only", IsLasting: true})
	fmt.Println(string(text), err)
	// Output:
	// {"id":"01JDZ4","kind":"wipe","reason":"the host is released","wipe":{"mode":"quick","keep":[{"serial":"S2"}]}} <nil>
	// {"version":0,"state":"failed","error":"disk sda is read-only","isLasting":true} <nil>
}
