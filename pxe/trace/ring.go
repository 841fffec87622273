package trace

import (
	"cmp"
	"container/list"
	"net/netip"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// Ring keeps the last frames of each machine in bounded memory. Known machines have one part, and the others a smaller one.
// So a flood of invented MACs costs no known machine its record. Many goroutines may call its methods: mu guards the
// records and maps.
type Ring struct {
	mu         sync.Mutex
	knows      func(inventory.MAC) bool
	isOurs     func(netip.Addr) bool
	keep       func(f Frame, isKnown bool)
	known      shelf
	strangers  shelf
	byAddr     map[netip.Addr]inventory.MAC
	byXid      map[uint32]asker
	soliciting map[inventory.MAC]time.Time // who asked for a router, and when last
}

// asker is the last machine that used a transaction id.
type asker struct {
	mac inventory.MAC
	at  time.Time
}

const (
	xidFor  = 30 * time.Second // how long a transaction id counts as in use
	maxXids = 4096
	// solicitFor is how long a machine counts as asking for a router. maxSoliciting bounds how many records get a
	// copy of an advertisement to all.
	solicitFor    = 30 * time.Second
	maxSoliciting = 64
)

// Config is everything a Ring needs.
type Config struct {
	Knows func(inventory.MAC) bool // whether a MAC belongs to a host; nil: none does
	// IsOurs reports whether this server has an address. So the Ring knows which end of a packet is the machine; with
	// nil it is the sender.
	IsOurs func(netip.Addr) bool
	// MaxBytes bounds the memory for known machines in bytes; 0 means 24 MiB. Strangers have a third of it in
	// addition.
	MaxBytes int
	// Keep gets each frame that the Ring keeps, so that it can go to disk as well; nil: to none. isKnown says that
	// the machine is a host. The Ring calls it with its lock held: Keep must not block, change the bytes or call the
	// Ring.
	Keep func(f Frame, isKnown bool)
	// PerMachine bounds the frames of one machine; 0 means 400. The oldest go first.
	PerMachine int
}

const (
	maxBytes   = 24 << 20 // over 1,000 boots
	perMachine = 400
	perFrame   = 64 // what a frame costs next to its bytes
	perTrack   = 512
	maxAddrs   = 100_000
)

// shelf is a set of tracks with one budget of bytes. The track that was silent longest makes room.
type shelf struct {
	tracks map[inventory.MAC]*list.Element
	order  *list.List // of *track, the latest active first
	bytes  int
	limit  int
	per    int
}

// track is the record of one machine: its frames and notes, oldest first.
type track struct {
	mac    inventory.MAC
	frames []Frame
	notes  []Note
	bytes  int
}

// NewRing returns an empty Ring.
func NewRing(cfg Config) *Ring {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, maxBytes)
	cfg.PerMachine = cmp.Or(cfg.PerMachine, perMachine)
	if cfg.Knows == nil {
		cfg.Knows = func(inventory.MAC) bool { return false }
	}
	return &Ring{
		knows: cfg.Knows, isOurs: cfg.IsOurs, keep: cfg.Keep, known: newShelf(cfg.MaxBytes, cfg.PerMachine), strangers: newShelf(cfg.MaxBytes/3, cfg.PerMachine),
		byAddr: map[netip.Addr]inventory.MAC{}, byXid: map[uint32]asker{},
		soliciting: map[inventory.MAC]time.Time{},
	}
}

func newShelf(limit, per int) shelf {
	return shelf{tracks: map[inventory.MAC]*list.Element{}, order: list.New(), limit: limit, per: per}
}

// Add keeps a frame with the machine that it is about, and drops a frame about none. It keeps a copy of the bytes. It
// overwrites secrets in the bytes of the caller, so the caller must not use them afterwards.
func (r *Ring) Add(f Frame) {
	r.add(f, r.keep)
}

// Restore is Add for a frame that Keep stored before a restart: it does not call Keep again.
func (r *Ring) Restore(f Frame) { r.add(f, nil) }

