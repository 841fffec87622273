// Package wol owns power-on by Wake-on-LAN. It can do nothing else: it never switches a machine off. It knows whether one
// is on only from the check that the caller sets.
//
// # Options of a wol BMC
//
// Address is where magic packets go: the broadcast address of the host's subnet, such as 10.0.0.255, or a relay. host:port
// also sets the port. When it is empty the packets go to 255.255.255.255, which leaves by one interface only. Host options:
// "port" (9 when missing) and "secureon", the password that some NICs demand: six bytes such as 01:23:45:67:89:ab. The
// BMC's password, if it is set, is used as SecureOn password too. One packet goes to each NIC of the host; MAC is not used:
// it would be the controller's.
package wol

import (
	"cmp"
	"context"
	"encoding/hex"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/inventory/sleep"
)

const (
	defaultPort = 9 // discard, as most tools use
	// repeats and gap: broadcasts are lost without anybody noticing.
	repeats = 3
	gap     = 50 * time.Millisecond
	macs    = 64 // inventory allows a host no more
)

// Options are what an opener needs.
type Options struct {
	// IsUp reports whether a machine answers on the network. With it, Power returns on or off. With nil, Power returns
	// unknown.
	IsUp func(ctx context.Context, b inventory.BMC) (bool, error)
	// Send sends one packet; nil is a UDP socket that may broadcast.
	Send func(ctx context.Context, to netip.AddrPort, packet []byte) error
}

// Opener makes the bmc.Opener.
func Opener(o Options) bmc.Opener {
	if o.Send == nil {
		o.Send = send
	}
	return func(t bmc.Target) (bmc.Driver, error) { return open(o, t) }
}

type driver struct {
	o       Options
	b       inventory.BMC
	to      netip.AddrPort
	egress  *egress.Policy
	packets [][]byte
}

func open(o Options, t bmc.Target) (bmc.Driver, error) {
	d := &driver{o: o, b: t.BMC, egress: t.Egress}
	port, password := uint16(defaultPort), t.Password
	for key, v := range t.Options {
		switch key {
		case "port":
			n, err := strconv.ParseUint(v, 10, 16)
			if err != nil || n == 0 {
				return nil, inventory.Errorf(inventory.Invalid, "bmc: %q is no UDP port", inventory.Clean(v, 40)).WithHint("Wake-on-LAN uses 9, and 7 at times")
			}
			port = uint16(n)
		case "secureon":
			password = v
		default:
			return nil, inventory.Errorf(inventory.Invalid, "bmc: wol has no option %q", inventory.Clean(key, 40)).WithHint("its options are port and secureon")
		}
	}
	var err error
	if d.to, err = destination(t.Address, port); err != nil {
		return nil, err
	}
	if len(t.HostMACs) == 0 {
		return nil, inventory.Errorf(inventory.Invalid, "bmc: Wake-on-LAN needs a MAC of the host").WithHint("slipway host set NAME --mac MAC")
	}
	tail, err := secureOn(password)
	if err != nil {
		return nil, err
	}
	for _, m := range t.HostMACs[:min(len(t.HostMACs), macs)] {
		p, err := packet(m, tail)
		if err != nil {
			return nil, err
		}
		d.packets = append(d.packets, p)
	}
	return d, nil
}

// destination reads an address with or without a port.
func destination(s string, port uint16) (netip.AddrPort, error) {
	s = cmp.Or(s, "255.255.255.255")
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(a, port), nil
	}
	if a, err := netip.ParseAddrPort(s); err == nil && a.Port() != 0 {
		return a, nil
	}
	return netip.AddrPort{}, inventory.Errorf(inventory.Invalid, "bmc: %q is no address for Wake-on-LAN", inventory.Clean(s, 80)).
		WithHint("use the broadcast address of the host's subnet, such as 10.0.0.255")
}

// packet writes a magic packet: six times 0xff, then the MAC sixteen times, then the SecureOn password.
func packet(m inventory.MAC, tail []byte) ([]byte, error) {
	mac, err := net.ParseMAC(string(m))
	if err != nil || len(mac) != 6 {
		return nil, inventory.Errorf(inventory.Invalid, "bmc: %q is not a MAC address", inventory.Clean(string(m), 40))
	}
	p := slices.Repeat([]byte{0xff}, 6)
	return append(append(p, slices.Repeat(mac, 16)...), tail...), nil
}

func secureOn(s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	b, err := hex.DecodeString(strings.NewReplacer(":", "", "-", "").Replace(s))
	if err != nil || len(b) != 6 {
		return nil, inventory.Errorf(inventory.Invalid, "bmc: the SecureOn password is not six bytes").WithHint("write it as 01:23:45:67:89:ab")
	}
	return b, nil
}

// Power asks IsUp whether the machine answers on the network. Without IsUp the state is unknown.
func (d *driver) Power(ctx context.Context) (inventory.PowerState, error) {
	if d.o.IsUp == nil {
		return inventory.PowerUnknown, nil
	}
	up, err := d.o.IsUp(ctx, d.b)
	switch {
	case err != nil:
		return inventory.PowerUnknown, &inventory.Error{Kind: inventory.Unavailable, Msg: "nothing shows whether the machine is up", Err: err}
	case up:
		return inventory.PowerOn, nil
	}
	return inventory.PowerOff, nil
}

// SetPower sends magic packets for On; there is nothing else.
func (d *driver) SetPower(ctx context.Context, a bmc.Action) error {
	if a != bmc.On {
		return inventory.Errorf(inventory.Invalid, "Wake-on-LAN can switch a machine on, and not do %q", inventory.Clean(string(a), 40)).
			WithHint("switch it off by hand, or give it another driver")
	}
	if err := d.mayReach(); err != nil {
		return err
	}
	// Nothing answers a magic packet. To repeat the broadcasts is all that can be done against loss.
	for n := range repeats {
		if n > 0 {
			_ = sleep.For(ctx, gap)
		}
		for _, p := range d.packets {
			if err := ctx.Err(); err != nil {
				return inventory.Errorf(inventory.Unavailable, "not all magic packets were sent: %v", err)
			}
			err := d.egress.MaySend()
			if err == nil {
				err = d.o.Send(ctx, d.to, p)
			}
			if err != nil {
				return inventory.Errorf(inventory.Unavailable, "the magic packet to %s was not sent: %s", d.to, inventory.Clean(err.Error(), 200)).
					WithHint("is there a route to that address?")
			}
		}
	}
	return nil
}

// mayReach refuses what the policy refuses, but for the addresses of everybody on a network, which magic packets are for. It
// runs when packets go out and not in Open: the policy also refuses the addresses of this machine, and these change.
func (d *driver) mayReach() error {
	if d.to.Addr().IsMulticast() || d.to.Addr() == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return nil
	}
	return egress.Explain("no magic packet is sent", d.egress.Check(d.to))
}

// Close ends nothing.
func (d *driver) Close() error { return nil }

// send sends one packet from a socket that may broadcast.
func send(ctx context.Context, to netip.AddrPort, packet []byte) error {
	network := "udp4"
	if to.Addr().Is6() && !to.Addr().Is4In6() {
		network = "udp6"
	}
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_BROADCAST, 1) }); e != nil {
			return e
		}
		return err
	}}
	conn, err := dialer.DialContext(ctx, network, to.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write(packet)
	return err
}
