// Package ipmi owns the power of machines whose controller speaks IPMI 2.0 over UDP (RMCP+). It trusts no answer
// without the integrity code of the session, and never outlives the context of a call.
//
// Start reading at Open, then driver.do. One call is one or more questions in a session. The driver opens the session
// when it needs one, and closes it after some seconds without use: controllers have few sessions.
//
// The handshake and the packets are our own (session.go, packet.go). The client of go-ipmi v0.9.1 does not check
// integrity codes, and resends packets under numbers that controllers drop. It also panics in its own goroutines on
// malformed packets. The driver uses its decoders of FRU, SEL and SDR records behind a guard.
package ipmi

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// Limits of the protocol.
const (
	maxUserN     = 16
	maxPasswordN = 20
)

// driver powers one machine. It holds at most one session, besides those of consoles. The lock guards s, idle, login,
// isClosed and refused, and is held for the whole of one question: controllers answer one at a time.
type driver struct {
	login
	lock chan struct{} // of one place: the call that fills it may use the fields below
	s    *session
	idle *time.Timer

	keep     time.Duration // how long an unused session stays open
	busyWait time.Duration // before the driver asks a busy controller again
	vendor   atomic.Uint32 // IANA number, once known
	isClosed bool
	refused  error        // why the login was refused: it is not tried again with the same password
	usedN    atomic.Int64 // sessions opened, for tests
}

// The driver can do all of this.
var (
	_ bmc.Booter          = (*driver)(nil)
	_ bmc.Locator         = (*driver)(nil)
	_ bmc.SensorReader    = (*driver)(nil)
	_ bmc.LogReader       = (*driver)(nil)
	_ bmc.InventoryReader = (*driver)(nil)
	_ bmc.UserManager     = (*driver)(nil)
	_ bmc.Console         = (*driver)(nil)

	_ bmc.ControllerResetter = (*driver)(nil)
	_ bmc.Asker              = (*driver)(nil)
	_ bmc.Opener             = Open
)

// Open makes a driver for a target. It does not connect, so that its only error is Invalid. The options are:
//
//	cipher     17 or 3; when absent the driver tries 17, then 3
//	port       623 when absent
//	privilege  administrator (when absent) or operator, which can only switch power
func Open(t bmc.Target) (bmc.Driver, error) {
	d := &driver{
		lock: make(chan struct{}, 1), keep: 15 * time.Second, busyWait: 500 * time.Millisecond,
		login: login{
			egress: t.Egress, user: t.Username, password: t.Password, level: levelAdministrator, ciphers: []int{17, 3},
			wait: time.Second, tries: 5,
		},
	}
	if len(t.Username) > maxUserN || strings.ContainsRune(t.Username, 0) {
		return nil, inventory.Errorf(inventory.Invalid, "ipmi: a user name has at most %d characters", maxUserN)
	}
	if err := checkPassword(t.Password); err != nil {
		return nil, err
	}
	port := "623"
	for k, v := range t.Options {
		switch {
		case k == "port":
			if n, err := strconv.ParseUint(v, 10, 16); err != nil || n == 0 {
				return nil, inventory.Errorf(inventory.Invalid, "ipmi: option port: %q is not a port", inventory.Clean(v, 20))
			}
			port = v
		case k == "cipher" && (v == "17" || v == "3"):
			id, _ := strconv.Atoi(v)
			d.ciphers = []int{id}
		case k == "cipher":
			return nil, inventory.Errorf(inventory.Invalid, "ipmi: option cipher: %q is not a cipher suite that protects", inventory.Clean(v, 20)).
				WithHint("use 17 or 3, or leave it out")
		case k == "privilege" && v == "operator":
			d.level = levelOperator
		case k == "privilege" && v == "administrator":
		default:
			return nil, inventory.Errorf(inventory.Invalid, "ipmi: unknown option %s=%s", inventory.Clean(k, 40), inventory.Clean(v, 40)).
				WithHint("options are cipher, port and privilege")
		}
	}
	var err error
	d.address, err = splitAddress(t.Address, port)
	return d, err
}

