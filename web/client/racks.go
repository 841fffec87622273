package client

import (
	"context"
	"io"
	"net/http"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/wire"
)

// Rack is a rack with its hosts.
type Rack struct {
	inventory.Rack
	ID     string                 `json:"id,omitempty"`
	HostN  int                    `json:"hostN"`
	Faults []inventory.PlaceFault `json:"faults"`
}

// Racks is the calls about racks.
type Racks struct{ Noun[Rack] }

// Elevation writes the drawing of one face of a rack as SVG.
func (r Racks) Elevation(ctx context.Context, id string, face inventory.Face, w io.Writer) error {
	res, err := r.c.send(ctx, http.MethodGet, r.at(id)+"/elevation.svg", params{"face": face}.values(), nil)
	if err != nil {
		return err
	}
	defer drain(res.Body)
	_, err = io.Copy(w, res.Body)
	return err
}

// Cabling returns the cables of a rack; of all hosts for "".
func (c *Client) Cabling(ctx context.Context, rack string) (out hardware.Cabling, err error) {
	return out, c.call(ctx, http.MethodGet, "cabling", params{"rack": rack}.values(), nil, &out)
}

// SubnetUse returns what the addresses of a subnet are doing.
func (c *Client) SubnetUse(ctx context.Context, subnet string) (u inventory.SubnetUse, err error) {
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
