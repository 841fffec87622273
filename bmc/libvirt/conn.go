package libvirt

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
	"github.com/digitalocean/go-libvirt/socket/dialers"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

const (
	// callFor bounds a call whose context has no nearer end. A loaded daemon may take many
	// seconds to end a guest.
	callFor = 30 * time.Second
	// headSize and frameLimit bound a packet: libvirt's own limit is 32 MiB (virnetprotocol.x, VIR_NET_MESSAGE_MAX), and
	// go-libvirt takes the length as it comes, even one that is shorter than the header.
	headSize   = 28
	frameLimit = 32 << 20
)

// Numbers of libvirt's remote protocol (remote_protocol.x and virnetprotocol.x).
const (
	remoteProgram  = 0x20008086
	remoteVersion  = 1
	openConsole    = 201
	typeReply      = 1
	typeStream     = 3
	statusOK       = 0
	statusContinue = 2
)

var errFrame = errors.New("the daemon sent a packet of an impossible size")

// framed is a connection that ends at the first packet of an impossible size. Without it, go-libvirt would allocate
// what a daemon claims, or panic on a size below that of the header.
//
// Only the library's reading goroutine calls Read, so that no lock guards the fields.
type framed struct {
	net.Conn
	head [headSize]byte
	seen int   // of head
	left int64 // of the packet's payload
	// replied, if set, is called with the serial number and status of each reply to a call.
	replied func(serial uint32, status uint32)
}

func (f *framed) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if e := f.follow(p[:n]); e != nil {
		_ = f.Close()
		return 0, e
	}
	return n, err
}

// follow keeps track of where packets begin and end. A header has seven numbers of 32 bits: the length of the packet, then
// program, version, procedure, type, serial and status (struct virNetMessageHeader).
func (f *framed) follow(b []byte) error {
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, int64(len(b)))
			f.left, b = f.left-n, b[n:]
			continue
		}
		n := copy(f.head[f.seen:], b)
		f.seen, b = f.seen+n, b[n:]
		// The length is complete, and the library has not got it yet: Read returns nothing of a bad packet.
		if f.seen >= 4 {
			if size := binary.BigEndian.Uint32(f.head[:]); size < headSize || size > frameLimit {
				return errFrame
			}
		}
		if f.seen == headSize {
			f.seen, f.left = 0, int64(binary.BigEndian.Uint32(f.head[:]))-headSize
			if f.replied != nil && binary.BigEndian.Uint32(f.head[16:]) == typeReply {
				f.replied(binary.BigEndian.Uint32(f.head[20:]), binary.BigEndian.Uint32(f.head[24:]))
			}
		}
	}
	return nil
}

// session is a connection to a daemon. gate lets one call run at a time, because a call that times out takes the
// connection with it. A channel and not a mutex: a caller whose context ends stops waiting for its turn.
type session struct {
	at   endpoint
	gate chan struct{} // holds a token while nobody uses the session
	l    *golibvirt.Libvirt
	conn net.Conn
}

func newSession(at endpoint) *session {
	s := &session{at: at, gate: make(chan struct{}, 1)}
	s.gate <- struct{}{}
	return s
}

// do runs fn on a connected session, for at most callFor. When ctx ends first, do closes the connection, which ends
// fn too. The daemon may still carry out the order then: callers read the state again.
func (s *session) do(ctx context.Context, fn func(l *golibvirt.Libvirt) error) error {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	select {
	case <-s.gate:
		defer func() { s.gate <- struct{}{} }()
	case <-ctx.Done():
		return late(ctx)
	}
	if ctx.Err() != nil {
		return late(ctx)
	}
	if s.l == nil || !s.l.IsConnected() {
		s.cut()
		l, conn, err := connect(ctx, s.at, nil)
		if err != nil {
			return err
		}
		s.l, s.conn = l, conn
	}
	l := s.l
	err := bounded(ctx, s.conn, func() error { return fn(l) })
	// Nobody knows how far a call came that timed out. The next one begins on a fresh connection.
	if ctx.Err() != nil || !l.IsConnected() {
		s.cut()
	}
	return err
}

// cut ends the connection, if there is one.
func (s *session) cut() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
	s.l, s.conn = nil, nil
}

// close waits for a call that runs, at most callFor, then takes leave of the daemon and ends the connection.
func (s *session) close() {
	<-s.gate
	defer func() { s.gate <- struct{}{} }()
	if s.l != nil && s.l.IsConnected() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = bounded(ctx, s.conn, s.l.Disconnect)
	}
	s.cut()
}

