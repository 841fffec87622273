package dhcp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
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
//
// The runtime watches every socket of its own for readability and writability, and is woken for each packet that comes
// and for each that has left. At thousands per second that costs more than the packets. So this socket is watched by an
// epoll instance of its own, for one packet and only while the reader waits; the runtime watches that.
type udpSocket struct {
	mu   sync.RWMutex // held while fd is in use; Close takes it alone
	fd   int          // -1 after Close
	poll *os.File
	wait syscall.RawConn // of poll
	in   *mmsgs          // the reader's
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
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make an epoll instance: %w", err)
	}
	_ = unix.SetNonblock(poll, true)
	s := &udpSocket{fd: fd, poll: os.NewFile(uintptr(poll), "epoll"), in: newMmsgs()}
	s.out.New = func() any { return newMmsgs() }
	// Nothing is watched before the reader waits.
	if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLONESHOT}); err != nil {
		s.poll.Close()
		return nil, fmt.Errorf("watch a socket: %w", err)
	}
	if s.wait, err = s.poll.SyscallConn(); err != nil {
		s.poll.Close()
		return nil, fmt.Errorf("watch a socket: %w", err)
	}
	return s, nil
}

// Close ends a read that waits.
func (s *udpSocket) Close() error {
	err := s.poll.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd >= 0 {
		err = errors.Join(err, unix.Close(s.fd))
		s.fd = -1
	}
	return err
}

// read implements datagrams. While packets come thick it lets them gather for a moment between two reads.
func (s *udpSocket) read(ms []datagram) (int, error) {
	if s.pace.isThick {
		time.Sleep(gatherPackets)
	}
	for {
		n, err := s.receive(ms)
		switch err {
		case nil:
			s.pace.add(n, time.Now())
			return n, nil
		case unix.EINTR:
			continue
		case unix.EAGAIN:
		default:
			return 0, err
		}
		s.pace = pace{}
		if err := s.waitForPacket(); err != nil {
			return 0, err
		}
	}
}

// receive reads what is there.
func (s *udpSocket) receive(ms []datagram) (int, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd < 0 {
		return 0, net.ErrClosed
	}
	h := s.in
	n := min(len(ms), maxMessages)
	for i := range n {
		h.toRead(i, ms[i].b)
	}
	got, err := h.call(unix.SYS_RECVMMSG, s.fd, n)
	if err != nil {
		return 0, err
	}
	for i := range got {
		h.wasRead(i, &ms[i])
	}
	return got, nil
}

// waitForPacket returns when there is something to read, if only an error, or the socket was closed.
func (s *udpSocket) waitForPacket() error {
	s.mu.RLock()
	if s.fd < 0 {
		s.mu.RUnlock()
		return net.ErrClosed
	}
	var arm error
	err := s.wait.Control(func(poll uintptr) {
		arm = unix.EpollCtl(int(poll), unix.EPOLL_CTL_MOD, s.fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT})
	})
	s.mu.RUnlock()
	if err = errors.Join(err, arm); err != nil {
		return err
	}
	return s.wait.Read(func(poll uintptr) bool {
		var events [1]unix.EpollEvent
		n, err := unix.EpollWait(int(poll), events[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

// write implements datagrams.
func (s *udpSocket) write(ms []datagram) (int, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd < 0 {
		return 0, net.ErrClosed
	}
	h := s.out.Get().(*mmsgs)
	defer s.out.Put(h)
	return h.send(s.fd, h.toWrite(ms))
}

// pace tells whether packets come so thick that it pays to let them gather.
type pace struct {
	n       int
	since   time.Time
	isThick bool
}

const (
	// gatherPackets is how long packets gather between two reads; an idle runtime makes a millisecond of it.
	gatherPackets = 500 * time.Microsecond
	paceN         = 64
	thickWithin   = 8 * time.Millisecond // paceN packets in less are 8,000 per second
)

// add takes note of packets that were read.
func (p *pace) add(n int, now time.Time) {
	if p.n == 0 && p.since.IsZero() {
		p.since = now
	}
	if p.n += n; p.n >= paceN {
		p.isThick = now.Sub(p.since) < thickWithin*time.Duration(p.n)/paceN
		p.n, p.since = 0, now
	}
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
