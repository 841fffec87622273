package libvirt

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"

	golibvirt "github.com/digitalocean/go-libvirt"

	"slipway.dev/slipway/inventory"
)

// Console opens the machine's first console, which must be of type pty. It ends another session on it. ctx bounds the
// opening only; Close ends the console.
//
// go-libvirt reads streams and cannot write to this one. So the console puts input on the wire itself. It has a
// connection of its own, on which nobody else writes once it is open.
func (d *driver) Console(ctx context.Context) (io.ReadWriteCloser, error) {
	var wire *streamConn
	l, conn, err := connect(ctx, d.at, func(f *framed) net.Conn {
		wire = &streamConn{framed: f, opened: make(chan struct{})}
		f.replied = wire.hear
		return wire
	})
	if err != nil {
		return nil, err
	}
	var dom golibvirt.Domain
	if err := bounded(ctx, conn, func() (err error) { dom, err = find(l, d.system); return err }); err != nil {
		_ = conn.Close()
		return nil, explain(err)
	}
	r, w := io.Pipe()
	k := &console{conn: wire, r: r}
	// Buffered: nobody reads it once the console is open.
	failed := make(chan error, 1)
	k.reading.Go(func() {
		err := l.DomainOpenConsole(dom, nil, sink{w}, uint32(golibvirt.DomainConsoleForce))
		failed <- err
		// The reader of the console sees the end of the stream.
		_ = w.CloseWithError(io.EOF)
	})
	select {
	// The library's call returns only when the stream ends. So hear watches for the reply that opened it.
	case <-wire.opened:
		return k, nil
	case err := <-failed:
		_ = k.Close()
		if err == nil {
			return nil, inventory.Errorf(inventory.Unavailable, "libvirt ended the console at once")
		}
		return nil, noConsole(err)
	case <-ctx.Done():
		_ = k.Close()
		return nil, late(ctx)
	}
}

// noConsole says what is wrong with a machine whose console cannot be opened. libvirt has one error for all reasons.
func noConsole(err error) error {
	e := explain(err)
	if ours, ok := e.(*inventory.Error); ok && ours.Hint == "" {
		return ours.WithHint("the machine must be on, and its definition needs <serial type='pty'/>")
	}
	return e
}

// streamConn is the connection of a console. It learns the number of the stream from the call that opens it.
type streamConn struct {
	*framed
	serial atomic.Uint32 // stored by the goroutine that sends, loaded by the one that receives
	opened chan struct{}
	once   sync.Once
}

// Write passes on what the library sends. It sends each call in one piece.
func (s *streamConn) Write(p []byte) (int, error) {
	if len(p) >= headSize && binary.BigEndian.Uint32(p[4:]) == remoteProgram && binary.BigEndian.Uint32(p[12:]) == openConsole {
		s.serial.Store(binary.BigEndian.Uint32(p[20:]))
	}
	return s.Conn.Write(p)
}

// hear closes opened when the daemon confirms the stream. The library's reading goroutine calls it for every reply.
func (s *streamConn) hear(serial, status uint32) {
	if serial == s.serial.Load() && serial != 0 && status == statusOK {
		s.once.Do(func() { close(s.opened) })
	}
}

// send puts data, or the end of the stream, on the wire.
func (s *streamConn) send(status uint32, data []byte) error {
	p := make([]byte, headSize, headSize+len(data))
	for i, v := range []uint32{uint32(headSize + len(data)), remoteProgram, remoteVersion, openConsole, typeStream, s.serial.Load(), status} {
		binary.BigEndian.PutUint32(p[4*i:], v)
	}
	_, err := s.Conn.Write(append(p, data...))
	return err
}

// sink takes what the machine prints, also after the reader has left. go-libvirt's reader would block on a stream
// that was left before its end, and with it the whole connection.
type sink struct{ *io.PipeWriter }

func (s sink) Write(p []byte) (int, error) {
	_, _ = s.PipeWriter.Write(p)
	return len(p), nil
}

type console struct {
	conn    *streamConn
	r       *io.PipeReader
	mu      sync.Mutex // of writes
	reading sync.WaitGroup
}

func (k *console) Read(p []byte) (int, error) { return k.r.Read(p) }

func (k *console) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	const most = 64 << 10 // bytes in one packet; libvirt takes 256 KiB
	for n := 0; n < len(p); n += most {
		if err := k.conn.send(statusContinue, p[n:min(n+most, len(p))]); err != nil {
			return n, inventory.Errorf(inventory.Unavailable, "the console was closed: %s", inventory.Clean(err.Error(), 200))
		}
	}
	return len(p), nil
}

// Close ends the session and waits for its reader. The pipe goes first: sink then discards what still comes, so that the
// reader is free to see the closed connection.
func (k *console) Close() error {
	_ = k.r.Close()
	_ = k.conn.Close()
	k.reading.Wait()
	return nil
}