// splitAddress reads host, host:port or [IPv6]:port.
func splitAddress(s, port string) (string, error) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return net.JoinHostPort(a.String(), port), nil
	}
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		host, p = s, port
	}
	_, err = netip.ParseAddr(host)
	n, portErr := strconv.ParseUint(p, 10, 16)
	if portErr != nil || n == 0 || host == "" || err != nil && strings.ContainsAny(host, "/@ :[]") {
		return "", inventory.Errorf(inventory.Invalid, "ipmi: %q is not an address", inventory.Clean(s, 80)).WithHint("write it as 10.0.0.5 or 10.0.0.5:623")
	}
	return net.JoinHostPort(host, p), nil
}

func checkPassword(p string) error {
	if len(p) > maxPasswordN || strings.ContainsRune(p, 0) {
		return inventory.Errorf(inventory.Invalid, "ipmi: a password has at most %d characters", maxPasswordN).
			WithHint("IPMI cannot carry a longer one; set a shorter password at the controller")
	}
	return nil
}

// Close ends the session. It waits for a question that runs. Later calls fail.
func (d *driver) Close() error {
	d.lock <- struct{}{}
	defer d.free()
	d.isClosed = true
	d.drop()
	return nil
}

func (d *driver) free() { <-d.lock }

// drop ends the session. The lock is held.
func (d *driver) drop() {
	if d.idle != nil {
		d.idle.Stop()
	}
	if d.s != nil {
		d.s.close()
		d.s = nil
	}
}

// do asks the controller one question. doing names the purpose in errors, such as "read the power state".
//
// A completion code other than 0 becomes an error that codeOf reads; the data come with it. Any other error means
// that there was no trustworthy answer. The command may have run or not: all commands of this driver are safe to
// repeat.
func (d *driver) do(ctx context.Context, doing string, netFn, cmd byte, data ...byte) ([]byte, error) {
	select {
	case d.lock <- struct{}{}:
		defer d.free()
	case <-ctx.Done():
		return nil, d.explain(ctx.Err())
	}
	if d.isClosed {
		return nil, inventory.Errorf(inventory.Internal, "%s: the driver was closed", doing)
	}
	got, err := d.try(ctx, netFn, cmd, data)
	// A busy controller refuses for a second or two while it scans sensors. The caller would only repeat the call.
	for n := 0; n < 3 && isBusy(err); n++ {
		if sleep.For(ctx, d.busyWait) != nil {
			break
		}
		got, err = d.try(ctx, netFn, cmd, data)
	}
	if c, ok := errors.AsType[codeError](err); ok {
		return got, reason(d.address, doing, c)
	}
	return got, err
}

// try asks once. A kept session may be dead, because the controller restarted or dropped it. So try asks there with
// less patience, and then once more in a new session. The caller holds the lock.
func (d *driver) try(ctx context.Context, netFn, cmd byte, data []byte) ([]byte, error) {
	defer func() {
		if d.s != nil {
			d.idle = time.AfterFunc(d.keep, d.retire)
		}
	}()
	if d.idle != nil {
		d.idle.Stop()
	}
	if d.s != nil {
		got, err := d.s.call(ctx, min(2, d.tries), netFn, cmd, data...)
		if err == nil || codeOf(err) != 0 {
			return got, err
		}
		d.drop()
		if ctx.Err() != nil {
			return nil, d.explain(err)
		}
	}
	if d.refused != nil { // each wrong password brings the account nearer to being locked
		return nil, d.refused
	}
	s, err := d.open(ctx)
	if err != nil {
		if bmc.KindOf(err) == inventory.Unauthorized {
			d.refused = err
		}
		return nil, err
	}
	d.s = s
	d.usedN.Add(1)
	got, err := s.call(ctx, d.tries, netFn, cmd, data...)
	if err != nil && codeOf(err) == 0 {
		d.drop()
		return nil, d.explain(err)
	}
	return got, err
}

// retire ends a session that nobody used. It never waits: a caller that holds the lock is using the session, and
// starts the timer again.
func (d *driver) retire() {
	select {
	case d.lock <- struct{}{}:
		d.drop()
		d.free()
	default:
	}
}
