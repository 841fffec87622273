package client

import (
	"context"
	"net/http"
	"net/url"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/web/wire"
)

// Machines is the calls on machines.
type Machines struct {
	Noun[inventory.Machine]
}

// Remove asks for the end of a machine. isGone says that it had no host, or none that has to be wiped first; else the
// machine says how far it is. With force its host is quarantined as it is.
func (m Machines) Remove(ctx context.Context, name string, force bool) (left inventory.Machine, isGone bool, err error) {
	err = m.c.call(ctx, http.MethodDelete, m.at(name), params{"force": force}.values(), nil, &left)
	return left, left.Name == "", err
}

func (m Machines) verb(ctx context.Context, name, verb string, in any) (stored inventory.Machine, err error) {
	return stored, m.c.call(ctx, http.MethodPost, m.at(name)+"/"+verb, nil, in, &stored)
}

// Foresee says what a verb would do to a machine: delete, force, reinstall, power-cycle or replace.
func (m Machines) Foresee(ctx context.Context, name, verb string) (string, error) {
	var out struct {
		Does string `json:"does"`
	}
	err := m.c.call(ctx, http.MethodGet, m.at(name)+"/foresight", url.Values{"verb": {verb}}, nil, &out)
	return out.Does, err
}

// Reinstall installs a machine again on its host.
func (m Machines) Reinstall(ctx context.Context, name string) (inventory.Machine, error) {
	return m.verb(ctx, name, "reinstall", nil)
}

// Retry lets a machine that has failed look for a host again.
func (m Machines) Retry(ctx context.Context, name string) (inventory.Machine, error) {
	return m.verb(ctx, name, "retry", nil)
}

// Remediate gets a machine going again that does not work, by the steps power-cycle, reinstall and replace; all of
// them when none is named.
func (m Machines) Remediate(ctx context.Context, name string, steps ...string) (inventory.Machine, error) {
	return m.verb(ctx, name, "remediate", map[string]any{"steps": steps})
}

// Ack acknowledges a hook.
func (m Machines) Ack(ctx context.Context, name string, step inventory.HookStep, owner string) (inventory.Machine, error) {
	return m.verb(ctx, name, "ack", map[string]any{"step": step, "owner": owner})
}

// Hold says why a hook is not acknowledged yet.
func (m Machines) Hold(ctx context.Context, name string, step inventory.HookStep, owner, reason string) (inventory.Machine, error) {
	return m.verb(ctx, name, "hold", map[string]any{"step": step, "owner": owner, "reason": reason})
}

// Adopt makes a machine of an adopted host.
func (m Machines) Adopt(ctx context.Context, want inventory.Machine, host string) (stored inventory.Machine, err error) {
	in := struct {
		inventory.Machine
		Host string `json:"host"`
	}{want, host}
	return stored, m.c.call(ctx, http.MethodPost, "machines/adopt", nil, in, &stored)
}

// Operations is the calls on operations.
type Operations struct {
	Noun[inventory.Operation]
}

// Cancel ends what is being done with a host.
func (o Operations) Cancel(ctx context.Context, id string) (stored inventory.Operation, err error) {
	return stored, o.c.call(ctx, http.MethodPost, o.at(id)+"/cancel", nil, nil, &stored)
}

// SetBMC says how a host is powered.
type SetBMC struct {
	Driver             inventory.BMCDriver `json:"driver"`
	Address            string              `json:"address,omitempty"`
	Username           string              `json:"username,omitempty"`
	Password           string              `json:"password,omitempty"` // "" keeps the one stored
	System             string              `json:"system,omitempty"`
	InsecureSkipVerify bool                `json:"insecureSkipVerify,omitempty"`
	Fingerprint        string              `json:"fingerprint,omitempty"`
	MAC                inventory.MAC       `json:"mac,omitempty"`
	Options            map[string]string   `json:"options,omitempty"`
}

// SetBMC says how a host is powered.
func (h Hosts) SetBMC(ctx context.Context, host string, b SetBMC) (stored wire.HostBMC, err error) {
	return stored, h.c.call(ctx, http.MethodPut, h.at(host)+"/bmc", nil, b, &stored)
}

// TestBMC has the server connect to a controller before it is saved; the check says at which step that fails.
func (h Hosts) TestBMC(ctx context.Context, host string, b SetBMC) (k wire.BMCCheck, err error) {
	return k, h.c.call(ctx, http.MethodPost, h.at(host)+"/bmc/test", nil, b, &k)
}

// BMC says how a host is powered.
func (h Hosts) BMC(ctx context.Context, host string) (stored wire.HostBMC, err error) {
	return stored, h.c.call(ctx, http.MethodGet, h.at(host)+"/bmc", nil, nil, &stored)
}

// DeleteBMC forgets how a host is powered.
func (h Hosts) DeleteBMC(ctx context.Context, host string) error {
	return h.c.call(ctx, http.MethodDelete, h.at(host)+"/bmc", nil, nil, nil)
}

// Power changes the power of a host: on, off, shutdown, cycle or reset.
func (h Hosts) Power(ctx context.Context, host, action string) (o inventory.Operation, err error) {
	return o, h.c.call(ctx, http.MethodPost, h.at(host)+"/power", nil, map[string]string{"action": action}, &o)
}

// ConfirmPower says whether a host is on.
func (h Hosts) ConfirmPower(ctx context.Context, host string, is inventory.PowerState) (stored inventory.Host, err error) {
	return stored, h.c.call(ctx, http.MethodPost, h.at(host)+"/power/confirm", nil, map[string]any{"state": is}, &stored)
}

// Inspect looks at a host's hardware.
func (h Hosts) Inspect(ctx context.Context, host string, r operation.InspectRequest) (inventory.Host, error) {
	return h.verb(ctx, host, "inspect", r)
}

// Clean wipes a host that no machine has claimed.
func (h Hosts) Clean(ctx context.Context, host string, mode inventory.CleanMode) (inventory.Host, error) {
	return h.verb(ctx, host, "clean", map[string]any{"mode": mode})
}

// Confirm says that the machine that boots as a host is that host, or that its next boot is.
func (h Hosts) Confirm(ctx context.Context, host string) (inventory.Host, error) {
	return h.verb(ctx, host, "confirm", nil)
}

// Adopt says that a server runs already, or ends that.
func (h Hosts) Adopt(ctx context.Context, host string, on bool) (inventory.Host, error) {
	return h.verb(ctx, host, "adopt", map[string]bool{"on": on})
}

// Locate lights a host's identify LED.
func (h Hosts) Locate(ctx context.Context, host string, on bool) error {
	return h.c.call(ctx, http.MethodPost, h.at(host)+"/locate", nil, map[string]bool{"on": on}, nil)
}

// Hardware returns a host's n-th inspection, or its newest for 0.
func (h Hosts) Hardware(ctx context.Context, host string, n int) (i inventory.Inspection, err error) {
	return i, h.c.call(ctx, http.MethodGet, h.at(host)+"/hardware", params{"n": n}.values(), nil, &i)
}

// Reports returns what was measured on a host, newest first.
func (h Hosts) Reports(ctx context.Context, host string) (p Page[inventory.Report], err error) {
	return p, h.c.call(ctx, http.MethodGet, h.at(host)+"/reports", nil, nil, &p)
}
