// Package turn owns the order in which machines become nodes of a cluster: the one that makes it before all others,
// control planes one at a time, workers a bounded number at a time. It is pure; who asks keeps what it is told.
package turn

import (
	"fmt"
	"iter"
)

// Stage is how far a machine is on its way into its cluster.
type Stage uint8

// The stages.
const (
	Waiting Stage = iota // is not ready, or has not had its turn
	Ready                // only waits for its turn
	Joining              // was let go and has not joined
	Done                 // has joined, or nobody waits for it any more
)

// DefaultWorkers is how many workers join at a time where nobody says how many.
const DefaultWorkers = 20

// Machine is a machine of one join target.
type Machine struct {
	Name    string // for people
	IsPlane bool
	IsFirst bool // makes the cluster
	Stage   Stage
}

// Rules are those of a join target.
type Rules struct {
	Workers       int  // that join at a time; DefaultWorkers when 0
	IsInit        bool // the first control plane makes the cluster
	IsInitialized bool
}

// Verdict says whether it is a machine's turn.
type Verdict struct {
	Wait          string // why it is not, "" when it is
	IsInitMissing bool   // it waits for the cluster to be made
	IsFirst       bool   // it is, and the machine makes the cluster
}

// Judge says whether it is the turn of m, which is ready, among the others of its target.
func Judge(m Machine, others iter.Seq[Machine], r Rules) Verdict {
	if r.Workers == 0 {
		r.Workers = DefaultWorkers
	}
	joining, first := 0, ""
	for o := range others {
		if o.IsFirst && o.Stage != Done {
			first = o.Name
		}
		if o.Stage == Joining && o.IsPlane == m.IsPlane {
			joining++
		}
	}
	isMaking := r.IsInit && !r.IsInitialized
	switch {
	case isMaking && !m.IsPlane:
		return Verdict{Wait: "workers wait until the control plane is initialized", IsInitMissing: true}
	case isMaking && first != "":
		return Verdict{Wait: "machine " + first + " makes the cluster; the others follow", IsInitMissing: true}
	case m.IsPlane && joining > 0:
		return Verdict{Wait: "control planes join one at a time"}
	case !m.IsPlane && joining >= r.Workers:
		return Verdict{Wait: fmt.Sprintf("%d workers join at a time", r.Workers)}
	}
	return Verdict{IsFirst: isMaking}
}
