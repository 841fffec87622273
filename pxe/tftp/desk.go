package tftp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

const (
	// tick is how often a desk looks for overdue answers.
	tick = 10 * time.Millisecond
	// batch is how many packets are read or written with one system call.
	batch = 64
)

// desk sends the files of many transfers through one socket, whose port is their identifier on our side (RFC 1350
// section 4): that of a transfer is the pair of ports. Packets of all of them are read and written together.
type desk struct {
	server  *Server
	conn    *net.UDPConn
	packets batchConn
	raw     syscall.RawConn // of conn
	skip    int             // the reader's own: so many reads do not look

	mu        sync.Mutex
	transfers map[netip.AddrPort]*transfer
	wakeAt    time.Time // the socket's deadline; zero while there is no transfer
	tickedAt  time.Time
	isClosed  bool
	out       []ipv4.Message // collected, not sent yet
	spare     []ipv4.Message // all that out can be
}

// batchConn is what golang.org/x/net has for both families: their messages are of one type.
type batchConn interface {
	ReadBatch(ms []ipv4.Message, flags int) (int, error)
	WriteBatch(ms []ipv4.Message, flags int) (int, error)
}

// openDesk opens a desk next to the socket of a gate.
func openDesk(s *Server, network string, a netip.Addr) (*desk, error) {
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("use the socket of transfers: %w", err)
	}
	widen(conn)
	d := &desk{server: s, conn: conn, raw: raw, transfers: map[netip.AddrPort]*transfer{}, spare: make([]ipv4.Message, batch)}
	for i := range d.spare {
		d.spare[i].Buffers = [][]byte{nil}
	}
	if network == "udp4" {
		d.packets = ipv4.NewPacketConn(conn)
	} else {
		d.packets = ipv6.NewPacketConn(conn)
	}
	return d, nil
}

// add begins a transfer. It reports false when the desk is closed.
func (d *desk) add(t *transfer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isClosed {
		return false
	}
	now := d.server.cfg.Now()
	d.transfers[t.client] = t
	d.send(t, t.sender.begin(now))
	d.flush()
	d.arm(now)
	return true
}

// drop takes a transfer away whose client asked for something else through the same port.
func (d *desk) drop(t *transfer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.transfers[t.client] == t {
		d.end(t, endOf(t.sender, errAskedAnew))
	}
}

// hasBegun reports whether the client of a transfer has acknowledged something: a request that comes then is a new one.
func (d *desk) hasBegun(t *transfer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.transfers[t.client] == t && t.sender.isHeard
}

// isSilent reports whether the client of a transfer has acknowledged nothing.
func (d *desk) isSilent(t *transfer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.transfers[t.client] == t && !t.sender.isHeard
}

// arm sets when the socket wakes its reader without a packet. Who adds a transfer and who reads both come here with mu
// held, so that no transfer is left waiting behind a reader that sleeps.
func (d *desk) arm(now time.Time) {
	var at time.Time
	if len(d.transfers) > 0 {
		if at = d.wakeAt; !at.After(now) {
			at = now.Add(tick)
		}
	}
	if at != d.wakeAt {
		d.wakeAt = at
		_ = d.conn.SetReadDeadline(at) // fails on a closed socket only
	}
}

// serve answers until ctx is done.
func (d *desk) serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, d.close)
	defer stop()
	in := make([]ipv4.Message, batch)
	for i := range in {
		in[i].Buffers = [][]byte{make([]byte, maxRequest)}
	}
	for {
		n, err := d.read(in)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			d.server.cfg.Log.Warn("tftp socket cannot be read", "addr", d.conn.LocalAddr().String(), "err", err)
			time.Sleep(tick) // whatever it is, it must not take a processor
		}
		d.turn(in[:max(n, 0)])
	}
}

// To be woken takes tens of microseconds, as long as a machine nearby takes for its acknowledgement: without windows, that is
// half of the time of a transfer. So the socket is looked at for a moment before its reader sleeps, and where that was without success,
// not again for a while.
const (
	looks    = 256
	skipping = 32 // reads
)

// read waits for packets.
func (d *desk) read(in []ipv4.Message) (int, error) {
	if d.skip > 0 {
		d.skip--
	} else if !d.look() {
		d.skip = skipping
	}
	return d.packets.ReadBatch(in, 0)
}

// look reports whether a packet has come within some 100 us.
func (d *desk) look() (isThere bool) {
	_ = d.raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //#nosec G115 -- a descriptor
		for n := 0; n < looks && !isThere; n++ {
			ready, _ := unix.Poll(fds, 0)
			isThere = ready > 0
		}
	})
	return isThere
}

