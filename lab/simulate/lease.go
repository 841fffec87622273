package simulate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory/sleep"
)

var (
	errNoOffer  = errors.New("nobody offered an address")
	errNoAck    = errors.New("the address that was offered was never acknowledged")
	errRefused  = errors.New("the server refused the address it had offered")
	errNoServer = errors.New("the server names no address of its own (option 54)")
)

// exchange is a whole DHCP exchange of one program of the machine: DISCOVER until an OFFER comes, its wait for more
// offers, REQUEST until the ACK. Names of steps start with prefix.
func (m *machine) exchange(ctx context.Context, d dialect, prefix string) (bound, error) {
	mail, stop := m.group.net.listen(m.id.MAC)
	defer stop()
	a := ask{kind: typeDiscover, xid: m.xid(d)}
	if m.dice.happens(FaultWrongOrder) {
		m.impatient(d, a)
	}
	var b bound
	var err error
	b.offer, err = m.ask(ctx, d, a, mail, prefix+"offer", func(r *reply) bool { return r.kind() == typeOffer })
	if err != nil {
		return b, orElse(err, errNoOffer)
	}
	if b.server = b.offer.address(optServer); !b.server.IsValid() {
		return b, errNoServer
	}
	if err := m.collect(ctx, d, &b.offer); err != nil {
		return b, err
	}
	a.kind, a.address, a.server = typeRequest, b.offer.yiaddr, b.server
	b.ack, err = m.ask(ctx, d, a, mail, prefix+"ack", func(r *reply) bool { return r.kind() == typeAck || r.kind() == typeNak })
	if err != nil {
		return b, orElse(err, errNoAck)
	}
	if b.ack.kind() == typeNak {
		return b, errRefused
	}
	return b, m.bind(&b)
}

// osClient is the DHCP client of the operating system that a machine runs.
type osClient struct{ *machine }

// start asks until it has an address, as systemd-networkd, udhcpc and dhclient do.
func (m osClient) start(ctx context.Context) error {
	for {
		_, err := m.exchange(ctx, m.system(), "os ")
		if !errors.Is(err, errNoOffer) && !errors.Is(err, errNoAck) && !errors.Is(err, errRefused) {
			return err
		}
		m.group.stats.count("systems that began to ask for an address again")
		m.lived(Moment{What: "the system asks for an address again", Text: err.Error()})
		if err := sleep.For(ctx, m.timer(4*time.Second)); err != nil {
			return err
		}
	}
}

func orElse(err, silent error) error {
	if errors.Is(err, errSilence) {
		return silent
	}
	return err
}

// bind takes the address of an ACK into use.
func (m *machine) bind(b *bound) error {
	if b.ack.yiaddr != b.offer.yiaddr {
		return fmt.Errorf("offered %s, acknowledged %s", b.offer.yiaddr, b.ack.yiaddr)
	}
	b.address = b.ack.yiaddr
	period := time.Duration(0)
	if v := b.ack.option(optLeaseTime); len(v) == 4 {
		period = time.Duration(uint32(v[0])<<24|uint32(v[1])<<16|uint32(v[2])<<8|uint32(v[3])) * time.Second
	}
	l := Lease{MAC: macText(m.id.MAC, ":"), Address: b.address, At: b.ack.at, Until: b.ack.at.Add(period)}
	m.group.holders.took(l)
	if m.group.cfg.Acknowledged != nil {
		m.group.cfg.Acknowledged(l)
	}
	if m.address != b.address {
		m.drop()
	}
	if err := m.group.net.own(b.address); err != nil {
		return err
	}
	m.address, m.lease = b.address, *b
	return nil
}

