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

// listener accepts connections within limits. Its connections have ReadFrom, which the limiting listeners of
// libraries hide. Without ReadFrom, net/http would copy every byte of an image through this process.
type listener struct {
	*net.TCPListener
	server *Server
	door   *door.Door
	isTLS  bool
	send   func(to *net.TCPConn, f *os.File, n int64) (sent int64, err error) // sendByKernel; tests look at what it is given
}

// Accept implements net.Listener. It closes a connection to an address that Config.Serves excludes. It answers a
// machine over a limit with 503 and Retry-After, and closes. Only an error of the socket itself reaches net/http.
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

// comeAgainFor is the Retry-After of a machine that comes while all places are taken.
const comeAgainFor = 5 * time.Second

// refuse turns a connection away. Over TLS it just closes: no words can pass before a handshake, and a handshake
// costs more than a refusal may.
func (l *listener) refuse(c net.Conn) {
	if l.isTLS {
		door.Shut(c)
		return
	}
	door.TurnAway(comeAgainFor)(c)
}

// conn is the connection of one machine. The machine may be slow, but it may not stop longer than stallFor.
type conn struct {
	*net.TCPConn
	send   func(to *net.TCPConn, f *os.File, n int64) (sent int64, err error)
	place  *door.Place
	broken atomic.Pointer[error] // the first failure to write
}

// stallFor is how long a machine may take no byte at all. The kernel reports room in the send buffer only when a
// third of it is free. So the slowest download that survives runs at some kB/s.
const stallFor = time.Minute

// Write implements net.Conn. It sets a new deadline for each call, because one deadline for a whole image would end
// slow but healthy downloads.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(stallFor)); err != nil {
		return 0, c.failed(err)
	}
	n, err := c.TCPConn.Write(p)
	return n, c.failed(err)
}

// ReadFrom implements io.ReaderFrom. net/http calls it with the rest of a file, and the kernel sends that with
// sendfile(2). It copies through this process only where the file system has no sendfile, and only while nothing was
// sent yet.
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
	// The wrapper hides ReadFrom: io.Copy would call this method again, without an end.
	return io.Copy(struct{ io.Writer }{c}, r)
}

// failed remembers the first error of a write and returns err. net/http does not tell the handler why a write failed,
// so the handler reads it here.
func (c *conn) failed(err error) error {
	if err != nil {
		c.broken.CompareAndSwap(nil, &err)
	}
	return err
}

// drain waits until the machine has acknowledged every byte. If the machine never will, it returns how many are
// missing, and why. Without it a transfer would count as whole while several MB are still in the buffers of the
// kernel. The machine may die before it reads them.
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
		// Most machines need one round trip, so it looks after 1 ms first and then less and less often.
		wait = min(2*wait, 50*time.Millisecond)
	}
}

// unread returns how many bytes the machine has not acknowledged, and whether the connection is still open. SIOCOUTQ
// counts what is unsent and what is unacknowledged (tcp(7)). A connection that was reset has an empty queue too, so
// the state must be read as well.
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

// Close implements net.Conn, and frees the place of the machine among the connections.
func (c *conn) Close() error {
	c.place.Leave()
	return c.TCPConn.Close()
}

// Place implements door.Placed.
func (c *conn) Place() *door.Place { return c.place }

// addrOf returns a TCP address as plain IPv4 or IPv6, without a zone, so that one machine has one spelling
// everywhere.
func addrOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := tcp.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}
