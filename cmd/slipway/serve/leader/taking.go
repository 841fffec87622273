package leader

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// taking cuts a client that takes no byte of an answer for some time.
type taking struct {
	http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
}

// Write implements http.ResponseWriter.
func (t *taking) Write(b []byte) (int, error) {
	if err := t.control.SetWriteDeadline(time.Now().Add(t.within)); err != nil {
		return 0, err
	}
	return t.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (t *taking) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// Hijack implements http.Hijacker, for the WebSocket of a console.
func (t *taking) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffered, err := t.control.Hijack()
	return takingConn{c, t.within}, buffered, err
}

type takingConn struct {
	net.Conn
	within time.Duration
}

// Write implements net.Conn.
func (c takingConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.within)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// CloseWrite tells the client that the leader sends no more.
func (c takingConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
