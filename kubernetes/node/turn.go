package node

import (
	"cmp"
	"fmt"
	"iter"
)

// Stage is the progress of a machine on its way into its cluster.
type Stage uint8

// The stages.
const (
	StageWaiting Stage = iota // is not ready, or has not had its turn
	StageReady                // only waits for its turn
	StageJoining              // was let go and has not joined
	StageDone                 // has joined, or nobody waits for it any more
)

// DefaultWorkers is how many workers join at a time where nobody says how many.
const DefaultWorkers = 20

// Joiner is a machine of one join target.
type Joiner struct {
	Name    string // for people
	IsPlane bool
	IsFirst bool // makes the cluster
	Stage   Stage
}

// TurnRules are those of a join target.
type TurnRules struct {
	Workers       int  // that join at a time; DefaultWorkers when 0
	IsInit        bool // the first control plane makes the cluster
	IsInitialized bool
}

// Turn says whether a machine may join now.
type Turn struct {
	Wait          string // why it is not, "" when it is
	IsInitMissing bool   // it waits for the cluster to be made
	IsFirst       bool   // it is, and the machine makes the cluster
}

// JudgeTurn says whether m, which is ready, may join now among the others of its target. One machine makes a cluster.
// Control planes join one at a time, because each is a new member of etcd. Workers join up to a limit.
func JudgeTurn(m Joiner, others iter.Seq[Joiner], r TurnRules) Turn {
	r.Workers = cmp.Or(r.Workers, DefaultWorkers)
	joining, first := 0, ""
	for o := range others {
		if o.IsFirst && o.Stage != StageDone {
			first = o.Name
		}
		if o.Stage == StageJoining && o.IsPlane == m.IsPlane {
			joining++
		}
	}
	isMaking := r.IsInit && !r.IsInitialized
	switch {
	case isMaking && !m.IsPlane:
		return Turn{Wait: "workers wait until the control plane is initialized", IsInitMissing: true}
	case isMaking && first != "":
		return Turn{Wait: "machine " + first + " makes the cluster; the others follow", IsInitMissing: true}
	case m.IsPlane && joining > 0:
		return Turn{Wait: "control planes join one at a time"}
	case !m.IsPlane && joining >= r.Workers:
		return Turn{Wait: fmt.Sprintf("%d workers join at a time", r.Workers)}
	}
	return Turn{IsFirst: isMaking}
}
