package client

import (
	"context"
	"io"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/elevation"
)

// Rack is a rack with its hosts.
type Rack struct {
	inventory.Rack
	ID     string                 `json:"id,omitempty"`
	HostN  int                    `json:"hostN"`
	Faults []elevation.PlaceFault `json:"faults"`
}

// Racks is the calls about racks.
type Racks struct{ Noun[Rack] }

// Elevation writes the drawing of one face of a rack as SVG.
func (r Racks) Elevation(ctx context.Context, id string, face inventory.Face, w io.Writer) error {
	return r.c.copy(ctx, r.at(id)+"/elevation.svg", params{"face": face}.values(), w)
}
