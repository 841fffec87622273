package bmc

import (
	"crypto/sha256"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// Refusals remembers which controllers refused our login. Many lock an account after a few wrong passwords. So the server
// asks less and less often by itself, and then not at all, until the credentials change or a person asks. The zero value is
// empty.
type Refusals struct {
	mu  sync.Mutex
	all map[inventory.HostID]refusal
}

type refusal struct {
	credentials [32]byte
	n           int
	until       time.Time // zero for as long as the credentials stay
	reason      error
}

// refusalPauses is how long nobody asks after each refusal; after the last one it is for good.
var refusalPauses = []time.Duration{15 * time.Minute, time.Hour}

// Note records the result of a login.
func (r *Refusals) Note(b *inventory.BMC, problem error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if problem == nil {
		delete(r.all, b.HostID)
		return
	}
	if KindOf(problem) != inventory.Unauthorized {
		return // it says nothing of the credentials
	}
	is := r.all[b.HostID]
	if key := credentialsOf(b); is.credentials != key {
		is = refusal{credentials: key}
	}
	if now.Before(is.until) {
		return // somebody asked in between
	}
	is.reason, is.until = problem, time.Time{}
	if is.n < len(refusalPauses) {
		is.until = now.Add(refusalPauses[is.n])
	}
	is.n++
	if r.all == nil {
		r.all = map[inventory.HostID]refusal{}
	}
	r.all[b.HostID] = is
}

// Held returns why Slipway does not ask a controller with these credentials now; nil when it may.
func (r *Refusals) Held(b *inventory.BMC, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	is, ok := r.all[b.HostID]
	if !ok || is.credentials != credentialsOf(b) || !is.until.IsZero() && !now.Before(is.until) {
		return nil
	}
	return is.reason
}

// Again says, for people, when Slipway asks a controller that refused again; "" when it did not refuse.
func (r *Refusals) Again(b *inventory.BMC, now time.Time) string {
	if r.Held(b, now) == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	const why = "so that the account is not locked, it is "
	if until := r.all[b.HostID].until; !until.IsZero() {
		return why + "asked again in " + inventory.Duration(until.Sub(now).Round(time.Minute)).String() + ", or by: slipway bmc check"
	}
	return why + "not asked again before the credentials change, or somebody runs: slipway bmc check"
}

// Forget allows the next question to a host's controller, because a person wants it.
func (r *Refusals) Forget(h inventory.HostID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, h)
}

// credentialsOf is what a login is made of, sealed as it is.
func credentialsOf(b *inventory.BMC) [32]byte {
	h := sha256.New()
	for _, part := range []string{string(b.Driver), b.Address, b.Username, string(b.Sealed), b.Options["auth"], b.Options["privilege"], b.Options["cipher"]} {
		h.Write([]byte{byte(len(part) >> 8), byte(len(part))})
		h.Write([]byte(part))
	}
	return [32]byte(h.Sum(nil))
}
