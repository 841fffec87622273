package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

// Sensors returns what the controller of a host measures.
func (h Hosts) Sensors(ctx context.Context, host string) (x wire.BMCSensors, err error) {
	return x, h.c.call(ctx, http.MethodGet, h.at(host)+"/bmc/sensors", nil, nil, &x)
}

// BMCLog returns the event log of a host's controller, newest first.
func (h Hosts) BMCLog(ctx context.Context, host string, limit int) (p wire.BMCLog, err error) {
	return p, h.c.call(ctx, http.MethodGet, h.at(host)+"/bmc/log", url.Values{"limit": {strconv.Itoa(limit)}}, nil, &p)
}

// ResetBMC restarts a host's controller itself.
func (h Hosts) ResetBMC(ctx context.Context, host string) error {
	return h.c.call(ctx, http.MethodPost, h.at(host)+"/bmc/reset", nil, nil, nil)
}

// ClearBMCLog empties the event log of a host's controller.
func (h Hosts) ClearBMCLog(ctx context.Context, host string) error {
	return h.c.call(ctx, http.MethodDelete, h.at(host)+"/bmc/log", nil, nil, nil)
}

// BMCUsers returns the accounts of a host's controller.
func (h Hosts) BMCUsers(ctx context.Context, host string) (p Page[bmc.User], err error) {
	return p, h.c.call(ctx, http.MethodGet, h.at(host)+"/bmc/users", nil, nil, &p)
}

// SetBMCUser adds an administrator, or gives an account another password.
func (h Hosts) SetBMCUser(ctx context.Context, host, user, password string) (p Page[bmc.User], err error) {
	return p, h.c.call(ctx, http.MethodPost, h.at(host)+"/bmc/user", nil, map[string]any{"user": user, "password": password}, &p)
}

// RemoveBMCUser deletes an account.
func (h Hosts) RemoveBMCUser(ctx context.Context, host, user string) (p Page[bmc.User], err error) {
	return p, h.c.call(ctx, http.MethodPost, h.at(host)+"/bmc/user", nil, map[string]any{"user": user, "remove": true}, &p)
}

// CheckBMC looks whether a host's controller does what is needed.
func (h Hosts) CheckBMC(ctx context.Context, host string) (k wire.BMCCheck, err error) {
	return k, h.c.call(ctx, http.MethodPost, h.at(host)+"/bmc/check", nil, nil, &k)
}

// RotateBMC gives the account of a host's controller a new password.
func (h Hosts) RotateBMC(ctx context.Context, host string) (o inventory.Operation, err error) {
	return o, h.c.call(ctx, http.MethodPost, h.at(host)+"/bmc/rotate", nil, nil, &o)
}

// BMCBoot returns the override of a host's boot order.
func (h Hosts) BMCBoot(ctx context.Context, host string) (b wire.BMCBoot, err error) {
	return b, h.c.call(ctx, http.MethodGet, h.at(host)+"/bmc/boot", nil, nil, &b)
}

// SetBMCBoot overrides a host's boot order.
func (h Hosts) SetBMCBoot(ctx context.Context, host string, in wire.BMCBoot) (b wire.BMCBoot, err error) {
	return b, h.c.call(ctx, http.MethodPost, h.at(host)+"/bmc/boot", nil, in, &b)
}

// BMCMedia returns what is in a host's virtual drive.
func (h Hosts) BMCMedia(ctx context.Context, host string) (b wire.BMCMedia, err error) {
	return b, h.c.call(ctx, http.MethodGet, h.at(host)+"/bmc/media", nil, nil, &b)
}

// SetBMCMedia puts an image into a host's virtual drive; "" ejects it.
func (h Hosts) SetBMCMedia(ctx context.Context, host, u string) (b wire.BMCMedia, err error) {
	return b, h.c.call(ctx, http.MethodPost, h.at(host)+"/bmc/media", nil, wire.BMCMedia{URL: u}, &b)
}

// Scan looks for controllers in a range of addresses; it takes up to ten minutes.
func (c *Client) Scan(ctx context.Context, rng string, drivers ...string) (p Page[wire.FoundBMC], err error) {
	return p, c.call(ctx, http.MethodPost, "scans", nil, map[string]any{"range": rng, "drivers": drivers}, &p)
}

// Report returns a host's acceptance sheet.
func (h Hosts) Report(ctx context.Context, host string) (raw json.RawMessage, err error) {
	return raw, h.c.call(ctx, http.MethodGet, h.at(host)+"/report", nil, nil, &raw)
}

// ReportPage writes a host's acceptance sheet as a page.
func (h Hosts) ReportPage(ctx context.Context, host string, w io.Writer) error {
	return h.c.copy(ctx, h.at(host)+"/report", nil, w, func(r *http.Request) { r.Header.Set("Accept", "text/html") })
}

// Console opens a host's serial console; closing it ends the session.
func (h Hosts) Console(ctx context.Context, host string) (io.ReadWriteCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.c.base+"/api/v1/"+h.at(host)+"/bmc/console", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", h.c.agent)
	if h.c.token != "" {
		req.Header.Set("Authorization", "Bearer "+h.c.token)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "slipway-console")
	res, err := h.c.http.Do(req)
	if err != nil {
		return nil, h.c.unreachable(ctx, err)
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		defer drain(res.Body)
		return nil, h.c.problem(res)
	}
	line, ok := res.Body.(io.ReadWriteCloser)
	if !ok {
		drain(res.Body)
		return nil, inventory.Errorf(inventory.Unavailable, "%s gives no console", h.c.where()).WithHint("is a proxy in between?")
	}
	return line, nil
}