// add decodes before it takes the lock: most frames are about no boot, and cost other callers nothing.
func (r *Ring) add(f Frame, keep func(Frame, bool)) {
	p := Decode(f)
	if p.Kind == Unknown {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Kind == Router && p.Router.IsAdvert && isGroup(p.To) { // to everybody: it answers all that have asked
		f.Bytes = slices.Clone(scrub(f, &p).Bytes)
		for mac, at := range r.soliciting {
			if p.At.Sub(at) > solicitFor {
				delete(r.soliciting, mac)
			} else {
				r.put(mac, f, keep)
				keep = nil // once is enough: read back, it comes to all that have asked
			}
		}
		return
	}
	mac, ok := r.whose(&p)
	if !ok {
		return
	}
	r.share(&p)
	if p.Kind == Router && !p.Router.IsAdvert {
		if len(r.soliciting) >= maxSoliciting {
			clear(r.soliciting)
		}
		r.soliciting[mac] = p.At
	}
	f.Bytes = slices.Clone(scrub(f, &p).Bytes)
	r.put(mac, f, keep)
}

// put keeps a frame with a machine. The caller holds mu. When a stranger has become a host, put moves its whole
// record to the known part.
func (r *Ring) put(mac inventory.MAC, f Frame, keep func(Frame, bool)) {
	isKnown := r.knows(mac)
	if keep != nil {
		keep(f, isKnown)
	}
	if !isKnown {
		r.strangers.add(mac, f)
		return
	}
	if t := r.strangers.take(mac); t != nil { // it has become a host
		for _, was := range t.frames {
			r.known.add(mac, was)
		}
		now := r.known.track(mac)
		now.notes = append(now.notes, t.notes...)
	}
	r.known.add(mac, f)
}

// share notes two machines that use one transaction id within 30 s: each may then take the other's answers. The
// caller holds mu.
func (r *Ring) share(p *Packet) {
	if p.Kind != DHCPv4 || p.DHCP.IsReply {
		return
	}
	m := p.DHCP
	was, ok := r.byXid[m.Xid]
	if ok && was.mac != m.MAC && p.At.Sub(was.at) < xidFor {
		reason := SameXid + string(was.mac)
		if notes := r.notes(m.MAC); !slices.ContainsFunc(notes, func(n Note) bool { return n.Reason == reason && p.At.Sub(n.At) < xidFor }) {
			r.tell(m.MAC, Note{At: p.At, Reason: reason})
			r.tell(was.mac, Note{At: p.At, Reason: SameXid + string(m.MAC)})
		}
	}
	if len(r.byXid) >= maxXids {
		clear(r.byXid)
	}
	r.byXid[m.Xid] = asker{m.MAC, p.At}
}

// whose returns the machine that a packet is about, and learns the machine's address from a DHCPv4 ACK. The caller
// holds mu. Behind a relay or a router the MAC of the frame is not the machine's. So a learnt address counts before
// it.
func (r *Ring) whose(p *Packet) (inventory.MAC, bool) {
	switch {
	case p.Kind == DHCPv4:
		if m := p.DHCP; m.IsReply && m.Type == 5 && m.Yours.IsValid() {
			if len(r.byAddr) >= maxAddrs {
				clear(r.byAddr)
			}
			r.byAddr[m.Yours] = m.MAC
		}
		return p.DHCP.MAC, true
	case p.Kind == DHCPv6 && p.Six.Relay.IsValid(): // the frame's MACs are the relay's and ours
		return p.Six.MAC, p.Six.MAC != ""
	case p.Kind == DHCPv6 && p.Six.FromServer():
		return p.To, !isGroup(p.To)
	case p.Kind == ICMP:
		for _, a := range []netip.Addr{p.ICMP.Src.Addr(), p.ICMP.Dst.Addr()} {
			if mac, ok := r.byAddr[a]; ok {
				return mac, true
			}
		}
		return "", false
	}
	for _, a := range []netip.Addr{p.Src.Addr(), p.Dst.Addr()} {
		if mac, ok := r.byAddr[a]; ok {
			return mac, true
		}
	}
	switch {
	case r.isOurs != nil && r.isOurs(p.Dst.Addr()), isGroup(p.To):
		return p.From, true
	case r.isOurs != nil && r.isOurs(p.Src.Addr()):
		return p.To, true
	}
	return p.From, p.Kind == DHCPv6 || p.Kind == Router
}

// isGroup reports whether a MAC is a broadcast or multicast address: the lowest bit of its first byte is set.
func isGroup(m inventory.MAC) bool { return len(m) > 1 && slices.Contains([]byte("13579bdf"), m[1]) }

// Frames returns the frames of a machine, oldest first; nil when there are none. The frames share their bytes with
// the Ring: the caller must not change them.
func (r *Ring) Frames(mac inventory.MAC) []Frame {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range []*shelf{&r.known, &r.strangers} {
		if e := s.tracks[mac]; e != nil {
			return slices.Clone(e.Value.(*track).frames)
		}
	}
	return nil
}

// Packets returns the decoded frames of a machine since a time, oldest first.
func (r *Ring) Packets(mac inventory.MAC, since time.Time) []Packet {
	var out []Packet
	for _, f := range r.Frames(mac) {
		if !f.At.Before(since) {
			out = append(out, Decode(f))
		}
	}
	return out
}

// Bytes estimates the memory that the records take, in bytes.
func (r *Ring) Bytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known.bytes + r.strangers.bytes
}

