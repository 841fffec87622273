package rest

import (
	"sync"

	"slipway.dev/slipway/inventory"
)

// Shares bound requests that last as long as a caller likes, in total and for each caller. One caller cannot take all from
// the others.
type Shares struct {
	what      string
	all, each int

	mu sync.Mutex
	n  int
	of map[string]int
}

// NewShares returns bounds for what is named in the plural: how many there may be of all callers, and of each.
func NewShares(what string, all, each int) *Shares {
	return &Shares{what: what, all: all, each: each, of: map[string]int{}}
}

// Len is how many are taken.
func (s *Shares) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// Take gives the caller one more, until back is called.
func (s *Shares) Take(req *Request) (back func(), err error) {
	who := req.Caller.Name
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.of[who] >= s.each:
		return nil, inventory.Errorf(inventory.Unavailable, "%s has %d %s open already", who, s.each, s.what).WithHint("close one")
	case s.n >= s.all:
		return nil, inventory.Errorf(inventory.Unavailable, "%d %s are open already", s.all, s.what).WithHint("close one")
	}
	// By name and not by login: several windows of one user share what that user may have.
	s.of[who]++
	s.n++
	// Several ends of a request may call back: its handler, and whatever watches the login.
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.n--
		if s.of[who]--; s.of[who] == 0 {
			delete(s.of, who)
		}
	}), nil
}
