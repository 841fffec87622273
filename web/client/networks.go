package client

import (
	"context"
	"net/http"
	"net/url"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/usage"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/wire"
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

// AddRange adds a range to a subnet; one that is there already stays.
func (c *Client) AddRange(ctx context.Context, subnet string, r inventory.Range) (s inventory.Subnet, err error) {
	return s, c.call(ctx, http.MethodPut, c.Subnets.at(subnet)+"/ranges/"+url.PathEscape(r.First.String()+"-"+r.Last.String()), nil, nil, &s)
}

// RemoveRange takes a range from a subnet.
func (c *Client) RemoveRange(ctx context.Context, subnet string, r inventory.Range) (s inventory.Subnet, err error) {
	return s, c.call(ctx, http.MethodDelete, c.Subnets.at(subnet)+"/ranges/"+url.PathEscape(r.First.String()+"-"+r.Last.String()), nil, nil, &s)
}

// Cabling returns the cables of a rack; of all hosts for "".
func (c *Client) Cabling(ctx context.Context, rack string) (out hardware.Cabling, err error) {
	return out, c.call(ctx, http.MethodGet, "cabling", params{"rack": rack}.values(), nil, &out)
}

// SubnetUse returns what the addresses of a subnet are doing.
func (c *Client) SubnetUse(ctx context.Context, subnet string) (u usage.SubnetUse, err error) {
	return u, c.call(ctx, http.MethodGet, c.Subnets.at(subnet)+"/usage", nil, nil, &u)
}

// Snippets returns the configurations for a subnet; of one server, or of all that are known for "".
func (c *Client) Snippets(ctx context.Context, subnet, server string) (p Page[pxe.Snippet], err error) {
	return p, c.call(ctx, http.MethodGet, c.Subnets.at(subnet)+"/snippets", params{"server": server}.values(), nil, &p)
}

// Interfaces returns the network interfaces of the server.
func (c *Client) Interfaces(ctx context.Context) (p Page[wire.Interface], err error) {
	return p, c.call(ctx, http.MethodGet, "interfaces", nil, nil, &p)
}