// turn handles the packets of one read, and what is overdue.
func (d *desk) turn(in []ipv4.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.server.cfg.Now()
	for _, m := range in {
		from, ok := m.Addr.(*net.UDPAddr)
		if !ok {
			continue
		}
		peer := from.AddrPort()
		d.take(m.Buffers[0][:m.N], netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port()), now)
	}
	if now.Sub(d.tickedAt) >= tick {
		d.tickedAt = now
		for _, t := range d.transfers {
			d.expire(t, now)
		}
	}
	d.flush()
	d.arm(now)
}

// take handles one packet. What belongs to no transfer is counted and not answered: most of it is the second copy of a
// last acknowledgement, whose sender may already have asked for its next file through the same port.
func (d *desk) take(p []byte, from netip.AddrPort, now time.Time) {
	t := d.transfers[from]
	if t == nil || len(p) < 4 {
		d.server.Metrics.Strays.Inc()
		return
	}
	switch number := binary.BigEndian.Uint16(p[2:]); binary.BigEndian.Uint16(p) {
	case opAck:
		f, v := t.sender.acknowledge(number, now)
		d.follow(t, f, v)
	case opError:
		text, _, _ := cutText(append(p[4:len(p):len(p)], 0))
		d.end(t, ending{err: fmt.Errorf("the machine broke off: %s", inventory.Clean(errorText(number, text), 200)), isRefused: true})
	default:
		d.server.Metrics.Strays.Inc()
	}
}

// expire looks whether the answer of a client is overdue.
func (d *desk) expire(t *transfer, now time.Time) {
	if now.Sub(t.startedAt) > lastFor+time.Duration(t.file.Size()/slowest)*time.Second {
		d.end(t, ending{err: errTooSlow})
		return
	}
	f, v := t.sender.expire(now)
	d.follow(t, f, v)
}

func (d *desk) follow(t *transfer, f flight, v verdict) {
	switch v {
	case goesOn:
		d.send(t, f)
	case arrived:
		d.end(t, ending{})
	case unconfirmed:
		d.end(t, ending{isUnconfirmed: true})
	case silent:
		d.end(t, ending{err: errSilent})
	}
}

// send collects the packets of a flight.
func (d *desk) send(t *transfer, f flight) {
	for n := f.from; n < f.to; n++ {
		if n == 0 {
			p := d.packet(t, 0)
			*p = append(*p, t.answer...)
			continue
		}
		if !t.isRead {
			t.isRead = true
			d.server.cfg.Boots.Transferring(t.describe())
		}
		offset, length := t.sender.span(n)
		p := d.packet(t, 4+length)
		*p = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(*p, opData), uint16(n)) //#nosec G115 -- numbers wrap
		data := (*p)[4 : 4+length]
		if got, err := t.file.ReadAt(data, offset); got < length {
			d.out = d.out[:len(d.out)-1]
			d.server.cfg.Log.Error("a boot file cannot be read", "file", t.request.name, "addr", t.client.String(), "err", err)
			d.end(t, ending{err: errUnreadable})
			return
		}
		*p = (*p)[:4+length]
	}
}

// packet returns a new, empty packet to a client with room for n bytes; it is sent by the next flush.
func (d *desk) packet(t *transfer, n int) *[]byte {
	if len(d.out) == batch {
		d.flush()
	}
	d.out = d.spare[:len(d.out)+1]
	m := &d.out[len(d.out)-1]
	if cap(m.Buffers[0]) < n {
		m.Buffers[0] = make([]byte, 0, n)
	}
	m.Buffers[0], m.Addr, m.OOB = m.Buffers[0][:0], t.to, t.source
	return &m.Buffers[0]
}

// flush sends what is collected. A packet that cannot be sent is left out: it is lost, and will be sent again.
func (d *desk) flush() {
	for rest := d.out; len(rest) > 0; {
		n, err := d.packets.WriteBatch(rest, 0)
		if err != nil {
			n = max(n, 0) + 1
			d.server.Metrics.Unsent.Inc()
		}
		rest = rest[min(n, len(rest)):]
	}
	d.out = d.out[:0]
}

// end takes a transfer away and tells how it ended; the client is told where it waits for more.
func (d *desk) end(t *transfer, e ending) {
	delete(d.transfers, t.client)
	if e.err != nil && !e.isRefused && e.err != errAskedAnew {
		p := d.packet(t, 0)
		*p = append(*p, errorPacket(codeUndefined, e.err.Error())...)
	}
	d.server.finish(t, e)
}

// close ends all transfers.
func (d *desk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.transfers {
		d.end(t, ending{err: errStopping})
	}
	d.flush()
	d.isClosed = true
	d.conn.Close()
}
