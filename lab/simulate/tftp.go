package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"
)

// TFTP operation codes (RFC 1350 section 5, RFC 2347).
const (
	tftpRead  = 1
	tftpData  = 3
	tftpAck   = 4
	tftpError = 5
	tftpOack  = 6
)

// download is a file as a machine got it.
type download struct {
	name   string
	size   int64
	digest [sha256.Size]byte
	head   []byte // its first bytes
	body   []byte // all of it, when it is a script
	etag   string
	took   time.Duration
}

const headBytes = 64

var errBrokenOff = errors.New("broken off on purpose")

// tftpClient fetches files as a firmware's TFTP client does.
type tftpClient struct {
	open   func() (net.PacketConn, error) // a socket with a new port
	conn   net.PacketConn                 // of the transfer under way
	server netip.AddrPort
	timer  time.Duration // between retransmissions
	tries  int
	drop   func() bool           // true: this packet from the server is lost
	slow   func(time.Duration)   // called before each ACK of a slow machine; nil for others
	abort  func(blocks int) bool // true: stop now
	buffer []byte
}

// tftpTransfer is what one read request is answered with.
type tftpTransfer struct {
	peer    net.Addr
	block   int // size of a block
	window  int
	size    int64 // as the server says; -1 when it does not
	pending []byte
}

// fetch does what EDK2 does: a first request that only asks for the size and is broken off with ERROR 8, then the
// transfer. The announced size must be the size that comes. Each request has a port of its own (RFC 1350 section
// 4), so that whatever a server says after the ERROR goes nowhere.
func (c *tftpClient) fetch(ctx context.Context, name string, how fileAsk) (download, error) {
	size := int64(-1)
	if len(how.probe) > 0 {
		if err := c.renew(); err != nil {
			return download{}, err
		}
		t, err := c.request(ctx, name, how.probe)
		if err != nil {
			return download{}, err
		}
		size = t.size
		c.sendError(t.peer, 8, "User aborted the transfer")
	}
	if err := c.renew(); err != nil {
		return download{}, err
	}
	t, err := c.request(ctx, name, how.fetch)
	if err != nil {
		return download{}, err
	}
	d, err := c.receive(ctx, name, t)
	if err == nil && size >= 0 && size != d.size {
		err = fmt.Errorf("tftp %s: the server announced %d bytes and sent %d", name, size, d.size)
	}
	return d, err
}

// renew opens a new port, and closes the one before.
func (c *tftpClient) renew() (err error) {
	c.close()
	if c.conn, err = c.open(); err != nil {
		return fmt.Errorf("open a TFTP port: %w", err)
	}
	return nil
}

func (c *tftpClient) close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// request sends a read request and waits for the first answer.
func (c *tftpClient) request(ctx context.Context, name string, options []string) (*tftpTransfer, error) {
	b := []byte{0, tftpRead}
	for _, s := range append([]string{name, "octet"}, options...) {
		b = append(append(b, s...), 0)
	}
	to := net.UDPAddrFromAddrPort(c.server)
	for try := 0; try < c.tries; try++ {
		if _, err := c.conn.WriteTo(b, to); err != nil {
			return nil, fmt.Errorf("tftp %s: %w", name, err)
		}
		p, from, err := c.read(ctx, nil)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("tftp %s: %w", name, err)
		}
		return firstAnswer(name, p, from)
	}
	return nil, fmt.Errorf("tftp %s: no answer to %d requests", name, c.tries)
}

func firstAnswer(name string, p []byte, from net.Addr) (*tftpTransfer, error) {
	t := &tftpTransfer{peer: from, block: 512, window: 1, size: -1}
	switch p[1] {
	case tftpOack:
		fields := zeroTerminated(p[2:])
		for i := 0; i+1 < len(fields); i += 2 {
			n, err := strconv.ParseInt(fields[i+1], 10, 64)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("tftp %s: option %s=%q in the answer", name, fields[i], fields[i+1])
			}
			switch fields[i] {
			case "blksize":
				t.block = int(min(n, 65464))
			case "windowsize":
				t.window = int(min(n, 64))
			case "tsize":
				t.size = n
			}
		}
		return t, nil
	case tftpData:
		t.pending = append([]byte(nil), p...)
		return t, nil
	}
	return nil, fmt.Errorf("tftp %s: %w", name, tftpRefusal(p))
}

