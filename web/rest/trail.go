package rest

import (
	"crypto/sha256"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"slipway.dev/slipway/inventory"
)

// Trail is what the audit will say of one request. Handlers add to it; an edit is written in the transaction that makes
// it, everything else when the request has its answer.
type Trail struct {
	mu        sync.Mutex
	row       inventory.Audit
	isDryRun  bool
	isWritten bool
	isBegun   bool              // the entry was written before a deed that no transaction holds: only a refusal is one more
	asked     [sha256.Size]byte // what a controller asked for
	success   int               // status of an edit that is made
	last      func(inventory.Tx) error
}

// About says what a request is about, where its address does not.
func (t *Trail) About(noun, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Noun, t.row.Name = noun, inventory.Clean(name, 255)
}

// Actor names who asked, where a request comes in as nobody.
func (t *Trail) Actor(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Actor = name
}

// Fix says why the edit cannot be undone.
func (t *Trail) Fix(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Fixed = why
}

// Lastly has fn fill in the entry at the end of the transaction that writes it.
func (t *Trail) Lastly(fn func(inventory.Tx) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = fn
}

// Succeeds says what the answer will be when all goes well.
func (t *Trail) Succeeds(status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.success = status
}

// Undoes says which entry the request takes back.
func (t *Trail) Undoes(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.UndoOf = id
}

// Entry returns the entry as it is now.
func (t *Trail) Entry() inventory.Audit {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.row
}

// Concern names the host that a request concerned.
func (t *Trail) Concern(id inventory.HostID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.HostID = id
}

// Say adds the request in words.
func (t *Trail) Say(detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Detail = inventory.Clean(detail, 500)
}

// trails bounds what is written of requests that are refused or repeat themselves.
type trails struct {
	mu     sync.Mutex
	tries  map[string]*rate.Limiter
	unsaid map[string]int               // rows left out since the last one written
	same   map[string][sha256.Size]byte // by noun and name: what a controller asked for last

	strangers *rate.Limiter // of those who did not say who they are, all together
	refusals  *rate.Limiter // of those who did, all together
}

const (
	trailsMax      = 4096             // actors and things remembered; when there are more, all are forgotten
	refusedEvery   = time.Minute      // one refusal for each actor is written per minute,
	refusedBurst   = 200              // and so many at once;
	refusalsEvery  = 30 * time.Second // and fewer of all actors together: anyone who makes a thousand tokens fills no disk
	refusalsBurst  = 2000
	strangeEvery   = 5 * time.Second // of those who did not say who they are, fewer from each address (of IPv6, each /64),
	strangeBurst   = 20
	strangersEvery = 2 * time.Minute // and fewer from all together: anyone who has a million addresses fills none either
	strangersBurst = 500
)

func newTrails() *trails {
	return &trails{
		tries: map[string]*rate.Limiter{}, unsaid: map[string]int{}, same: map[string][sha256.Size]byte{},
		strangers: rate.NewLimiter(rate.Every(strangersEvery), strangersBurst), refusals: rate.NewLimiter(rate.Every(refusalsEvery), refusalsBurst),
	}
}

// admits reports whether a row is to be written. Someone who may not do a thing can ask for it a thousand times a second, and
// a controller that keeps things as they are asks for the same over and over: neither fills the disk.
func (k *trails) admits(r *inventory.Audit, now time.Time, asked [sha256.Size]byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.tries)+len(k.same) > trailsMax {
		clear(k.tries)
		clear(k.unsaid)
		clear(k.same)
	}
	if asked != ([sha256.Size]byte{}) && !r.IsRefused() {
		key := r.Operation + " " + r.Name
		if k.same[key] == asked {
			return false
		}
		k.same[key] = asked
	}
	if !r.IsRefused() {
		return true
	}
	who, every, burst := r.Actor, refusedEvery, refusedBurst
	if r.Via == "none" {
		source, _ := netip.ParseAddr(r.Source)
		who, every, burst = SourceKey(source).String(), strangeEvery, strangeBurst
	}
	l := k.tries[who]
	if l == nil {
		l = rate.NewLimiter(rate.Every(every), burst)
		k.tries[who] = l
	}
	all := k.refusals
	if r.Via == "none" {
		all = k.strangers
	}
	if !l.AllowN(now, 1) || !all.AllowN(now, 1) {
		k.unsaid[who]++
		return false
	}
	if n := k.unsaid[who]; n > 0 {
		delete(k.unsaid, who)
		r.Detail = strings.TrimPrefix(r.Detail+"; before it "+strconv.Itoa(n)+" more were refused that are not listed", "; ")
	}
	return true
}

// forget has a controller's next wish for a thing written, now that somebody else has changed it.
func (k *trails) forget(r *inventory.Audit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.same {
		if operation, name, _ := strings.Cut(key, " "); name == r.Name && operation != r.Operation {
			delete(k.same, key)
		}
	}
}

// SourceKey counts an IPv6 network as one source.
func SourceKey(a netip.Addr) netip.Addr {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
