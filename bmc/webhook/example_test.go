package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/webhook"
	"slipway.dev/slipway/inventory"
)

// A power strip has an address for each outlet. The options describe the calls.
func ExampleOpen() {
	strip := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			fmt.Println("the strip gets", r.URL.Path)
		}
		fmt.Fprint(w, `{"outlets": [{"state": "ON"}]}`)
	}))
	defer strip.Close()
	d, err := webhook.Open(bmc.Target{BMC: inventory.BMC{
		Driver: inventory.Webhook, Address: strip.URL, System: "7",
		Options: map[string]string{
			"on.path": "/outlet/{{.System}}/on", "off.path": "/outlet/{{.System}}/off",
			"status.path": "/status", "status.pointer": "/outlets/0/state",
		},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = d.Close() }()
	ctx := context.Background()
	fmt.Println(d.SetPower(ctx, bmc.On))
	fmt.Println(d.Power(ctx))
	// Output:
	// the strip gets /outlet/7/on
	// <nil>
	// on <nil>
}
