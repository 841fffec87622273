package placement

import (
	"math"
	"time"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
)

// Score says how well a host serves a machine. Its fields are compared in this order.
type Score struct {
	IsReused bool `json:"isReused"` // it is the host that the machine had
	Weight   int  `json:"weight"`   // of the preferences that it meets; more is better
	HasPower bool `json:"hasPower"`
	// Surplus is what is left unused of it, in GiB of memory: a thread counts for 4, an accelerator for 256. Less is better:
	// large hosts stay free for those who need them.
	Surplus  int64 `json:"surplus"`
	FailureN int   `json:"failureN"` // fewer are better
}

const (
	threadGiB      = 4
	acceleratorGiB = 256
	domainWeight   = 100 // of a failure domain that is a wish
)

// rank is a score with what decides between equal ones.
type rank struct {
	Score
	freedAt time.Time // of a host that is reused: the latest is the one that the machine had last
	tie     uint64    // even over machines and hosts, and always the same
	id      inventory.HostID
}

func (r rank) isBetter(than rank) bool {
	a, b := r.Score, than.Score
	switch {
	case a.IsReused != b.IsReused:
		return a.IsReused
	case a.IsReused && !r.freedAt.Equal(than.freedAt):
		return r.freedAt.After(than.freedAt)
	case a.Weight != b.Weight:
		return a.Weight > b.Weight
	case a.HasPower != b.HasPower:
		return a.HasPower
	case a.Surplus != b.Surplus:
		return a.Surplus < b.Surplus
	case a.FailureN != b.FailureN:
		return a.FailureN < b.FailureN
	case r.tie != than.tie:
		return r.tie < than.tie
	}
	return r.id < than.id
}

// score is what all machines of a shape find in a host.
func (s *shape) score(e *entry) Score {
	if s.isScored[e.n] {
		return s.scores[e.n]
	}
	out := Score{HasPower: e.HasPower, Surplus: surplus(s.surplusOf, e), FailureN: e.Host.FailureN}
	for _, p := range s.preferred {
		if p.memo.of(e) == nil {
			out.Weight += p.weight
		}
	}
	s.scores[e.n], s.isScored[e.n] = out, true
	return out
}

// surplus returns what a machine with these requirements would leave unused; a host that was never inspected fits worst.
func surplus(r inventory.HardwareRequirements, e *entry) int64 {
	if e.Hardware == nil {
		return math.MaxInt64
	}
	memory := hardware.Memory(&e.Host, e.Hardware) - r.MemoryBytes
	return max(memory>>30, 0) + threadGiB*int64(max(e.Hardware.CPU.Threads-r.CPUThreads, 0)) +
		acceleratorGiB*int64(max(len(e.Hardware.Accelerators)-r.Accelerators, 0))
}

// rank adds what this one machine finds in a host.
func (q *query) rank(e *entry, s Score) rank {
	p := &q.Machine.Placement
	if p.FailureDomain != "" && p.IsDomainPreferred && e.Host.Place.InDomain(p.FailureDomain) {
		s.Weight += domainWeight
	}
	r := rank{Score: s, tie: mix(q.hash, e.hash), id: e.Host.ID}
	if (p.Reuse == inventory.ReusePrefer || p.Reuse == inventory.ReuseRequire) && e.Host.ReuseKey == q.key {
		r.IsReused, r.freedAt = true, e.Host.FreedAt
	}
	return r
}
