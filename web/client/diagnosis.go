package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/diagnosis"
)

// Diagnosis is why a machine does not boot.
type Diagnosis struct {
	Host    string              `json:"host,omitempty"`
	MAC     inventory.MAC       `json:"mac"`
	Session inventory.SessionID `json:"session,omitempty"`
	Step    string              `json:"step,omitempty"`
	Expects string              `json:"expects,omitempty"`
	By      time.Time           `json:"by,omitzero"`
	IsLate  bool                `json:"isLate"`
	Trouble string              `json:"trouble,omitempty"` // what is late or has failed
	Causes  []diagnosis.Cause   `json:"causes"`            // the likeliest first; none while nothing is late and nothing has failed
	Options []GivenOption       `json:"options,omitempty"`
	Packets []PacketLine        `json:"packets"`
}

// GivenOption is a DHCP option out of a list of an admin, and what becomes of it for one client.
type GivenOption struct {
	Option string `json:"option"`
	Value  string `json:"value"`
	From   string `json:"from"`
	Note   string `json:"note,omitempty"`
}

// PacketLine is a packet in one line.
type PacketLine struct {
	At       time.Time `json:"at"`
	IsOurs   bool      `json:"isOurs"`
	Protocol string    `json:"protocol"`
	Summary  string    `json:"summary"`
}

// Diagnose says why a host does not boot. mac names one of its ports; "" takes the one with the latest packet.
func (h Hosts) Diagnose(ctx context.Context, host string, mac inventory.MAC) (d Diagnosis, err error) {
	return d, h.c.call(ctx, http.MethodGet, h.at(host)+"/diagnosis", params{"mac": mac}.values(), nil, &d)
}

// Packets writes the latest packets of a host's boots to w, as a capture file.
func (h Hosts) Packets(ctx context.Context, host string, mac inventory.MAC, w io.Writer) error {
	return h.c.copy(ctx, h.at(host)+"/packets", params{"mac": mac}.values(), w)
}

// DiagnoseStranger says why a machine that is not listed does not boot.
func (c *Client) DiagnoseStranger(ctx context.Context, mac inventory.MAC) (d Diagnosis, err error) {
	return d, c.call(ctx, http.MethodGet, "strangers/"+url.PathEscape(string(mac))+"/diagnosis", nil, nil, &d)
}

// StrangerPackets writes the latest packets of a machine that is not listed to w, as a capture file.
func (c *Client) StrangerPackets(ctx context.Context, mac inventory.MAC, w io.Writer) error {
	return c.copy(ctx, "strangers/"+url.PathEscape(string(mac))+"/packets", nil, w)
}
