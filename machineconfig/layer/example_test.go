package layer_test

import (
	"fmt"

	"slipway.dev/slipway/machineconfig/layer"
)

// A misspelt key is a finding with its place and a hint.
func ExampleParse() {
	_, report := layer.Parse("host:\n  hostnme: web-1\n", "profile web")
	for _, f := range report {
		fmt.Printf("%s: %s\n%s\n", f.Source, f.Message, f.Hint)
	}
	// Output:
	// profile web:2:3: "hostnme" is not a key here
	// did you mean hostname?
}

// The narrower layer wins, and the result remembers where each value comes from.
func ExampleMerge() {
	wide, _ := layer.Parse("host: {domain: lab.example, timezone: UTC}", "profile web")
	narrow, _ := layer.Parse("host: {hostname: web-1, timezone: Europe/Berlin}", "host web-1")
	c, report := layer.Merge(wide, narrow)
	fmt.Println(c.Host.Hostname, c.Host.Domain, c.Host.Timezone, len(report))
	// Output:
	// web-1 lab.example Europe/Berlin 0
}
