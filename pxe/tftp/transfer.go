package tftp

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

const (
	proto  = "tftp"
	askFor = 5 * time.Second // how long a file may take that is made for the machine; it asks again meanwhile
	// lastFor, and a second for every slowest bytes, end a transfer whose client acknowledges so slowly that it never
	// gets anywhere.
	lastFor = 10 * time.Minute
	slowest = 64 << 10
)

var (
	errNotInstalled = errors.New("the loader is not installed on the boot server; its start-up log names the package")
	errSilent       = errors.New("the machine stopped answering")
	errStopping     = errors.New("the boot server is stopping")
	errTooSlow      = errors.New("the transfer took too long")
	errAskedAnew    = errors.New("the machine asked for a file again before it had this one")
	errUnreadable   = errors.New("the boot server cannot read the file; its log says more")
	errOurs         = errors.New("the boot server has an internal error; its log says more")
)

// File is what a transfer sends. Its size does not change.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Memory returns a file of bytes.
func Memory(data []byte) File { return memory{bytes.NewReader(data)} }

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// transfer is a request on its way.
type transfer struct {
	request   request
	client    netip.AddrPort
	local     netip.Addr // our address that was asked
	startedAt time.Time
	place     *list.Element // among those of strangers

	// From here on it is the desk's.
	desk   *desk
	file   File
	sender *sender
	answer []byte       // to the options (RFC 2347); nil: there is none
	to     *net.UDPAddr // the client
	source []byte       // the control message that makes our address the sender
	isRead bool         // the client has got the first block, or will
}

func (t *transfer) describe() pxe.Transfer {
	d := pxe.Transfer{Source: t.client.Addr(), Proto: proto, Name: t.request.name, Size: t.file.Size()}
	d.Block, d.Window, d.Resent = t.sender.block, int(t.sender.window), t.sender.resent
	return d
}

// ending is how a transfer ended: well when err is nil.
type ending struct {
	err           error
	isRefused     bool // the client sent the error
	isUnconfirmed bool
}

// endOf is the end of a transfer that its client has left without a word.
func endOf(s *sender, err error) ending {
	if s.isHeard && s.next > s.last {
		return ending{isUnconfirmed: true}
	}
	return ending{err: err}
}

// running are the transfers by client and port, so that a request that was sent twice is served once.
type running struct {
	mu        sync.Mutex
	limit     int
	perClient int
	knows     func(netip.Addr) bool // who is a known host; nil: there are no strangers
	byPort    map[netip.AddrPort]*transfer
	ofClient  map[netip.Addr]int
	strangers list.List // of *transfer, the oldest first
}

func newRunning(limit, perClient int, knows func(netip.Addr) bool) *running {
	return &running{limit: limit, perClient: perClient, knows: knows, byPort: map[netip.AddrPort]*transfer{}, ofClient: map[netip.Addr]int{}}
}

const (
	// keptPart is the part of the transfers, as one of so many, that strangers never have.
	keptPart = 4
	// silentFor is after which time a transfer makes room whose client has acknowledged nothing: its address may be invented.
	silentFor = 2 * time.Second
	// silentLook is among how many of the oldest such a transfer is looked for.
	silentLook = 16
)

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
	isStranger := r.knows != nil && !r.knows(t.client.Addr())
	switch {
	case r.ofClient[t.client.Addr()] >= r.perClient:
		return tooMany
	case len(r.byPort) >= r.limit, isStranger && r.strangers.Len() >= r.limit-r.limit/keptPart:
		return isFull
	}
	if isStranger {
		t.place = r.strangers.PushBack(t)
	}
	r.byPort[t.client] = t
	r.ofClient[t.client.Addr()]++
	return accepted
}

// oldest returns some of the transfers that strangers have had for longest.
func (r *running) oldest() (some []*transfer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for e := r.strangers.Front(); e != nil && len(some) < silentLook; e = e.Next() {
		some = append(some, e.Value.(*transfer))
	}
	return some
}

