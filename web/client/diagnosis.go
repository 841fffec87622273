package client

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/watch"
)

// Diagnose says why a host does not boot. mac names one of its ports; "" takes the one with the latest packet.
func (h Hosts) Diagnose(ctx context.Context, host string, mac inventory.MAC) (d watch.Diagnosis, err error) {
	return d, h.c.call(ctx, http.MethodGet, h.at(host)+"/diagnosis", params{"mac": mac}.values(), nil, &d)
}

// Packets writes the latest packets of a host's boots to w, as a capture file.
func (h Hosts) Packets(ctx context.Context, host string, mac inventory.MAC, w io.Writer) error {
	return h.c.copy(ctx, h.at(host)+"/packets", params{"mac": mac}.values(), w)
}

// DiagnoseStranger says why a machine that is not listed does not boot.
func (c *Client) DiagnoseStranger(ctx context.Context, mac inventory.MAC) (d watch.Diagnosis, err error) {
	return d, c.call(ctx, http.MethodGet, "strangers/"+url.PathEscape(string(mac))+"/diagnosis", nil, nil, &d)
}

// StrangerPackets writes the latest packets of a machine that is not listed to w, as a capture file.
func (c *Client) StrangerPackets(ctx context.Context, mac inventory.MAC, w io.Writer) error {
	return c.copy(ctx, "strangers/"+url.PathEscape(string(mac))+"/packets", nil, w)
}