func (s *shelf) add(mac inventory.MAC, f Frame) {
	t := s.track(mac)
	t.frames = append(t.frames, f)
	s.grow(t, len(f.Bytes)+perFrame)
	for len(t.frames) > s.per {
		s.grow(t, -len(t.frames[0].Bytes)-perFrame)
		t.frames = slices.Delete(t.frames, 0, 1)
	}
	s.trim()
}

// track finds or begins the record of a machine, and makes it the latest active one.
func (s *shelf) track(mac inventory.MAC) *track {
	e := s.tracks[mac]
	if e == nil {
		e = s.order.PushFront(&track{mac: mac, bytes: perTrack})
		s.tracks[mac] = e
		s.bytes += perTrack
	}
	s.order.MoveToFront(e)
	return e.Value.(*track)
}

// trim drops the records that were silent longest, until the budget holds. It always leaves the newest one, however
// large.
func (s *shelf) trim() {
	for s.bytes > s.limit && s.order.Len() > 1 {
		s.drop(s.order.Back())
	}
}

func (s *shelf) grow(t *track, n int) { t.bytes, s.bytes = t.bytes+n, s.bytes+n }

func (s *shelf) drop(e *list.Element) {
	t := s.order.Remove(e).(*track)
	delete(s.tracks, t.mac)
	s.bytes -= t.bytes
}

// take removes a track and returns it; it returns nil when there is none.
func (s *shelf) take(mac inventory.MAC) *track {
	e := s.tracks[mac]
	if e == nil {
		return nil
	}
	s.drop(e)
	return e.Value.(*track)
}

// Note is the reason why this server did not answer a packet of a machine.
type Note struct {
	At     time.Time
	Subnet string // "" when it is not known
	Reason string // a lease.Reason, or the label of a drop counter
}

// notesKept bounds the notes of one machine; the oldest go first.
const notesKept = 16

// SameXid begins the reason of a note about a shared transaction id; the MAC of the other machine follows.
const SameXid = "the same transaction id as "

// Tell keeps a note with the record of its machine. A machine without a frame gets a record as well.
func (r *Ring) Tell(mac inventory.MAC, n Note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell(mac, n)
}

func (r *Ring) tell(mac inventory.MAC, n Note) {
	s := &r.strangers
	if r.knows(mac) {
		s = &r.known
	}
	t := s.track(mac)
	if len(t.notes) == notesKept {
		t.notes = slices.Delete(t.notes, 0, 1)
	} else {
		s.grow(t, perFrame)
	}
	t.notes = append(t.notes, n)
	s.trim()
}

// Notes returns the notes of a machine, oldest first; nil when there are none.
func (r *Ring) Notes(mac inventory.MAC) []Note {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.notes(mac)
}

func (r *Ring) notes(mac inventory.MAC) []Note {
	for _, s := range []*shelf{&r.known, &r.strangers} {
		if e := s.tracks[mac]; e != nil {
			return slices.Clone(e.Value.(*track).notes)
		}
	}
	return nil
}
