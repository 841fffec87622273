package client

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"slipway.dev/slipway/inventory"
)

// Address is a static address that a machine has, or a host that no machine has.
type Address struct {
	Address   netip.Addr       `json:"address"`
	Subnet    string           `json:"subnet,omitempty"` // whose static ranges it is from; "" for one that a configuration names
	Machine   string           `json:"machine,omitempty"`
	HostID    inventory.HostID `json:"hostID,omitempty"`
	Host      string           `json:"host,omitempty"`
	From      string           `json:"from"` // subnet, person, configuration or left
	Source    string           `json:"source,omitempty"`
	IsTwice   bool             `json:"isTwice,omitempty"` // another has it, too
	CreatedAt time.Time        `json:"createdAt,omitzero"`
}

// Addresses is the calls for static addresses.
type Addresses struct{ Noun[Address] }

// Keep keeps an address for a machine, or for a host without a machine. It replaces the address that this one has in that
// subnet.
func (a Addresses) Keep(ctx context.Context, address netip.Addr, machine, host string, isDryRun bool) (out Address, err error) {
	q := url.Values{}
	if isDryRun {
		q.Set("dryRun", "true")
		var d struct {
			Result Address `json:"result"`
		}
		err = a.c.call(ctx, http.MethodPut, a.at(address.String()), q, map[string]string{"machine": machine, "host": host}, &d)
		return d.Result, err
	}
	return out, a.c.call(ctx, http.MethodPut, a.at(address.String()), q, map[string]string{"machine": machine, "host": host}, &out)
}
