package proxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// headerFor is how long a proxy has for the header of a connection.
const headerFor = 5 * time.Second

// Listen returns a listener that reads the header of the PROXY protocol, version 1 or 2, on connections of trusted proxies.
// The header names the client. It closes such a connection without a header. On any other connection it reads no header: a
// client could otherwise name any address as its own.
func Listen(l net.Listener, t Trusted) net.Listener { return &listener{l, t} }

type listener struct {
	net.Listener
	trusted Trusted
}

// Accept implements net.Listener. It does not wait for the header: a proxy that sends none would stop the accept loop.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if ap, _ := netip.ParseAddrPort(c.RemoteAddr().String()); !l.trusted.Has(ap.Addr()) {
		return c, nil
	}
	return &conn{Conn: c, in: bufio.NewReader(c)}, nil
}

// conn reads the header before it gives out data or an address. The goroutine that serves the connection asks first, so
// that a slow header delays no other connection.
type conn struct {
	net.Conn
	once   sync.Once
	in     *bufio.Reader
	client netip.AddrPort // zero: the proxy itself
	err    error
}

func (c *conn) header() {
	c.once.Do(func() {
		_ = c.Conn.SetReadDeadline(time.Now().Add(headerFor))
		c.client, c.err = ReadHeader(c.in)
		_ = c.Conn.SetReadDeadline(time.Time{})
		if c.err != nil {
			_ = c.Conn.Close()
		}
	})
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if c.header(); c.err != nil {
		return 0, c.err
	}
	return c.in.Read(b)
}

// SetReadDeadline implements net.Conn. The header comes first: reading it ends the deadline that was set before.
func (c *conn) SetReadDeadline(at time.Time) error {
	c.header()
	return c.Conn.SetReadDeadline(at)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(at time.Time) error {
	c.header()
	return c.Conn.SetDeadline(at)
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr {
	if c.header(); !c.client.IsValid() {
		return c.Conn.RemoteAddr()
	}
	return net.TCPAddrFromAddrPort(c.client)
}

// NetConn returns the connection to the proxy.
func (c *conn) NetConn() net.Conn { return c.Conn }

const (
	v1Max      = 107 // bytes of the longest line of version 1
	v2Max      = 2048
	v2Signed   = "\r\n\r\n\x00\r\nQUIT\n"
	familyTCP4 = 0x11
	familyTCP6 = 0x21
)

// ReadHeader reads a header of the PROXY protocol and nothing beyond it. The address is zero where the proxy speaks for itself
// (LOCAL, UNKNOWN).
func ReadHeader(in *bufio.Reader) (client netip.AddrPort, err error) {
	start, err := in.Peek(5) // shorter than any header
	if err != nil {
		return client, fmt.Errorf("proxy header: %w", err)
	}
	// Five bytes decide: version 2 begins with a line end.
	if string(start) == "PROXY" {
		return readV1(in)
	}
	if start, err = in.Peek(len(v2Signed)); err != nil {
		return client, fmt.Errorf("proxy header: %w", err)
	}
	if string(start) != v2Signed {
		return client, fmt.Errorf("proxy header: the connection of a trusted proxy begins without one")
	}
	return readV2(in)
}

// readV1 reads a line such as PROXY TCP4 192.0.2.1 10.0.0.1 51000 8067.
func readV1(in *bufio.Reader) (client netip.AddrPort, err error) {
	var line bytes.Buffer
	for line.Len() < v1Max {
		b, err := in.ReadByte()
		if err != nil {
			return client, fmt.Errorf("proxy header: %w", err)
		}
		// Byte by byte: what follows the line is the client's, and stays in the reader.
		line.WriteByte(b)
		if b == '\n' {
			break
		}
	}
	text, isWhole := strings.CutSuffix(line.String(), "\r\n")
	words := strings.Split(text, " ")
	switch {
	case !isWhole || len(words) < 2:
		return client, fmt.Errorf("proxy header: the line is cut short")
	case words[1] == "UNKNOWN":
		return client, nil
	case len(words) != 6 || words[1] != "TCP4" && words[1] != "TCP6":
		return client, fmt.Errorf("proxy header: %q is not understood", text)
	}
	// A zone would name an interface of the proxy, which means nothing here.
	a, err := netip.ParseAddr(words[2])
	if err != nil || a.Zone() != "" || a.Is4() != (words[1] == "TCP4") {
		return client, fmt.Errorf("proxy header: %q is no address of a client", words[2])
	}
	ap, err := netip.ParseAddrPort(net.JoinHostPort(words[2], words[4]))
	if err != nil {
		return client, fmt.Errorf("proxy header: %q is no port", words[4])
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
}

func readV2(in *bufio.Reader) (client netip.AddrPort, err error) {
	var head [16]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return client, fmt.Errorf("proxy header: %w", err)
	}
	// The length counts the addresses and any TLVs behind them, which are read and ignored.
	n := int(binary.BigEndian.Uint16(head[14:]))
	if n > v2Max {
		return client, fmt.Errorf("proxy header: %d bytes are too many", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(in, body); err != nil {
		return client, fmt.Errorf("proxy header: %w", err)
	}
	switch {
	case head[12]>>4 != 2:
		return client, fmt.Errorf("proxy header: version %d is not known", head[12]>>4)
	case head[12]&0x0f == 0: // LOCAL: the proxy looks whether we are there
		return client, nil
	case head[12]&0x0f != 1:
		return client, fmt.Errorf("proxy header: command %d is not known", head[12]&0x0f)
	}
	size := map[byte]int{familyTCP4: 4, familyTCP6: 16}[head[13]]
	switch {
	case head[13] == 0: // UNSPEC
		return client, nil
	case size == 0:
		return client, fmt.Errorf("proxy header: family 0x%02x is not TCP", head[13])
	case n < 2*size+4:
		return client, fmt.Errorf("proxy header: the addresses are cut short")
	}
	// Unmapped: ::ffff:192.0.2.1 must have the limits and the audit of 192.0.2.1.
	a, _ := netip.AddrFromSlice(body[:size])
	return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(body[2*size:])), nil
}
