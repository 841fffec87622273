package client

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"slipway.dev/slipway/web/wire"
)

// Addresses is the calls for static addresses.
type Addresses struct{ Noun[wire.Address] }

// Keep keeps an address for a machine, or for a host without a machine. It replaces the address that this one has in that
// subnet.
func (a Addresses) Keep(ctx context.Context, address netip.Addr, machine, host string, isDryRun bool) (out wire.Address, err error) {
	q := url.Values{}
	if isDryRun {
		q.Set("dryRun", "true")
		var d struct {
			Result wire.Address `json:"result"`
		}
		err = a.c.call(ctx, http.MethodPut, a.at(address.String()), q, map[string]string{"machine": machine, "host": host}, &d)
		return d.Result, err
	}
	return out, a.c.call(ctx, http.MethodPut, a.at(address.String()), q, map[string]string{"machine": machine, "host": host}, &out)
}
