package scan_test

import (
	"fmt"

	"slipway.dev/slipway/bmc/scan"
)

// The addresses of the network itself and of all its machines get no packet.
func ExampleParseRange() {
	r, err := scan.ParseRange("10.0.0.0/29")
	fmt.Println(r.First, r.Last, r.N(), err)
	_, err = scan.ParseRange("10.0.0.0/8")
	fmt.Println(err)
	// Output:
	// 10.0.0.1 10.0.0.6 6 <nil>
	// "10.0.0.0/8" is not a range of 1 to 65536 addresses
}
