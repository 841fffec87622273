package tftp

import (
	"net/netip"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// shims remembers which machines have just been sent a shim. Shim 15.8 takes on some machines what its firmware hands over,
// the text of the boot entry, for the name of its second stage. Whatever such a machine asks for that nothing is made for is
// that second stage. It may be used from many goroutines.
type shims struct {
	mu sync.Mutex
	at map[netip.Addr]shimSent
}

type shimSent struct {
	name string
	at   time.Time
}

const (
	shimFor  = time.Minute // a shim asks within a second; slow firmware takes some
	maxShims = 4096
)

// sent notes that a machine is sent a loader: a shim begins the wait for its second stage, anything else ends it.
func (s *shims) sent(a netip.Addr, name string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pxe.SecondStage(name) == "" {
		delete(s.at, a)
		return
	}
	if s.at == nil {
		s.at = map[netip.Addr]shimSent{}
	}
	if len(s.at) >= maxShims {
		for old, v := range s.at {
			if now.Sub(v.at) > shimFor {
				delete(s.at, old)
			}
		}
		if len(s.at) >= maxShims { // better a machine that is named garbled than memory without a bound
			return
		}
	}
	s.at[a] = shimSent{name, now}
}

// meant returns the file that a machine means by a name that nothing is made for, "" for none.
func (s *Server) meant(a netip.Addr, name string, now time.Time) string {
	second := s.shims.second(a, name, now)
	if _, ok := s.cfg.Loaders.Find(second); !ok {
		return ""
	}
	s.cfg.Log.Warn("shim asks for a name out of its boot entry: it gets its second stage", "addr", a.String(),
		"name", inventory.Clean(name, 64), "loader", second)
	return second
}

// second returns the second stage that a machine means by a name that nothing is made for; "" when it is none.
func (s *shims) second(a netip.Addr, name string, now time.Time) string {
	if pxe.IsLoader(name) || pxe.IsBootFile(name) || pxe.IsProbe(name) {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.at[a]; ok && now.Sub(v.at) <= shimFor {
		return pxe.SecondStage(v.name)
	}
	return ""
}
