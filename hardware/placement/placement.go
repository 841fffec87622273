// Package placement owns the choice of a host for a machine. It says which hosts may serve, which is the best, and, when
// none does, the reason in words. It never claims a host. The caller has to claim the chosen one in a store, which may
// refuse.
//
// The same hosts and machines, in any order, give the same choice.
package placement

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// HoldFor is how long a freed host waits for the machine that wants the same one again.
const HoldFor = 30 * time.Minute

// Candidate is a host that a machine may be given. All hosts are candidates: those that cannot serve are counted.
type Candidate struct {
	Host     inventory.Host
	Hardware *inventory.Hardware // as last inspected; nil for never
	Faults   []string            // what its golden hardware has and it has not, when that is strict
	HasPower bool                // its BMC can switch it on: it is taken before one that waits for a person
}

// Demand is a machine that needs a host.
type Demand struct {
	Machine inventory.Machine
	Pool    inventory.Pool  // of the machine; its zero value holds every host
	Image   inventory.Image // that it is installed from, or boots
	Now     time.Time
	Barred  []inventory.Pool // whose hosts the machine may not have
	// Walls are the pools of which the host must be in one, when IsWalled: without any no host serves.
	Walls    []inventory.Pool
	IsWalled bool
	// IsInspectionNeeded keeps hosts out that were never inspected.
	IsInspectionNeeded bool
}

// Code sums up why there is no host, for machines to read.
type Code string

// The codes.
const (
	InsufficientResources  Code = "InsufficientResources"
	NoMatchInFailureDomain Code = "NoMatchInFailureDomain" // hosts would serve, but for where they stand
	NoMatchingHost         Code = "NoMatchingHost"         // no host meets it, free or in use: see Outlook
	PinnedHostUnavailable  Code = "PinnedHostUnavailable"
	InvalidConfiguration   Code = "InvalidConfiguration" // the machine or its pool asks for what cannot be read
)

// Choice is the host of a machine, or why it has none.
type Choice struct {
	Host     *inventory.Host // nil for none
	Score    Score
	Rejected []Rejection // the most frequent cause first
	Code     Code        // "" with a host
	Reason   string
	Hint     string
	// AgainAt is when a host that is held for another machine becomes free for this one; zero when none is.
	AgainAt time.Time
	Outlook Outlook // of the whole inventory, without a host; the caller counts it over all hosts
}

// Rejection counts the hosts that one thing keeps out. A host is counted once, by the first thing that was found.
type Rejection struct {
	Cause   string // a phrase in the singular: "has less than 64 GiB of memory"
	N       int
	Example string // name of one of the hosts

	cause *cause
}

// Choose returns the host for one machine.
func Choose(d Demand, candidates []Candidate) Choice {
	return Allocate([]Demand{d}, candidates)[0]
}

// Allocate chooses for many machines at once, and no host twice: those that name their host first, then the oldest. The
// choices are in the order of the demands. One more candidate never takes a host away from a machine, with two intended
// exceptions. A machine that must have its own host again waits for it. A pool that now has enough spares serves an older
// machine first.
func Allocate(demands []Demand, candidates []Candidate) []Choice {
	y := newYard(candidates)
	order := make([]int, len(demands))
	for i := range order {
		order[i] = i
	}
	isUnpinned := func(d *Demand) int {
		if d.Machine.Placement.Host != "" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &demands[i], &demands[j]
		return cmp.Or(isUnpinned(a)-isUnpinned(b), a.Machine.CreatedAt.Compare(b.Machine.CreatedAt),
			strings.Compare(a.Machine.UID, b.Machine.UID), strings.Compare(a.Machine.Name, b.Machine.Name))
	})
	choices := make([]Choice, len(demands))
	for _, i := range order {
		choices[i] = y.choose(&demands[i])
	}
	return choices
}

// choose decides for one machine, and takes the host.
func (y *yard) choose(d *Demand) Choice {
	s, err := y.shapeOf(d)
	if err != nil {
		return invalid(err)
	}
	if d.Machine.Placement.Host != "" {
		return y.choosePinned(d, s)
	}
	q := y.query(d, s)
	var best *entry
	var bestRank rank
	for _, e := range y.entries {
		if e.base != nil || e.isTaken {
			continue
		}
		// Whether a host will do is asked only of those that would be better: an expression costs more than all the rest.
		r := q.rank(e, s.score(e))
		if (best == nil || r.isBetter(bestRank)) && s.verdicts.of(e) == nil && q.refuses(e) == nil {
			best, bestRank = e, r
		}
	}
	if best == nil {
		return y.none(q)
	}
	y.take(best)
	host := best.Host
	return Choice{Host: &host, Score: bestRank.Score}
}

// choosePinned gives a machine the host that it names, if that can serve.
func (y *yard) choosePinned(d *Demand, s *shape) Choice {
	name := d.Machine.Placement.Host
	e := y.byName[name]
	if e == nil {
		return Choice{
			Code: PinnedHostUnavailable, Reason: "no host: there is no host " + inventory.Clean(name, 64),
			Hint: "list them with: slipway host list",
		}
	}
	c := s.verdicts.of(e)
	if e.isTaken {
		c = justTaken
	}
	if c != nil {
		return Choice{
			Code: PinnedHostUnavailable, Rejected: []Rejection{{Cause: c.phrase, N: 1, Example: e.Host.Name, cause: c}},
			Reason: "no host: " + e.Host.Name + ", which the machine names, " + c.phrase, Hint: c.hintFor(e.Host.Name),
		}
	}
	y.take(e)
	host := e.Host
	return Choice{Host: &host, Score: s.score(e)}
}
