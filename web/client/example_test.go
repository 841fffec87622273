package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// A program lists the hosts of a server, page by page, and reads the kind of an error.
func Example() {
	ctx := context.Background()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/hosts" { // stands for a server of Slipway
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"status": 404, "kind": "not-found", "detail": "there is no host node-9"}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"items": [{"name": "node-1", "state": "available"}, {"name": "node-2", "state": "active"}]}`)
	}))
	defer server.Close()

	c, err := client.New(client.Config{Server: server.URL, Token: "secret"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for h, err := range c.Hosts.All(ctx, client.Query{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(h.Name, "is", h.State)
	}
	_, err = c.Hosts.Get(ctx, "node-9")
	fmt.Println(inventory.KindOf(err), "-", inventory.MessageOf(err))
	// Output:
	// node-1 is available
	// node-2 is active
	// not-found - there is no host node-9
}