// makeRoom ends a transfer whose client has not said a word, if there is one.
func (s *Server) makeRoom(now time.Time) bool {
	for _, t := range s.running.oldest() {
		if now.Sub(t.startedAt) >= silentFor && t.desk.isSilent(t) {
			t.desk.drop(t)
			return true
		}
	}
	return false
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
	if t.place != nil {
		r.strangers.Remove(t.place)
		t.place = nil
	}
	if r.ofClient[t.client.Addr()]--; r.ofClient[t.client.Addr()] == 0 {
		delete(r.ofClient, t.client.Addr())
	}
}

func (s *Server) count(o outcome) { s.Metrics.Requests.WithLabelValues(string(o)).Inc() }

// content finds the file of a transfer. What is made for the machine takes time: it is called in a goroutine of its own.
func (s *Server) content(ctx context.Context, t *transfer) (_ File, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error("tftp transfer panicked", "addr", t.client.String(), "err", p, "stack", string(debug.Stack()))
			err = errOurs
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	base := pxe.BaseURL(t.local, s.cfg.BootPort)
	if !pxe.IsAutoexec(t.request.name) {
		return s.cfg.Files.Open(ctx, t.client.Addr(), base, t.request.name)
	}
	script, err := s.cfg.Boots.Ask(ctx, "", t.client.Addr(), base)
	if err != nil {
		s.cfg.Log.Warn("no script for a machine", "addr", t.client.Addr().String(), "err", err)
		script = pxe.RefusalScript(base, "", "", err)
	}
	return Memory(script), nil
}

// finish tells how a transfer ended.
func (s *Server) finish(t *transfer, e ending) {
	s.running.remove(t)
	t.file.Close()
	end := t.describe()
	end.Took = s.cfg.Now().Sub(t.startedAt)
	s.Metrics.Resent.Add(float64(end.Resent))
	switch {
	case e.isUnconfirmed:
		end.Bytes, end.Unconfirmed = end.Size, true
		s.end(lastMissing, end)
	case e.err == nil:
		end.Bytes = end.Size
		s.Metrics.Seconds.Observe(end.Took.Seconds())
		s.end(sent, end)
	case e.isRefused && !t.isRead && t.request.wantsSize:
		// EDK2 and others ask for the size first, break off with ERROR 8 when they have it, and ask again.
		s.Metrics.Transfers.WithLabelValues(string(probed)).Inc()
	default:
		end.Bytes, end.Err = t.sender.has(), e.err
		s.end(failed, end)
	}
}

func (s *Server) end(o outcome, t pxe.Transfer) {
	s.Metrics.Transfers.WithLabelValues(string(o)).Inc()
	s.Metrics.Bytes.Add(float64(t.Bytes))
	s.cfg.Boots.Transferred(t)
}

// refuse ends a transfer that has no content: the machine is told why, unless it only has to wait.
func (s *Server) refuse(g *gate, t *transfer, err error) {
	s.running.remove(t)
	if wait := (*later)(nil); errors.As(err, &wait) {
		s.count(queued)
		s.cfg.Log.Debug("download waits", "addr", t.client.Addr().String(), "place", wait.place, "reason", wait.Error())
		return
	}
	if s.refused.Allow() { // some ask many times a second
		s.cfg.Log.Warn("no file for a machine", "addr", t.client.Addr().String(), "file", t.request.name, "err", err)
	}
	s.count(unavailable)
	g.answer(errorPacket(refusalOf(err)), t)
	s.cfg.Boots.Transferred(pxe.Transfer{Source: t.client.Addr(), Proto: proto, Name: t.request.name, Err: err})
}

// maxErrorText bounds what an ERROR packet says: many consoles have lines of 80, and none shows pages.
const maxErrorText = 240

// refusalOf is the code of an error and what the machine's console shows of it: its words where they are for people.
func refusalOf(err error) (code uint16, text string) {
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind == inventory.Internal {
		return codeUndefined, errOurs.Error()
	}
	text = e.Msg
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	switch e.Kind {
	case inventory.NotFound:
		code = codeNotFound
	case inventory.Forbidden, inventory.Unauthorized:
		code = codeForbidden
	}
	return code, inventory.Clean(text, maxErrorText)
}