// bounded runs a call of the library, which knows no contexts. Closing the connection ends it: the goroutine of fn
// returns soon after, and the buffered channel takes its result.
func bounded(ctx context.Context, conn net.Conn, fn func() error) error {
	var once sync.Once
	cut := func() { once.Do(func() { _ = conn.Close() }) }
	stop := context.AfterFunc(ctx, cut)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		// The error is that of the closed connection; the timeout is the reason.
		if err != nil && ctx.Err() != nil {
			return late(ctx)
		}
		return err
	case <-ctx.Done():
		cut()
		return late(ctx)
	}
}

func late(ctx context.Context) error {
	return inventory.Errorf(inventory.Unavailable, "libvirt did not answer in time: %v", context.Cause(ctx)).
		WithHint("look at the daemon's log: journalctl -u libvirtd")
}

// connect opens a connection and asks for the hypervisor. wrap, if set, puts a connection of the caller's between the
// library and the framed one: Console reads the packets there.
func connect(ctx context.Context, at endpoint, wrap func(*framed) net.Conn) (*golibvirt.Libvirt, net.Conn, error) {
	var raw net.Conn
	err := errors.New("no address")
	for _, address := range at.addresses {
		if raw, err = at.egress.Dial(ctx, at.network, address); err == nil {
			break
		}
	}
	if err != nil {
		if refused := egress.Explain("Slipway does not ask libvirt", err); refused != nil {
			return nil, nil, refused
		}
		return nil, nil, silent(at, err)
	}
	var conn net.Conn
	f := &framed{Conn: raw}
	if conn = f; wrap != nil {
		conn = wrap(f)
	}
	l := golibvirt.NewWithDialer(dialers.NewAlreadyConnected(conn))
	if err := bounded(ctx, conn, func() error { return l.ConnectToURI(at.uri) }); err != nil {
		_ = conn.Close()
		// An error of libvirt's own proves that a daemon is there. With any other, something else listens, or nothing.
		var said golibvirt.Error
		if !errors.As(err, &said) {
			return nil, nil, silent(at, err)
		}
		return nil, nil, explain(err)
	}
	return l, conn, nil
}

// silent says that there is no daemon, whatever is there instead.
func silent(at endpoint, err error) error {
	return bmc.Silent("no libvirt daemon answers at "+inventory.Clean(at.addresses[0], 200), "is libvirtd running, and may this user open its socket (group libvirt)?", err)
}

// explain turns an error of the library into one with a kind and a hint, by libvirt's error number.
func explain(err error) error {
	var ours *inventory.Error
	if err == nil || errors.As(err, &ours) {
		return err
	}
	var e golibvirt.Error
	if !errors.As(err, &e) {
		return inventory.Errorf(inventory.Unavailable, "the connection to libvirt was lost: %s", inventory.Clean(err.Error(), 200)).
			WithHint("look at the daemon's log: journalctl -u libvirtd")
	}
	text := inventory.Clean(e.Message, 300)
	switch golibvirt.ErrorNumber(e.Code) {
	case golibvirt.ErrNoDomain:
		return inventory.Errorf(inventory.NotFound, "libvirt has no such domain: %s", text).WithHint("virsh list --all shows the domains")
	case golibvirt.ErrAuthFailed, golibvirt.ErrAuthCancelled, golibvirt.ErrAuthUnavailable:
		return inventory.Errorf(inventory.Unauthorized, "libvirt does not let us in: %s", text).WithHint("give Slipway's user the group libvirt, or set auth_unix_rw in libvirtd.conf")
	case golibvirt.ErrOperationDenied, golibvirt.ErrAccessDenied:
		return inventory.Errorf(inventory.Forbidden, "libvirt does not allow it: %s", text).WithHint("the connection must not be read-only")
	// The domain is in the wrong state for the order, for example off.
	case golibvirt.ErrOperationInvalid:
		return inventory.Errorf(inventory.Conflict, "libvirt cannot do that now: %s", text)
	case golibvirt.ErrConfigUnsupported, golibvirt.ErrXMLError, golibvirt.ErrNoSupport, golibvirt.ErrInvalidArg, golibvirt.ErrArgumentUnsupported, golibvirt.ErrXMLDetail:
		return inventory.Errorf(inventory.Invalid, "libvirt refuses: %s", text).WithHint("virsh edit DOMAIN changes the domain")
	}
	return inventory.Errorf(inventory.Unavailable, "libvirt: %s", text)
}
