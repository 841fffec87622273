// Package manager owns the Kubernetes clusters that are attached at run time. It checks whether a cluster can be
// used, installs the kinds in it, and runs one manager of controllers per cluster. A manager starts, stops and comes
// back without touching the others. The package knows nothing of what the controllers do.
//
// Start reading at Attacher.Serve (which clusters are wanted), then session.go (the life of one), then run.go (one
// manager). identity.go says which server may be which cluster. A detached cluster costs nothing.
package manager

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// lookEvery is how often the stored clusters are read without an event, in case one was lost.
const lookEvery = time.Minute

// Serve attaches the clusters of the inventory, and follows it as they change. A cluster that cannot be reached does
// not delay any other. Serve returns nil when ctx ends, after everything that it started has ended.
func (a *Attacher) Serve(ctx context.Context) error {
	a.mu.Lock()
	a.isOver = false // an instance may have the duty again
	a.mu.Unlock()
	var wg sync.WaitGroup
	defer wg.Wait()
	// First all followers end, then the watch. When Serve has returned, nothing of it calls the store any more.
	defer a.stopAll()
	wg.Go(func() { a.watch(ctx) })
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := a.look(ctx); err != nil && ctx.Err() == nil {
			a.cfg.Log.Warn("attached clusters not read", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-a.wake:
		}
	}
}

// watch wakes when a cluster or its kubeconfig has changed.
func (a *Attacher) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.cfg.Appliance.Watch(ctx, func(e inventory.Event) {
			// The zero event comes when the stream begins: what happened before it has no event any more.
			if e.Kind == "" || e.Kind == inventory.EventChanged && (strings.HasPrefix(e.Subject, "cluster/") || strings.HasPrefix(e.Subject, "secret/")) {
				a.Wake()
			}
		})
		if ctx.Err() == nil {
			a.cfg.Log.Debug("events of clusters not read", "err", err)
			_ = sleep.For(ctx, a.cfg.Pause)
		}
	}
}

// wanted is a cluster, with a text that changes when it must be attached again: a new row, new settings or a new
// kubeconfig.
type wanted struct {
	inventory.Cluster
	stamp string
}

func (a *Attacher) list(ctx context.Context) (map[string]wanted, error) {
	out := map[string]wanted{}
	err := a.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		clear(out)
		all, err := tx.Clusters().List(inventory.Page{})
		if err != nil {
			return err
		}
		for _, c := range all {
			// The version of the secret is in the stamp: a renewed kubeconfig attaches the cluster again by itself.
			s, err := tx.Secrets().Find(c.Kubeconfig)
			if err != nil {
				return err
			}
			out[c.Name] = wanted{c, fmt.Sprintf("%s %d %s %d", c.CreatedAt, c.Version, c.Kubeconfig, s.Version)}
		}
		return nil
	})
	return out, err
}

// look starts and stops followers, so that they match the stored clusters.
func (a *Attacher) look(ctx context.Context) error {
	clusters, err := a.list(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, f := range a.followed {
		if c, ok := clusters[name]; !ok || c.stamp != f.stamp {
			f.stop()
			// A changed one stays in the map: start waits for its end before the new one begins.
			if !ok {
				delete(a.followed, name)
			}
		}
	}
	for name, c := range clusters {
		f := a.followed[name]
		// A cluster that is being detached keeps its row until the last step. It must not be attached again meanwhile.
		if f != nil && f.stamp == c.stamp || a.leaving[name] || a.isOver {
			continue
		}
		a.followed[name] = a.start(ctx, c, f)
	}
	return nil
}

// start follows a cluster once its former follower has ended. Two managers for one cluster at the same time would act
// on the same objects under one identity, which the lease cannot prevent.
func (a *Attacher) start(ctx context.Context, c wanted, former *follower) *follower {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{stamp: c.stamp, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		defer cancel()
		if former != nil {
			<-former.done
		}
		a.follow(ctx, c.Cluster)
	}()
	return f
}

func (a *Attacher) stopAll() {
	a.mu.Lock()
	a.isOver = true
	all := a.followed
	a.followed = map[string]*follower{}
	a.mu.Unlock()
	// All are stopped first and waited for afterwards. They give up their leases side by side, and not one after the other.
	for _, f := range all {
		f.stop()
	}
	for _, f := range all {
		<-f.done
	}
}

// follow keeps a cluster attached through all failures.
func (a *Attacher) follow(ctx context.Context, c inventory.Cluster) {
	log := a.cfg.Log.With("cluster", c.Name)
	wait := a.cfg.Pause
	for ctx.Err() == nil {
		// The pause begins again only when the controllers run. A cluster that answers and then fails is tried less and less often.
		err := a.guarded(ctx, c, func() { wait = a.cfg.Pause })
		if ctx.Err() != nil {
			return
		}
		e := asError(c.Name, err)
		log.Warn("cluster not attached", "reason", e.Msg, "hint", e.Hint, "err", e.Err, "again", wait)
		// Unreachable is what time may mend. All else waits for a person.
		state := inventory.ClusterFailed
		if e.Kind == inventory.Unavailable {
			state = inventory.ClusterUnreachable
		}
		// The same failure again writes nothing: note compares it with the row.
		a.note(ctx, c, func(n *inventory.Cluster) { n.State, n.Reason, n.Hint = state, e.Msg, e.Hint })
		_ = sleep.For(ctx, wait/2+rand.N(wait/2+1)) // spread, so that clusters behind one router do not return together
		wait = min(2*wait, 30*a.cfg.Pause)
	}
}

// guarded runs one session and turns a panic into its error: it must not end the other clusters.
func (a *Attacher) guarded(ctx context.Context, c inventory.Cluster, up func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = inventory.Errorf(inventory.Internal, "cluster %s: its controllers broke down: %v", c.Name, p)
		}
	}()
	return a.session(ctx, c, up)
}
