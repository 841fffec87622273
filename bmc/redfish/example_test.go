package redfish_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/redfish"
	"slipway.dev/slipway/inventory"
)

// controller is the smallest Redfish service with one system.
func controller() http.Handler {
	documents := map[string]string{
		"/redfish/v1":           `{"RedfishVersion": "1.15.0", "Vendor": "Dell Inc.", "Systems": {"@odata.id": "/redfish/v1/Systems"}}`,
		"/redfish/v1/Systems":   `{"Members@odata.count": 1, "Members": [{"@odata.id": "/redfish/v1/Systems/1"}]}`,
		"/redfish/v1/Systems/1": `{"Id": "1", "PowerState": "On"}`,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, ok := documents[strings.TrimSuffix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, document)
	})
}

// A driver reads the power of the only system of a service.
func ExampleOpen() {
	service := httptest.NewServer(controller())
	defer service.Close()
	d, err := redfish.Open(bmc.Target{BMC: inventory.BMC{Driver: inventory.Redfish, Address: service.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = d.Close() }()
	fmt.Println(d.Power(context.Background()))
	// Output: on <nil>
}

// Probe needs no login: it shows what a service tells everybody.
func ExampleProbe() {
	service := httptest.NewTLSServer(controller())
	defer service.Close()
	at := netip.MustParseAddrPort(service.Listener.Addr().String())
	found, err := redfish.Probe(context.Background(), at, redfish.ProbeClient(5*time.Second, nil))
	fmt.Println(found.Vendor, found.Version, err)
	// Output: Dell 1.15.0 <nil>
}
