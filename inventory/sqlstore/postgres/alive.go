package postgres

import (
	"crypto/tls"
	"net"
	"syscall"
)

// isAlive reports whether the connection can be used, as far as this side knows. A server that ends a connection says so before it closes
// it: then there is something to read, and the end comes after that.
func (c *conn) isAlive() bool {
	for range 8 {
		if !c.isOpen() {
			return false
		}
		hasMore, err := hasArrived(c.c.PgConn().Conn())
		if err != nil {
			return false
		}
		if !hasMore {
			return true
		}
		if c.c.PgConn().CheckConn() != nil { // it reads one message
			return false
		}
	}
	return false
}

// hasArrived reports whether there is something to read. It does not wait for it: CheckConn does, for a millisecond, which is longer than
// most queries take. The error says that the connection has ended.
func hasArrived(c net.Conn) (bool, error) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return true, nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false, err
	}
	n, peekErr := 0, error(nil)
	err = raw.Read(func(fd uintptr) bool {
		n, _, peekErr = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	})
	switch {
	case err != nil:
		return false, err
	case peekErr == syscall.EAGAIN:
		return false, nil
	case peekErr != nil:
		return false, peekErr
	case n == 0:
		return false, net.ErrClosed
	}
	return true, nil
}
