// Package webhook owns power by HTTP calls that an administrator describes: PDUs, smart plugs, or a program of one's own.
// It never guesses: without a call for an action it cannot act, and without a status call the state is unknown.
//
// # Options of a webhook BMC
//
// Address is the URL that paths are joined to, such as https://pdu-3.example or http://10.0.0.9/api. User and password
// are sent by Basic authentication, a password without a user as Bearer token; option "auth" (basic, bearer or none)
// says otherwise. Fingerprint pins the certificate; InsecureSkipVerify accepts any.
//
// A call is one of on, off, cycle, reset, shutdown, status and boot, and is described by these options:
//
//	CALL.path    below the address, such as /outlet/{{.System}}/on?by=slipway; the call exists when this is given
//	CALL.method  POST when missing, GET for status
//	CALL.body    JSON, a form or text; its content type is guessed from how it looks unless there is a header for it
//	CALL.expect  status codes that mean success, such as 200,204; any 2xx when missing
//
// status also needs one of
//
//	status.pointer  a JSON pointer (RFC 6901) into the answer, such as /outlets/0/state
//	status.regexp   a regular expression; its first group, or all of it
//
// and takes status.on and status.off: the values, separated by commas, that mean so ("on,true,1" and "off,false,0" when
// missing; case does not count). Any other value is read as unknown.
//
// Options for all calls: "header.NAME" is a header to send. "timeout" bounds one call (default 10s, at most 1m). "pause" is
// how long a cycle stays off when it consists of the calls off and on (default 5s, at most 1m).
//
// The driver replaces {{.Host}}, {{.System}} and {{.MAC}} (of the host's first NIC) in paths, bodies and headers. In those
// of the boot call, it also replaces {{.Device}}, {{.Mode}}, {{.URI}} and {{.Persistent}}. It replaces {{.Password}} in
// bodies and headers. It escapes each value as its place needs. Boot returns what the boot call has set, from memory only.
package webhook

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// driver makes the calls that its options describe. Several goroutines may call it.
type driver struct {
	t       bmc.Target
	base    *url.URL
	client  *http.Client
	calls   map[string]*call
	headers map[string]string
	auth    string
	timeout time.Duration
	pause   time.Duration
	reading reading
}

// Open makes a driver from the options of a target. It makes no call, and its only error is Invalid: a wrong option
// shows now, and not when a machine has to be switched.
func Open(t bmc.Target) (bmc.Driver, error) {
	d, err := configure(t)
	if err != nil {
		return nil, err
	}
	if d.calls["boot"] != nil {
		return &bootDriver{driver: d, set: bmc.Boot{Device: bmc.None}}, nil
	}
	return d, nil
}

// Power makes the status call. The state is unknown without such a call, and when the answer has a value that the
// options do not name.
func (d *driver) Power(ctx context.Context) (inventory.PowerState, error) {
	c := d.calls["status"]
	if c == nil {
		return inventory.PowerUnknown, nil
	}
	body, err := d.make(ctx, c, d.words())
	if err != nil {
		return inventory.PowerUnknown, err
	}
	return d.reading.state(body)
}

// SetPower makes the call for an action. A cycle without a call of its own is off, the pause, and on. If the process
// dies between both, the machine is off, and the caller repeats the cycle.
//
// The error is Invalid for an action that no option describes.
func (d *driver) SetPower(ctx context.Context, a bmc.Action) error {
	switch a {
	case bmc.On, bmc.Off, bmc.Shutdown, bmc.Cycle, bmc.Reset:
	default:
		return inventory.Errorf(inventory.Invalid, "bmc: %q is not a change of power", inventory.Clean(string(a), 40))
	}
	// A call that the admin described counts first, also for a cycle: many PDUs do it themselves, and then it completes even
	// when this process dies.
	if c := d.calls[string(a)]; c != nil {
		_, err := d.make(ctx, c, d.words())
		return err
	}
	on, off := d.calls["on"], d.calls["off"]
	if a != bmc.Cycle || on == nil || off == nil {
		return inventory.Errorf(inventory.Invalid, "this webhook has no call for %s", a).WithHint("give the BMC an option %s.path", a)
	}
	if _, err := d.make(ctx, off, d.words()); err != nil {
		return err
	}
	// The device is off and stays off. Without this error the caller would believe that nothing happened.
	if sleep.For(ctx, d.pause) != nil {
		return inventory.Errorf(inventory.Unavailable, "the machine was switched off, and not on again: %v", ctx.Err())
	}
	_, err := d.make(ctx, on, d.words())
	return err
}

// Close ends idle connections.
func (d *driver) Close() error {
	d.client.CloseIdleConnections()
	return nil
}

// words are what templates may say in every call.
func (d *driver) words() map[string]string {
	mac := ""
	if len(d.t.HostMACs) > 0 {
		mac = string(d.t.HostMACs[0])
	}
	return map[string]string{"Host": d.t.HostName, "System": d.t.System, "MAC": mac, "Password": d.t.Password}
}

// bootDriver is a driver with a boot call.
type bootDriver struct {
	*driver
	set bmc.Boot
}

// SetBoot makes the boot call.
func (d *bootDriver) SetBoot(ctx context.Context, b bmc.Boot) error {
	switch b.Device {
	case bmc.None, bmc.PXE, bmc.HTTP, bmc.Disk, bmc.Virtual, bmc.Setup:
	default:
		return inventory.Errorf(inventory.Invalid, "bmc: %q is nothing to boot from", inventory.Clean(string(b.Device), 40))
	}
	words := d.words()
	words["Device"], words["Mode"], words["URI"], words["Persistent"] = string(b.Device), string(b.Mode), b.URI, strconv.FormatBool(b.IsPersistent)
	if _, err := d.make(ctx, d.calls["boot"], words); err != nil {
		return err
	}
	d.set = b
	return nil
}

// Boot returns what was set last: a webhook has no way to read it.
func (d *bootDriver) Boot(context.Context) (bmc.Boot, error) { return d.set, nil }
