package dhcp

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/ear"
)

// datagram is a UDP message over IPv4 that was read, or is to be sent.
type datagram struct {
	b     []byte         // to be read into: the room; read: the message
	peer  netip.AddrPort // who sent it, or gets it
	local netip.Addr     // ours: where it was sent to, or leaves from
	isCut bool           // of one that was read: it was longer than the room
}

// datagrams is a UDP socket that is read and written in batches.
type datagrams interface {
	// read waits for messages and returns how many came.
	read(ms []datagram) (int, error)
	// write hands messages to the kernel and returns how many it took; an error is about the next one. It waits for room
	// a moment only.
	write(ms []datagram) (int, error)
	Close() error
}

// udpSocket is a UDP socket of one interface.
type udpSocket struct {
	*ear.Ear
	in   *mmsgs // the reader's
	pace pace
	out  sync.Pool // *mmsgs of writers
}

// listenUDP opens a socket that hears one interface only. It sets neither SO_REUSEADDR nor SO_REUSEPORT: with them, two
// servers would share the packets between them and nobody would be told.
func listenUDP(name string, number int) (*udpSocket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a UDP socket: %w", err)
	}
	err = setOptions(fd, name)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: number})
	}
	var s *udpSocket
	if err == nil {
		s, err = newUDPSocket(fd)
	}
	if err == nil {
		return s, nil
	}
	unix.Close(fd)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, portTaken(number)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return nil, inventory.Errorf(inventory.Forbidden, "no permission to listen on UDP port %d of %s", number, name).
			WithHint("run as root, or give the program CAP_NET_BIND_SERVICE, CAP_NET_RAW and CAP_NET_ADMIN")
	}
	return nil, fmt.Errorf("listen on UDP port %d of %s: %w", number, name, err)
}