func tftpRefusal(p []byte) error {
	if p[1] != tftpError || len(p) < 4 {
		return fmt.Errorf("unexpected packet of type %d", p[1])
	}
	return fmt.Errorf("server says %q (error %d)", text(p[4:]), binary.BigEndian.Uint16(p[2:]))
}

func zeroTerminated(b []byte) (out []string) {
	for len(b) > 0 {
		s := text(b)
		out = append(out, s)
		b = b[min(len(s)+1, len(b)):]
	}
	return out
}

// receive takes the blocks in order and acknowledges each window (RFC 7440); what comes out of order is acknowledged
// again up to the last good block.
func (c *tftpClient) receive(ctx context.Context, name string, t *tftpTransfer) (download, error) {
	start, hash := time.Now(), sha256.New()
	d := download{name: name}
	got, inWindow := 0, 0
	if t.pending == nil {
		c.sendAck(t.peer, 0)
	}
	for {
		p, err := c.data(ctx, t, got)
		if err != nil {
			return d, fmt.Errorf("tftp %s: %w", name, err)
		}
		if binary.BigEndian.Uint16(p[2:]) != uint16(got+1) {
			if inWindow = 0; binary.BigEndian.Uint16(p[2:]) != uint16(got) {
				c.sendAck(t.peer, got) // a gap; a repeated block is not acknowledged again (RFC 1123 section 4.2.3.1)
			}
			continue
		}
		got++
		inWindow++
		hash.Write(p[4:])
		d.size += int64(len(p) - 4)
		if len(d.head) < headBytes {
			d.head = append(d.head, p[4:min(len(p), 4+headBytes-len(d.head))]...)
		}
		if c.abort != nil && c.abort(got) {
			c.sendError(t.peer, 0, "machine lost power")
			return d, errBrokenOff
		}
		if c.slow != nil {
			c.slow(5 * time.Millisecond)
		}
		isLast := len(p)-4 < t.block
		if isLast || inWindow >= t.window {
			c.sendAck(t.peer, got)
			inWindow = 0
		}
		if isLast {
			hash.Sum(d.digest[:0])
			d.took = time.Since(start)
			return d, nil
		}
	}
}

// data waits for a DATA packet and asks for it again when it does not come.
func (c *tftpClient) data(ctx context.Context, t *tftpTransfer, got int) ([]byte, error) {
	if p := t.pending; p != nil {
		t.pending = nil
		return p, nil
	}
	for range c.tries {
		p, _, err := c.read(ctx, t.peer)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), err == nil && p[1] == tftpOack && got == 0:
			c.sendAck(t.peer, got)
		case err != nil:
			return nil, err
		case p[1] != tftpData:
			return nil, tftpRefusal(p)
		default:
			return p, nil
		}
	}
	return nil, fmt.Errorf("nothing came after block %d", got)
}

// read waits for one packet of at least four bytes, from the given peer if there is one already.
func (c *tftpClient) read(ctx context.Context, peer net.Addr) ([]byte, net.Addr, error) {
	if c.buffer == nil {
		c.buffer = make([]byte, 65536)
	}
	b := c.buffer
	if err := c.conn.SetReadDeadline(time.Now().Add(c.timer)); err != nil {
		return nil, nil, err
	}
	for {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		n, from, err := c.conn.ReadFrom(b)
		if err != nil {
			return nil, nil, err
		}
		if n < 4 || b[0] != 0 || c.drop() || peer != nil && from.String() != peer.String() {
			continue
		}
		return b[:n], from, nil
	}
}

func (c *tftpClient) sendAck(to net.Addr, block int) {
	_, _ = c.conn.WriteTo([]byte{0, tftpAck, byte(block >> 8), byte(block)}, to)
}

func (c *tftpClient) sendError(to net.Addr, code byte, why string) {
	_, _ = c.conn.WriteTo(append(append([]byte{0, tftpError, 0, code}, why...), 0), to)
}
