package door

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"
)

// Placed is a connection that has a place at a listener.
type Placed interface{ Place() *Place }

// listener lets connections in by a door.
type listener struct {
	net.Listener
	door   *Door
	refuse func(net.Conn)
}

// Listen returns a listener that limits its connections by the Door. It hands a connection without a place to refuse, which
// closes it and must not block.
func (d *Door) Listen(l net.Listener, refuse func(net.Conn)) net.Listener {
	return &listener{Listener: l, door: d, refuse: refuse}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			l.door.NoteAccept(err)
			return nil, err
		}
		p := l.door.Enter(addrOf(c.RemoteAddr()), c)
		if p == nil {
			l.refuse(c)
			continue
		}
		return &placedConn{c, p}, nil
	}
}

// addrOf returns the address of a TCP connection; everybody at a Unix socket is one.
func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// shedN is how many idle connections make room when the process cannot open another file.
const shedN = 32

// NoteAccept gets the error of a failed accept. When the process has run out of file descriptors, idle connections make
// room.
func (d *Door) NoteAccept(err error) {
	if IsOutOfFiles(err) {
		outOfFiles.Store(time.Now().UnixNano())
		d.Shed(shedN)
	}
}

type placedConn struct {
	net.Conn
	place *Place
}

// Close implements net.Conn.
func (c *placedConn) Close() error {
	c.place.Leave()
	return c.Conn.Close()
}

// Place implements Placed.
func (c *placedConn) Place() *Place { return c.place }

// NetConn returns the connection that was accepted.
func (c *placedConn) NetConn() net.Conn { return c.Conn }

type placeKey struct{}

// Context returns ctx with the place of a connection. It is for http.Server.ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	for {
		if placed, ok := c.(Placed); ok {
			return context.WithValue(ctx, placeKey{}, placed.Place())
		}
		around, ok := c.(interface{ NetConn() net.Conn }) // TLS, or the PROXY protocol
		if !ok {
			return ctx
		}
		c = around.NetConn()
	}
}

func placeOf(ctx context.Context) *Place {
	p, _ := ctx.Value(placeKey{}).(*Place)
	return p
}

type trustKey struct{}

// OnTrust returns ctx with a function that Trust calls, too. It is for a request that another server has received.
func OnTrust(ctx context.Context, fn func()) context.Context {
	return context.WithValue(ctx, trustKey{}, fn)
}

// Trust makes the connection of a request one of a known source.
func Trust(ctx context.Context) {
	if p := placeOf(ctx); p != nil {
		p.Trust()
	}
	if fn, ok := ctx.Value(trustKey{}).(func()); ok {
		fn()
	}
}

// Handler counts a connection as busy while the server answers its request, and as idle while it waits for more of the
// request. A client that sends a body byte by byte therefore holds no place against others.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := placeOf(r.Context()); p != nil {
			p.begin()
			defer p.end()
			if r.ContentLength != 0 && r.Body != nil {
				r.Body = &body{r.Body, p}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// body is what comes of a request.
type body struct {
	io.ReadCloser
	place *Place
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.place.end()
	defer b.place.begin()
	return b.ReadCloser.Read(p)
}

const (
	// lingersMost bounds how many that are turned away may still be listened to, and lingerFor for how long: a connection that
	// is closed with unread bytes takes the words back that were sent.
	lingersMost = 64
	lingerFor   = time.Second
	lingerBytes = 16 << 10
)

var lingering atomic.Int32

// TurnAway returns a function that tells an HTTP client that the listener is full, and when to come again.
func TurnAway(after time.Duration) func(net.Conn) {
	const text = "too many connections; asking again helps\n"
	words := "HTTP/1.1 503 Service Unavailable\r\nRetry-After: " + strconv.Itoa(int(after/time.Second)) +
		"\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: " + strconv.Itoa(len(text)) + "\r\n\r\n" + text
	return func(c net.Conn) {
		_ = c.SetDeadline(time.Now().Add(lingerFor))
		if _, err := io.WriteString(c, words); err != nil || lingering.Add(1) > lingersMost { // it fits into the empty send buffer
			if err == nil {
				lingering.Add(-1)
			}
			_ = c.Close()
			return
		}
		go func() {
			defer lingering.Add(-1)
			defer c.Close()
			if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				_, _ = io.CopyN(io.Discard, c, lingerBytes)
			}
		}()
	}
}

// Shut closes without a message, because over TLS a message would need a handshake first.
func Shut(c net.Conn) { _ = c.Close() }
