package client

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"slipway.dev/slipway/inventory"
)

// Rack is a rack and what stands in it.
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
	q := url.Values{}
	if face != "" {
		q.Set("face", string(face))
	}
	res, err := r.c.send(ctx, http.MethodGet, r.at(id)+"/elevation.svg", q, nil)
	if err != nil {
		return err
	}
	defer drain(res.Body)
	_, err = io.Copy(w, res.Body)
	return err
}

// Link is a cable between a port of a host and one of a switch.
type Link struct {
	Host          string        `json:"host"`
	Rack          string        `json:"rack,omitempty"`
	Unit          int           `json:"unit,omitempty"`
	Port          string        `json:"port"`
	MAC           inventory.MAC `json:"mac"`
	SpeedMbps     int           `json:"speedMbps,omitempty"`
	Switch        string        `json:"switch"`
	Chassis       string        `json:"chassis"`
	To            string        `json:"to"`
	ToDescription string        `json:"toDescription,omitempty"`
	Management    string        `json:"management,omitempty"`
	VLAN          int           `json:"vlan,omitempty"`
	At            time.Time     `json:"at"`
}

// CableFault is something about cables that is not as it should be.
type CableFault struct {
	Kind   string   `json:"kind"`
	Hosts  []string `json:"hosts"`
	Detail string   `json:"detail"`
	Hint   string   `json:"hint"`
}

// Cabling is what LLDP tells of cables.
type Cabling struct {
	Links  []Link       `json:"links"`
	Faults []CableFault `json:"faults"`
}

// Cabling returns the cables of a rack; of all hosts for "".
func (c *Client) Cabling(ctx context.Context, rack string) (out Cabling, err error) {
	q := url.Values{}
	if rack != "" {
		q.Set("rack", rack)
	}
	return out, c.call(ctx, http.MethodGet, "cabling", q, nil, &out)
}

// RangeUse says what the addresses of a range are doing.
type RangeUse struct {
	First    netip.Addr `json:"first,omitzero"`
	Last     netip.Addr `json:"last,omitzero"`
	Total    int        `json:"total"`
	Free     int        `json:"free"`
	Leased   int        `json:"leased"`
	Kept     int        `json:"kept"`
	Reserved int        `json:"reserved"`
	Conflict int        `json:"conflict"`
}

// SubnetUse says what the addresses of a subnet are doing; Outside are those in no range.
type SubnetUse struct {
	Ranges  []RangeUse `json:"ranges"`
	Outside RangeUse   `json:"outside"`
}

// SubnetUse returns what the addresses of a subnet are doing.
func (c *Client) SubnetUse(ctx context.Context, subnet string) (u SubnetUse, err error) {
	return u, c.call(ctx, http.MethodGet, c.Subnets.at(subnet)+"/usage", nil, nil, &u)
}

// Snippet is the configuration with which another DHCP server sends machines to us.
type Snippet struct {
	Server string `json:"server"`
	Name   string `json:"name"`
	File   string `json:"file,omitempty"`
	Check  string `json:"check,omitempty"`
	Text   string `json:"text"`
	Note   string `json:"note,omitempty"`
}

// Snippets returns the configurations for a subnet; of one server, or of all that are known for "".
func (c *Client) Snippets(ctx context.Context, subnet, server string) (p Page[Snippet], err error) {
	q := url.Values{}
	if server != "" {
		q.Set("server", server)
	}
	return p, c.call(ctx, http.MethodGet, c.Subnets.at(subnet)+"/snippets", q, nil, &p)
}

// Interface is a network interface of the server.
type Interface struct {
	Name      string         `json:"name"`
	MAC       inventory.MAC  `json:"mac,omitempty"`
	IsUp      bool           `json:"isUp"`
	IsServed  bool           `json:"isServed"`
	Addresses []netip.Prefix `json:"addresses"`
	Subnet    string         `json:"subnet,omitempty"`
	BootURL   string         `json:"bootURL,omitempty"`
}

// Interfaces returns the network interfaces of the server.
func (c *Client) Interfaces(ctx context.Context) (p Page[Interface], err error) {
	return p, c.call(ctx, http.MethodGet, "interfaces", nil, nil, &p)
}
