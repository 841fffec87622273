package tftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	pin "github.com/pin/tftp/v3"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

const (
	proto  = "tftp"
	askFor = 5 * time.Second // how long autoexec.ipxe may take; the machine asks again meanwhile
	// lastFor ends a transfer whose client acknowledges so slowly that it never gets anywhere.
	lastFor = 10 * time.Minute
)

var (
	errNotInstalled = errors.New("the loader is not installed on the boot server; its start-up log names the package")
	errSilent       = errors.New("the machine stopped answering")
	errStopping     = errors.New("the boot server is stopping")
	errTooSlow      = errors.New("the transfer took longer than 10 minutes")
	errOurs         = errors.New("the boot server has an internal error; its log says more")
)

// transfer is a request on its way.
type transfer struct {
	request   request
	loader    images.Loader // zero for autoexec.ipxe
	client    netip.AddrPort
	local     netip.Addr // our address that was asked
	startedAt time.Time
}

// running are the transfers by client and port, so that a request that was sent twice is served once.
type running struct {
	mu        sync.Mutex
	limit     int
	perClient int
	byPort    map[netip.AddrPort]*transfer
	ofClient  map[netip.Addr]int
}

func newRunning(limit, perClient int) *running {
	return &running{limit: limit, perClient: perClient, byPort: map[netip.AddrPort]*transfer{}, ofClient: map[netip.Addr]int{}}
}

func (r *running) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byPort)
}

// add takes a transfer in, or says why not.
func (r *running) add(t *transfer) outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byPort[t.client] != nil {
		return duplicate
	}
	if len(r.byPort) >= r.limit || r.ofClient[t.client.Addr()] >= r.perClient {
		return tooMany
	}
	r.byPort[t.client] = t
	r.ofClient[t.client.Addr()]++
	return accepted
}

func (r *running) find(client netip.AddrPort) *transfer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byPort[client]
}

func (r *running) remove(t *transfer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byPort[t.client] != t {
		return
	}
	delete(r.byPort, t.client)
	if r.ofClient[t.client.Addr()]--; r.ofClient[t.client.Addr()] == 0 {
		delete(r.ofClient, t.client.Addr())
	}
}

func (s *Server) count(o outcome) { s.Metrics.Requests.WithLabelValues(string(o)).Inc() }

// send runs one transfer; the library calls it in a goroutine of its own. An error that it returns goes to the machine
// as text.
func (s *Server) send(ctx context.Context, to io.ReaderFrom) (err error) {
	out := to.(pin.OutgoingTransfer)
	peer := out.RemoteAddr()
	client := netip.AddrPortFrom(peer.AddrPort().Addr().Unmap(), peer.AddrPort().Port())
	t := s.running.find(client)
	if t == nil {
		return errOurs
	}
	defer s.running.remove(t)
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error("tftp transfer panicked", "addr", client.String(), "err", p, "stack", string(debug.Stack()))
			err = errOurs
		}
	}()
	data := t.loader.Data
	if t.request.name == pxe.AutoexecName {
		data = s.autoexec(ctx, t)
	}
	f := &file{data: data, read: func() { s.cfg.Boots.Transferring(s.describe(t, data)) }, broken: func() error {
		if ctx.Err() != nil {
			return errStopping
		}
		if s.cfg.Now().Sub(t.startedAt) > lastFor {
			return errTooSlow
		}
		return nil
	}}
	out.SetSize(int64(len(data)))
	_, err = to.ReadFrom(f)
	s.finish(t, f, err)
	return nil // the library has told the machine
}

func (s *Server) describe(t *transfer, data []byte) pxe.Transfer {
	return pxe.Transfer{Source: t.client.Addr(), Proto: proto, Name: t.request.name, Size: int64(len(data))}
}

// autoexec returns the machine's own script, or one that says why there is none.
func (s *Server) autoexec(ctx context.Context, t *transfer) []byte {
	base := pxe.BaseURL(t.local, s.cfg.BootPort)
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	script, err := s.cfg.Boots.Ask(ctx, "", t.client.Addr(), base)
	if err == nil {
		return script
	}
	s.cfg.Log.Warn("no script for a machine", "addr", t.client.Addr().String(), "err", err)
	return pxe.RefusalScript(base, "", "", err)
}

// finish tells how a transfer ended.
func (s *Server) finish(t *transfer, f *file, err error) {
	end := s.describe(t, f.data)
	end.Took = s.cfg.Now().Sub(t.startedAt)
	if err == nil {
		end.Bytes = end.Size
		s.Metrics.Seconds.Observe(end.Took.Seconds())
		s.end(sent, end)
		return
	}
	end.Bytes = int64(f.acked)
	var timeout net.Error
	isSilence := errors.As(err, &timeout)
	if !f.isRead && t.request.wantsSize && !isSilence {
		// EDK2 and others ask for the size first, break off with ERROR 8 when they have it, and ask again.
		s.Metrics.Transfers.WithLabelValues(string(probed)).Inc()
		return
	}
	switch {
	case f.err != nil:
		end.Err = f.err
	case isSilence:
		end.Err = errSilent
	default: // the machine's own words, from its ERROR packet
		end.Err = fmt.Errorf("the machine broke off: %s", inventory.Clean(err.Error(), 200))
	}
	s.end(failed, end)
}

func (s *Server) end(o outcome, t pxe.Transfer) {
	s.Metrics.Transfers.WithLabelValues(string(o)).Inc()
	s.Metrics.Bytes.Add(float64(t.Bytes))
	s.cfg.Boots.Transferred(t)
}

// file is what a transfer reads, one block at a time. That a block is read means that the machine has those before it.
type file struct {
	data   []byte
	read   func()       // called at the first block
	broken func() error // asked before each block

	next   int
	acked  int // bytes that the machine has
	isRead bool
	isFull bool // the last Read filled a whole block
	err    error
}

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	if !f.isRead {
		f.isRead = true
		f.read()
	}
	if f.isFull {
		f.acked = f.next
	}
	if f.err = f.broken(); f.err != nil {
		return 0, f.err
	}
	if f.next == len(f.data) {
		return 0, io.EOF
	}
	n := copy(p, f.data[f.next:])
	f.next += n
	f.isFull = n == len(p)
	return n, nil
}