func setOptions(fd int, name string) error {
	if err := unix.BindToDevice(fd, name); err != nil {
		return fmt.Errorf("bind to %s: %w", name, err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
		return fmt.Errorf("allow broadcasts on %s: %w", name, err)
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1); err != nil {
		return fmt.Errorf("ask for packet information on %s: %w", name, err)
	}
	// FORCE passes net.core.rmem_max, which is smaller than one rack's burst by default; without CAP_NET_ADMIN the
	// plain option gets what is allowed.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	}
	return nil
}

// newUDPSocket takes a socket that does not block; on an error it is the caller's to close.
func newUDPSocket(fd int) (*udpSocket, error) {
	e, err := ear.New(fd)
	if err != nil {
		return nil, err
	}
	s := &udpSocket{Ear: e, in: newMmsgs()}
	s.out.New = func() any { return newMmsgs() }
	return s, nil
}

// read implements datagrams. While packets come thick it lets them gather for a moment between two reads.
func (s *udpSocket) read(ms []datagram) (int, error) {
	time.Sleep(s.pace.gather())
	for {
		n, err := s.receive(ms)
		switch err {
		case nil:
			s.pace.add(n, min(len(ms), maxMessages), time.Now())
			return n, nil
		case unix.EINTR:
			continue
		case unix.EAGAIN:
		default:
			return 0, err
		}
		s.pace.none()
		if err := s.Wait(); err != nil {
			return 0, err
		}
	}
}

// receive reads what is there.
func (s *udpSocket) receive(ms []datagram) (int, error) {
	h := s.in
	n := min(len(ms), maxMessages)
	for i := range n {
		h.toRead(i, ms[i].b)
	}
	got, err := s.Use(func(fd int) (int, error) { return h.call(unix.SYS_RECVMMSG, fd, n) })
	if err != nil {
		return 0, err
	}
	for i := range got {
		h.wasRead(i, &ms[i])
	}
	return got, nil
}

// write implements datagrams.
func (s *udpSocket) write(ms []datagram) (int, error) {
	h := s.out.Get().(*mmsgs)
	defer s.out.Put(h)
	return s.Use(func(fd int) (int, error) { return h.send(fd, h.toWrite(ms)) })
}

// pace tells whether packets come so thick that it pays to let them gather.
type pace struct {
	n       int
	since   time.Time
	isThick bool
	isFull  bool // more may wait than were read
}

const (
	gatherPackets = 2 * time.Millisecond
	paceN         = 64
	thickWithin   = 8 * time.Millisecond // paceN packets in less are 8,000 per second
)

// add takes note of packets that were read, where there was room for so many.
func (p *pace) add(n, room int, now time.Time) {
	p.isFull = n == room
	if p.n == 0 && p.since.IsZero() {
		p.since = now
	}
	if p.n += n; p.n >= paceN {
		p.isThick = now.Sub(p.since) < thickWithin*time.Duration(p.n)/paceN
		p.n, p.since = 0, now
	}
}

// none takes note of a read that found nothing. Before packets gather, most reads find the one that came, and then none.
func (p *pace) none() {
	if p.isThick {
		*p = pace{}
	}
}

// gather is how long packets gather before the next read.
func (p *pace) gather() time.Duration {
	if p.isThick && !p.isFull {
		return gatherPackets
	}
	return 0
}

// maxMessages is how many messages one system call moves.
const maxMessages = 64

// mmsgs are what the kernel reads and writes messages by.
type mmsgs struct {
	all      [maxMessages]mmsg
	parts    [maxMessages]unix.Iovec
	peers    [maxMessages]unix.RawSockaddrInet4
	controls [maxMessages][controlSize]byte
}

// mmsg is struct mmsghdr.
type mmsg struct {
	unix.Msghdr
	n uint32
}

// controlSize has room for IP_PKTINFO.
const controlSize = 64

func newMmsgs() *mmsgs { return &mmsgs{} }

// call reads or writes the first n messages; it never waits. The calls are too short to tell the scheduler of them.
func (h *mmsgs) call(trap uintptr, fd, n int) (int, error) {
	r, _, e := unix.RawSyscall6(trap, uintptr(fd), uintptr(unsafe.Pointer(&h.all[0])), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(r), nil
}

// sendWait is how long a reply may wait for room on its way out; the machine asks again.
const sendWait = 10 * time.Millisecond

// send writes the first n messages.
func (h *mmsgs) send(fd, n int) (int, error) {
	sent, err := h.call(unix.SYS_SENDMMSG, fd, n)
	if err == unix.EAGAIN {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(sendWait/time.Millisecond))
		sent, err = h.call(unix.SYS_SENDMMSG, fd, n)
	}
	return sent, err
}

func (h *mmsgs) toRead(i int, room []byte) {
	p := &h.parts[i]
	p.Base = &room[0]
	p.SetLen(len(room))
	m := &h.all[i]
	m.Name, m.Namelen = (*byte)(unsafe.Pointer(&h.peers[i])), unix.SizeofSockaddrInet4
	m.Iov = p
	m.SetIovlen(1)
	m.Control = &h.controls[i][0]
	m.SetControllen(controlSize)
	m.Flags = 0
}

func (h *mmsgs) wasRead(i int, d *datagram) {
	m := &h.all[i]
	d.b = d.b[:m.n]
	d.isCut = m.Flags&unix.MSG_TRUNC != 0
	d.peer = netip.AddrPortFrom(netip.AddrFrom4(h.peers[i].Addr), bigEndian(h.peers[i].Port))
	d.local = destinationOf(h.controls[i][:m.Controllen])
}

// destinationOf reads IP_PKTINFO: the address a packet was sent to, which may be a broadcast; invalid without one.
func destinationOf(control []byte) netip.Addr {
	at := unix.CmsgLen(0)
	if len(control) < at+unix.SizeofInet4Pktinfo {
		return netip.Addr{}
	}
	info := (*unix.Inet4Pktinfo)(unsafe.Pointer(&control[at]))
	return netip.AddrFrom4(info.Addr)
}

// toWrite prepares messages, as many as fit, and returns how many those are.
func (h *mmsgs) toWrite(ms []datagram) (n int) {
	for n < len(ms) && n < maxMessages {
		d := &ms[n]
		h.parts[n].Base = &d.b[0]
		h.parts[n].SetLen(len(d.b))
		h.peers[n] = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: bigEndian(d.peer.Port()), Addr: d.peer.Addr().As4()}
		m := &h.all[n]
		m.Name, m.Namelen = (*byte)(unsafe.Pointer(&h.peers[n])), unix.SizeofSockaddrInet4
		m.Iov = &h.parts[n]
		m.SetIovlen(1)
		m.Flags = 0
		size := 0
		c := h.controls[n][:]
		if d.local.Is4() {
			size = putControl(c, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
			info := (*unix.Inet4Pktinfo)(unsafe.Pointer(&c[unix.CmsgLen(0)]))
			*info = unix.Inet4Pktinfo{Spec_dst: d.local.As4()}
		}
		m.Control = &c[0]
		m.SetControllen(size)
		n++
	}
	return n
}

// putControl begins a control message and returns the space that it takes.
func putControl(b []byte, level, kind int32, size int) int {
	space := unix.CmsgSpace(size)
	clear(b[:space])
	c := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	c.Level, c.Type = level, kind
	c.SetLen(unix.CmsgLen(size))
	return space
}

// bigEndian turns a port from our byte order into the network's, and back.
func bigEndian(port uint16) uint16 {
	b := *(*[2]byte)(unsafe.Pointer(&port))
	return uint16(b[0])<<8 | uint16(b[1])
}
