package client

import (
	"context"
	"net/http"

	"slipway.dev/slipway/pxe"
)

// ForeignServers returns the other DHCP servers that were noticed on a subnet in the last hour.
func (c *Client) ForeignServers(ctx context.Context, subnet string) (p Page[pxe.ForeignServer], err error) {
	return p, c.call(ctx, http.MethodGet, c.Subnets.at(subnet)+"/foreign-servers", nil, nil, &p)
}

// Probe asks the DHCP servers of a subnet for their offers to machines that boot from the network. server is one to ask as
// a relay agent, or "" for all on the wire.
func (c *Client) Probe(ctx context.Context, subnet, server string) (p Page[pxe.ProbeLine], err error) {
	return p, c.call(ctx, http.MethodPost, c.Subnets.at(subnet)+"/probe", params{"server": server}.values(), nil, &p)
}
