package postgres

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
)

// isAlive reports whether the connection can be used, as far as this side knows. A server sends a reason before it closes a
// connection. So isAlive asks the server only if there is something to read.
func (c *conn) isAlive() bool {
	if !c.isOpen() {
		return false
	}
	hasMore, err := hasArrived(c.c.PgConn().Conn())
	if err != nil || !hasMore {
		return err == nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	return c.c.Ping(ctx) == nil
}

// hasArrived reports whether there is something to read, and does not wait for it. The error says that the connection has ended.
//
// It peeks by Control, because Read of a raw connection waits for its other readers. After a write that was slow, a goroutine of pgx
// goes on reading an idle connection, until the server says something.
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
	err = raw.Control(func(fd uintptr) {
		n, _, peekErr = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
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
