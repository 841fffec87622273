package instance

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

// goneAfter is how long an instance gives no sign of life before that is an issue: until then, its duties may be with it. A restart takes
// less.
const goneAfter = 9 * time.Second

// Watch knows how the instances of the database are, for issues, the self-check and metrics. Many goroutines may call its methods.
type Watch struct {
	duties *duty.Keeper
	store  inventory.Store
	mu     sync.Mutex
	found  state
}

// state is what was found at the last look that the database answered.
type state struct {
	roster  duty.Roster
	now     time.Time // of the database, for people
	subnets []inventory.Subnet
	silent  []Silence
	cutOff  []CutOff
}

// CutOff is an instance that lives, and gets no answer from the one with the engine.
type CutOff struct {
	Name    string
	SinceAt time.Time // by the clock of the database
	Reason  string
	Answers []string // the duties of networks that it has: their machines wait
}

// Silence is an instance that gives no sign of life, and has not stopped by itself.
type Silence struct {
	Name    string
	SeenAt  time.Time // its last sign of life, by the clock of the database
	Holds   []string  // duties that it has still: nobody has taken them
	TakenBy []Taken
}

// Taken is a duty that another instance has taken over.
type Taken struct{ Duty, By string }

// NewWatch returns a Watch of the instances of a database. It has seen nothing before the first Look.
func NewWatch(duties *duty.Keeper, store inventory.Store) *Watch {
	return &Watch{duties: duties, store: store}
}

// Look reads the instances. While the database does not answer, what was found before stays: nobody knows better.
func (w *Watch) Look(ctx context.Context) error {
	var is state
	open := map[string]bool{}
	err := w.store.Read(ctx, func(tx inventory.Tx) (err error) {
		is, open = state{}, map[string]bool{}
		if is.roster, err = w.duties.Roster(tx); err != nil {
			return err
		}
		if len(is.roster.Peers) < 2 {
			return nil
		}
		if is.now, err = tx.DatabaseTime(); err != nil {
			return err
		}
		if is.subnets, err = tx.Subnets().List(inventory.Page{}); err != nil {
			return err
		}
		issues, err := tx.ListIssues(false, "")
		for _, i := range issues {
			open[i.Key] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, p := range is.roster.Peers {
		if isGone(p, open[inventory.IssueInstance+"/"+p.Name]) {
			is.silent = append(is.silent, silenceOf(p, is.roster))
		}
		if isCutOff(p, open[inventory.IssueCutOff+"/"+p.Name]) {
			c := CutOff{Name: p.Name, SinceAt: p.CutOffAt, Reason: p.CutOff}
			for _, d := range p.Duties {
				c.Answers = append(c.Answers, d.Name)
			}
			is.cutOff = append(is.cutOff, c)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = is
	return nil
}

// isGone reports whether an instance gives no sign of life. While nobody knows, as after a takeover, the issue that was open stays open.
func isGone(p duty.Peer, wasTold bool) bool {
	switch p.Life {
	case duty.Silent:
		return p.Quiet >= goneAfter || wasTold
	case duty.Unknown:
		return wasTold
	}
	return false
}

// isCutOff reports whether an instance gets no answer from the leader. A silent instance reports nothing, so it counts as not cut off. As
// with isGone, an open issue stays open while it is unknown whether the instance lives.
func isCutOff(p duty.Peer, wasTold bool) bool {
	return p.CutOff != "" && !p.IsLeader && (p.Life == duty.Alive || p.Life == duty.Unknown && wasTold)
}

// silenceOf returns the duties that an instance had when it fell silent, and which instances have them now.
func silenceOf(p duty.Peer, r duty.Roster) Silence {
	s := Silence{Name: p.Name, SeenAt: p.SeenAt}
	names := map[string]string{}
	for _, o := range r.Peers {
		names[o.ID] = o.Name
	}
	for _, d := range r.Duties {
		switch {
		case d.Holder == p.ID:
			s.Holds = append(s.Holds, d.Name)
		case d.Former == p.Name && d.Holder != "" && d.SinceAt.After(p.SeenAt): // it gave up the others while it was alive
			s.TakenBy = append(s.TakenBy, Taken{d.Name, names[d.Holder]})
		}
	}
	return s
}

// Silent returns the instances that give no sign of life.
func (w *Watch) Silent() []Silence {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.found.silent)
}

// CutOff returns the instances that get no answer from the leader.
func (w *Watch) CutOff() []CutOff { return slices.Clone(w.state().cutOff) }

// Peers returns the instances as of the last look, with their life of this moment.
func (w *Watch) Peers() []duty.Peer {
	all := slices.Clone(w.state().roster.Peers)
	for n := range all {
		all[n].Sight = w.duties.Sight(all[n].Instance)
	}
	return all
}

func (w *Watch) state() state {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found
}

// unserved returns the subnets of an interface in which no live instance has an address.
func (s *state) unserved() (names []string) {
	var at []netip.Addr
	for _, p := range s.roster.Peers {
		for _, text := range p.Addresses {
			if a, err := netip.ParseAddr(text); err == nil && p.Life == duty.Alive && !p.IsDrained {
				at = append(at, a)
			}
		}
	}
	for _, n := range s.subnets {
		if n.Mode != inventory.ModeOff && n.Interface != "" && !slices.ContainsFunc(at, n.CIDR.Contains) {
			names = append(names, n.Name)
		}
	}
	return names
}