// keep renews the lease of a machine that is up, as its operating system does, until ctx is done. When the server refuses
// or does not answer, the machine asks for an address as at its start.
func (m osClient) keep(ctx context.Context, every time.Duration) {
	for sleep.For(ctx, m.spread(every)) == nil {
		err := m.renew(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		m.failed("renewal: " + err.Error())
		m.drop()
		if _, err := m.exchange(ctx, m.system(), "os "); err != nil && ctx.Err() == nil {
			m.failed("after a renewal that failed: " + err.Error())
		}
	}
}

// renew asks the server that gave the lease for it again (RFC 2131 section 4.4.5): unicast, with the address in ciaddr.
func (m osClient) renew(ctx context.Context) error {
	if !m.address.IsValid() {
		return errNoOffer
	}
	mail, stop := m.group.net.listen(m.id.MAC)
	defer stop()
	d := m.system()
	d.request = []byte{optType, optClientID, optMaxSize, optClass, optHostname, optParameters}
	b := m.lease
	a := ask{kind: typeRequest, xid: m.xid(d), current: m.address}
	ack, err := m.askAt(ctx, d, a, mail, "renewal", &b.ack, func(r *reply) bool { return r.kind() == typeAck || r.kind() == typeNak })
	switch {
	case err != nil:
		return orElse(err, errNoAck)
	case ack.kind() == typeNak:
		return errRefused
	}
	b.offer, b.ack = ack, ack
	return m.bind(&b)
}

// drop gives up the machine's address, as power loss does: without a word to the server.
func (m *machine) drop() {
	if m.address.IsValid() {
		if err := m.group.net.disown(m.address); err != nil {
			m.group.log.Warn("address not given up", "mac", macText(m.id.MAC, ":"), "err", err)
		}
		m.address = netip.Addr{}
	}
}

// xid draws a transaction id; OVMF with Debian's iPXE sends the same one at every boot.
func (m *machine) xid(d dialect) uint32 {
	if m.isSameXID {
		if d.ipxe != nil {
			return 0xd8c8d933
		}
		return 0xba650b97
	}
	return m.dice.rand.Uint32()
}

// collect is the time in which a program looks out for better offers. EDK2 always waits; iPXE only when option 175.176
// does not tell it that no ProxyDHCP server will come.
func (m *machine) collect(ctx context.Context, d dialect, offer *reply) error {
	if v := offer.ipxeOption(176); d.ipxe != nil && len(v) == 1 && v[0] != 0 {
		return nil
	}
	return m.rest(ctx, d.offers)
}

// impatient sends a REQUEST for an address that nobody offered, to a server that is not there. Its own transaction id
// keeps any answer apart from the exchange that follows.
func (m *machine) impatient(d dialect, a ask) {
	a.kind, a.xid = typeRequest, a.xid^0xffffffff
	a.address, a.server = netip.AddrFrom4([4]byte{192, 0, 2, 1}), netip.AddrFrom4([4]byte{192, 0, 2, 2})
	_ = m.transmit(d.packet(m.id, a).marshal(), nil)
}

var errSilence = errors.New("no answer")

// ask sends a packet until the answer it wants comes, with the pauses of its program between. The time to the answer
// counts from the first packet: that is what the machine lives through.
func (m *machine) ask(ctx context.Context, d dialect, a ask, mail <-chan reply, step string, wanted func(*reply) bool) (reply, error) {
	return m.askAt(ctx, d, a, mail, step, nil, wanted)
}

// askAt asks the server that an answer came from; nil: all.
func (m *machine) askAt(ctx context.Context, d dialect, a ask, mail <-chan reply, step string, at *reply, wanted func(*reply) bool) (reply, error) {
	first := time.Now()
	for try, timer := range d.timers {
		a.secs = d.secs(try, a.kind, first)
		if try > 0 {
			m.group.stats.retried(step)
		}
		if err := m.transmit(d.packet(m.id, a).marshal(), at); err != nil {
			return reply{}, err
		}
		deadline := time.NewTimer(m.timer(timer))
		r, err := m.await(ctx, mail, deadline.C, a.xid, wanted)
		deadline.Stop()
		if errors.Is(err, errSilence) {
			continue
		}
		if err == nil {
			m.group.stats.took(step, r.at.Sub(first))
		}
		return r, err
	}
	return reply{}, errSilence
}

func (m *machine) await(ctx context.Context, mail <-chan reply, late <-chan time.Time, xid uint32, wanted func(*reply) bool) (reply, error) {
	for {
		select {
		case <-ctx.Done():
			return reply{}, ctx.Err()
		case <-late:
			return reply{}, errSilence
		case r := <-mail:
			if r.xid == xid && wanted(&r) && !m.dice.happens(FaultDrop) {
				return r, nil
			}
		}
	}
}

// secs is the header field: seconds for most, iPXE's own arithmetic (four per packet, two more once it has an offer).
func (d *dialect) secs(try int, kind byte, first time.Time) uint16 {
	if d.secsShift {
		s := uint16(4 * (try + 1))
		if kind == typeRequest {
			s += 6
		}
		return s
	}
	return uint16(time.Since(first).Round(time.Second) / time.Second)
}

// transmit sends a DHCP packet, with the faults of packets: to the server that an answer came from, or to all.
func (m *machine) transmit(payload []byte, at *reply) error {
	d := datagram{
		fromMAC: m.id.MAC, toMAC: broadcastMAC, payload: payload,
		from: netip.AddrPortFrom(netip.IPv4Unspecified(), 68),
		to:   netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), 67),
	}
	if at != nil {
		d.toMAC, d.to, d.from = at.fromMAC, at.from, netip.AddrPortFrom(m.address, 68)
	}
	if m.dice.happens(FaultMalformed) {
		bad := d
		bad.payload = m.dice.mangle(payload)
		if err := m.group.net.send(bad); err != nil {
			return err
		}
	}
	if m.dice.happens(FaultDrop) {
		return nil
	}
	if m.dice.happens(FaultDuplicate) {
		if err := m.group.net.send(d); err != nil {
			return err
		}
	}
	return m.group.net.send(d)
}
