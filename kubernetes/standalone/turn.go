package standalone

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"slipway.dev/slipway/kubernetes/node"
)

// slot is how far a machine of a join target is.
type slot struct {
	key       types.NamespacedName
	target    string // <namespace>/<name>
	isPlane   bool
	isFirst   bool // makes the cluster
	stage     node.Stage
	createdAt time.Time
}

// turns decides which machine may join a cluster now. First comes the one that makes it, then one control plane at a
// time, and several workers at once. The inventory has the lock that decides; turns only keeps machines from booting
// too early. It reads all machines of the cluster before the first decision. mu guards the fields below it.
type turns struct {
	seed func(ctx context.Context) (map[string]slot, error) // by owner

	mu       sync.Mutex
	isSeeded bool
	slots    map[string]slot
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newTurns(seed func(ctx context.Context) (map[string]slot, error)) *turns {
	return &turns{seed: seed, slots: map[string]slot{}}
}

// source gives turns the queue of the controller, so that wake can add machines to it.
func (t *turns) source() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.queue = q
		return nil
	})
}

// start reads all machines once. It holds mu during the read, so that no machine gets a turn from half a list. A
// failed read is repeated at the next call.
func (t *turns) start(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isSeeded {
		return nil
	}
	all, err := t.seed(ctx)
	if err != nil {
		return err
	}
	for owner, s := range all {
		if _, ok := t.slots[owner]; !ok {
			t.slots[owner] = s
		}
	}
	t.isSeeded = true
	return nil
}

// take gives a waiting machine its turn, or returns the machine that comes first. take decides under the lock that it
// takes under, so two machines never get the same turn.
func (t *turns) take(owner string, s slot, r node.TurnRules) node.Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	// A machine that makes the cluster stays the first until it is deleted, even if its boot has to be repeated.
	s.stage, s.isFirst = node.StageReady, t.slots[owner].isFirst
	t.slots[owner] = s
	v := node.JudgeTurn(s.machine(), func(yield func(node.Joiner) bool) {
		for o, other := range t.slots {
			if other.target == s.target && o != owner && !yield(other.machine()) {
				return
			}
		}
	}, r)
	if v.Wait == "" {
		s.stage, s.isFirst = node.StageJoining, v.IsFirst
		t.slots[owner] = s
	}
	return v
}

func (s *slot) machine() node.Joiner {
	return node.Joiner{Name: s.key.Name, IsPlane: s.isPlane, IsFirst: s.isFirst, Stage: s.stage}
}

// note records how far a machine is, and wakes the waiting machines when this one is no longer joining.
func (t *turns) note(owner string, s slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, ok := t.slots[owner]
	s.isFirst = s.isFirst || was.isFirst
	// A pass that only looked must not take a machine out of the row of those that are ready.
	if ok && s.stage == node.StageWaiting && was.stage == node.StageReady {
		s.stage = node.StageReady
	}
	t.slots[owner] = s
	// Its place is free, whether it has joined, is late, or waits again.
	if ok && was.stage == node.StageJoining && s.stage != node.StageJoining {
		t.wake(s.target)
	}
}

// forget removes a deleted machine, and frees its turn.
func (t *turns) forget(owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was, ok := t.slots[owner]; ok {
		delete(t.slots, owner)
		// The others may wait for the one that makes the cluster, whatever its stage is.
		if was.stage == node.StageJoining || was.isFirst {
			t.wake(was.target)
		}
	}
}

// wake queues waiting machines of a target, the oldest first, at most wokenAtOnce of each role. The caller holds mu.
func (t *turns) wake(target string) {
	// The controller has not started. Its first passes look at all machines.
	if t.queue == nil {
		return
	}
	var ready []slot
	for _, s := range t.slots {
		if s.target == target && s.stage == node.StageReady {
			ready = append(ready, s)
		}
	}
	// The same order at each wake, so that no machine is overtaken again and again.
	slices.SortFunc(ready, func(a, b slot) int {
		return cmp.Or(a.createdAt.Compare(b.createdAt), cmp.Compare(a.key.Name, b.key.Name))
	})
	planes, workers := 0, 0
	for _, s := range ready {
		n := &workers
		if s.isPlane {
			n = &planes
		}
		if *n++; *n <= wokenAtOnce {
			t.queue.Add(reconcile.Request{NamespacedName: s.key})
		}
	}
}

// wokenAtOnce bounds the Reconciles that one free turn causes.
const wokenAtOnce = 4
