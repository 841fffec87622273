package proxy

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/pires/go-proxyproto"
)

// headerFor is how long a proxy has for the header of a connection.
const headerFor = 5 * time.Second

// Listen returns a listener that reads the header of the PROXY protocol, version 1 or 2, on connections of trusted proxies.
// The header names the client. A connection without a header cannot be read. On any other connection it reads no header: a
// client could otherwise name any address as its own.
func Listen(l net.Listener, t Trusted) net.Listener {
	return listener{&proxyproto.Listener{Listener: l, ConnPolicy: t.policy, ValidateHeader: checkHeader, ReadHeaderTimeout: headerFor}}
}

func (t Trusted) policy(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
	if ap, _ := netip.ParseAddrPort(o.Upstream.String()); !t.Has(ap.Addr()) {
		return proxyproto.SKIP, nil
	}
	return proxyproto.REQUIRE, nil
}

// checkHeader refuses a client that is no TCP client. With LOCAL and UNKNOWN the proxy speaks for itself.
func checkHeader(h *proxyproto.Header) error {
	if _, _, isTCP := h.TCPAddrs(); !isTCP && !h.Command.IsLocal() {
		return fmt.Errorf("proxy header: family 0x%02x is not TCP", byte(h.TransportProtocol))
	}
	return nil
}

type listener struct{ *proxyproto.Listener }

// Accept implements net.Listener. It does not wait for the header: a proxy that sends none would stop the accept loop. The
// goroutine that serves the connection reads it.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if p, ok := c.(*proxyproto.Conn); ok {
		return conn{p}, nil
	}
	return c, err
}

type conn struct{ *proxyproto.Conn }

// NetConn returns the connection to the proxy.
func (c conn) NetConn() net.Conn { return c.Raw() }

// LocalAddr returns the address of this server, and not that of the proxy which the header names.
func (c conn) LocalAddr() net.Addr { return c.Raw().LocalAddr() }
