package node

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"slipway.dev/slipway/inventory/egress"
)

// Set holds the workload clusters of one manager's controllers. It watches each on its own, so that an unreachable
// one does not delay the others.
type Set struct {
	log    *slog.Logger
	egress *egress.Policy
	// patience is how long a cluster may fail before it counts as unreachable.
	patience time.Duration

	mu       sync.Mutex // never held during a call to a cluster or a reader
	ctx      context.Context
	clusters map[string]*member
	readers  []func(key string, n *Node)
	running  sync.WaitGroup
}

// member is a cluster with the version of the kubeconfig that it was made from.
type member struct {
	*Cluster
	version string
	stop    context.CancelFunc // nil until it runs
}

// NewSet returns an empty set, whose clusters may be where the policy allows. It runs as part of a manager.
func NewSet(log *slog.Logger, policy *egress.Policy) *Set {
	return &Set{egress: policy, log: cmp.Or(log, slog.New(slog.DiscardHandler)), patience: 10 * time.Second, clusters: map[string]*member{}}
}

// Start watches the clusters of the set until ctx ends.
func (s *Set) Start(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	for key, m := range s.clusters {
		s.run(key, m)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	// From here on run starts no watch: a new one would race with the Wait below.
	s.ctx = nil
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

// run starts the watch of a cluster when the set runs. The lock is held.
func (s *Set) run(key string, m *member) {
	if s.ctx == nil || m.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(s.ctx)
	m.stop = stop
	s.running.Go(func() { m.watch.run(ctx, m.api, func(n *Node) { s.tell(key, n) }) })
}

// Cluster returns the cluster of a key, and keeps it while the version stays the same. It calls load only when it has
// none of that version. The error is that of load, or Invalid when its result is no kubeconfig that can be used.
func (s *Set) Cluster(ctx context.Context, key, version string, load func(context.Context) ([]byte, error)) (*Cluster, error) {
	if c := s.kept(key, version); c != nil {
		return c, nil
	}
	// Without the lock: load asks an API server. Two callers may both load; the second one takes what the first has kept.
	text, err := load(ctx)
	if err != nil {
		return nil, err
	}
	w := newWatch(s.patience, s.log.With("cluster", key))
	c, err := open(key, "the kubeconfig of cluster "+key, text, time.Now, s.egress, func(rt http.RoundTripper) http.RoundTripper { return &listener{rt, w} })
	if err != nil {
		return nil, err
	}
	c.watch = w
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.clusters[key]; m != nil && m.version == version {
		return m.Cluster, nil // somebody was faster
	}
	s.drop(key)
	m := &member{Cluster: c, version: version}
	s.clusters[key] = m
	s.run(key, m)
	return c, nil
}

func (s *Set) kept(key, version string) *Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.clusters[key]; m != nil && m.version == version {
		return m.Cluster
	}
	return nil
}

// Drop forgets a cluster once it has nothing of ours, and ends its watch.
func (s *Set) Drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
}

func (s *Set) drop(key string) {
	if m := s.clusters[key]; m != nil && m.stop != nil {
		// Not waited for: the watch may be about to tell a reader, which needs the lock that the caller holds.
		m.stop()
	}
	delete(s.clusters, key)
}

func (s *Set) tell(key string, n *Node) {
	s.mu.Lock()
	readers := s.readers
	s.mu.Unlock()
	for _, read := range readers {
		read(key, n)
	}
}

// Source queues the requests that fn returns. It calls fn when a node has changed in something that matters. It
// passes nil when everything in a cluster has to be read again: after the first read, and when the cluster fails or
// recovers.
func (s *Set) Source(fn func(key string, n *Node) []reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		// A new array each time, because tell reads the old one without the lock.
		s.readers = append(s.readers[:len(s.readers):len(s.readers)], func(key string, n *Node) {
			for _, r := range fn(key, n) {
				q.Add(r)
			}
		})
		return nil
	})
}
