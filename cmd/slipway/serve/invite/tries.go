package invite

import (
	"net/netip"
	"time"
)

const (
	mostTries   = 10 // wrong codes of one address
	triesFor    = 15 * time.Minute
	mostSources = 1024 // whose wrong codes are counted
)

// tries counts wrong codes by the address that they came from. An IPv6 /64 counts as one address. Its memory is bounded: if there are more
// addresses, it forgets some of them, and nobody can choose which. Guessing is hopeless without it, so this only keeps logs short and
// finds mistakes.
type tries map[netip.Prefix]tried

type tried struct {
	n     int
	until time.Time // when they are forgotten
}

// sourceOf is what counts as one address.
func sourceOf(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // the zero address has a prefix of its own
	return p
}

// wait returns how long an address has to wait, 0 if it may try.
func (t tries) wait(a netip.Addr, now time.Time) time.Duration {
	if is := t[sourceOf(a)]; is.n >= mostTries && now.Before(is.until) {
		return is.until.Sub(now)
	}
	return 0
}

// wrong counts a wrong code.
func (t tries) wrong(a netip.Addr, now time.Time) {
	key := sourceOf(a)
	is, has := t[key]
	if !has && len(t) >= mostSources {
		t.forget(now)
	}
	if !now.Before(is.until) {
		is = tried{until: now.Add(triesFor)}
	}
	is.n++
	t[key] = is
}

func (t tries) forget(now time.Time) {
	for key, is := range t {
		if !now.Before(is.until) {
			delete(t, key)
		}
	}
	for key := range t { // in random order
		if len(t) < mostSources {
			return
		}
		delete(t, key)
	}
}
