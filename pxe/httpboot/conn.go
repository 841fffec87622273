package httpboot

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/pxe/door"
)

// listener accepts connections within limits. Its connections have a ReadFrom, which a limiting listener of a library
// would hide: without it every byte of an image is copied through this process.
type listener struct {
	*net.TCPListener
	server *Server
	door   *door.Door
	isTLS  bool
	send   func(to *net.TCPConn, f *os.File, n int64) (sent int64, err error) // sendByKernel; tests look at what it is given
}

// Accept implements net.Listener. Who is over a limit is told to come again, and closed.
func (l *listener) Accept() (net.Conn, error) {
	for {
		tcp, err := l.AcceptTCP()
		if err != nil {
			l.door.NoteAccept(err)
			return nil, err
		}
		source := addrOf(tcp.RemoteAddr())
		if !l.server.cfg.Serves(addrOf(tcp.LocalAddr()).Addr()) {
			l.server.Metrics.Refused.WithLabelValues("not-served").Inc()
			tcp.Close()
			continue
		}
		c := &conn{TCPConn: tcp, send: l.send}
		if c.place = l.door.Enter(source.Addr(), tcp); c.place == nil {
			l.server.Metrics.Refused.WithLabelValues("connections").Inc()
			l.refuse(tcp)
			continue
		}
		return c, nil
	}
}

// comeAgainFor is when a machine that finds the door full is to ask again.
const comeAgainFor = 5 * time.Second

// refuse turns a connection away. Over TLS there are no words before a handshake.
func (l *listener) refuse(c net.Conn) {
	if l.isTLS {
		door.Shut(c)
		return
	}
	door.TurnAway(comeAgainFor)(c)
}

// conn is a connection on which the machine may be slow, but not stand still.
type conn struct {
	*net.TCPConn
	send   func(to *net.TCPConn, f *os.File, n int64) (sent int64, err error)
	place  *door.Place
	broken atomic.Pointer[error] // the first failure to write
}

// stallFor is how long a machine may take nothing. The kernel's buffer of a connection has room again when a third of it
// is free, so the slowest download that is kept is some kB/s.
const stallFor = time.Minute

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(stallFor)); err != nil {
		return 0, c.failed(err)
	}
	n, err := c.TCPConn.Write(p)
	return n, c.failed(err)
}

// ReadFrom implements io.ReaderFrom: net/http calls it with the rest of a file, and the kernel sends it.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if rest, ok := r.(*io.LimitedReader); ok {
		if f, ok := rest.R.(*os.File); ok {
			n, err := c.send(c.TCPConn, f, rest.N)
			rest.N -= n
			if n > 0 || !isUnsupported(err) {
				return n, c.failed(err)
			}
		}
	}
	return io.Copy(struct{ io.Writer }{c}, r)
}

// failed remembers why the connection cannot be written to: net/http keeps it from the handler.
func (c *conn) failed(err error) error {
	if err != nil {
		c.broken.CompareAndSwap(nil, &err)
	}
	return err
}

// drain waits until the machine has acknowledged everything that was written, and returns how many bytes it has not
// when it never will: the kernel takes several MB into its buffers that a machine may not live to read.
func (c *conn) drain() (unread int64, err error) {
	since, wait := time.Now(), time.Millisecond
	for last := int64(-1); ; {
		unread, isOpen, err := c.unread()
		switch {
		case err != nil || unread == 0:
			return unread, err
		case c.broken.Load() != nil:
			return unread, *c.broken.Load()
		case !isOpen:
			return unread, c.failed(syscall.ECONNRESET)
		case unread != last:
			last, since = unread, time.Now()
		case time.Since(since) > stallFor:
			return unread, c.failed(os.ErrDeadlineExceeded)
		}
		time.Sleep(wait)
		wait = min(2*wait, 50*time.Millisecond)
	}
}

// unread returns how many bytes the machine has not acknowledged, and whether it still may.
func (c *conn) unread() (n int64, isOpen bool, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var inner error
	err = raw.Control(func(fd uintptr) {
		var queued int
		var info *unix.TCPInfo
		if queued, inner = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); inner != nil {
			return
		}
		if info, inner = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); inner != nil {
			return
		}
		n, isOpen = int64(queued), info.State != unix.BPF_TCP_CLOSE
	})
	return n, isOpen, errors.Join(err, inner)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.place.Leave()
	return c.TCPConn.Close()
}

// Place implements door.Placed.
func (c *conn) Place() *door.Place { return c.place }

// addrOf returns a TCP address without IPv4-in-IPv6 and zone.
func addrOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := tcp.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}
