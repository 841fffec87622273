// Package controllers holds what packages standalone and clusterapi share in one attached cluster. That is what they get
// (Env, with the rights of the account in Reach), and the events of Slipway that wake them (Feed). Bootstraps knows which
// machines wait for bootstrap data, and Orphans what becomes of a machine whose object is gone. ApplySpec and ApplyStatus
// write objects. It decides nothing about an object, and never polls.
package controllers

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/kubernetes/contract"
)

// The pause before a broken stream is watched again; it doubles up to the last.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
)

// Feed is the stream of the appliance's events. It runs with its manager, where that leads.
type Feed struct {
	appliance contract.Appliance
	log       *slog.Logger

	rush rush

	mu      sync.Mutex
	stands  bool // the stream stands: who comes now looks at everything at once
	readers []func(inventory.Event)
	looks   sync.WaitGroup
}

// NewFeed adds a Feed to a manager.
func NewFeed(mgr manager.Manager, env Env) (*Feed, error) {
	f := &Feed{appliance: env.Appliance, log: cmp.Or(env.Log, slog.New(slog.DiscardHandler))}
	return f, mgr.Add(f)
}

// Start watches until ctx ends.
func (f *Feed) Start(ctx context.Context) error {
	defer f.looks.Wait()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		began := time.Now()
		err := f.appliance.Watch(ctx, f.tell)
		f.mu.Lock()
		f.stands = false
		f.mu.Unlock()
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		f.log.Info("event stream of the appliance ended", "err", err, "again", pause)
		if sleep.For(ctx, pause) != nil {
			return nil
		}
	}
}

func (f *Feed) tell(ev inventory.Event) {
	f.mu.Lock()
	f.stands = true
	readers := slices.Clone(f.readers)
	f.mu.Unlock()
	for _, read := range readers {
		read(ev)
	}
}

// add registers a reader. One that comes when the stream stands already is told so.
func (f *Feed) add(read func(inventory.Event)) {
	f.mu.Lock()
	f.readers = append(f.readers, read)
	stands := f.stands
	f.mu.Unlock()
	if stands {
		read(inventory.Event{})
	}
}

// Asked notes a request for a machine.
func (f *Feed) Asked() { f.rush.note(time.Now()) }

// Told is the priority of what has something to tell: it comes after objects that are new, for which nothing was done yet.
const Told = -1

// On is a source that queues what fn makes of each event. A short delay makes a burst of events one piece of work.
func On[R comparable](f *Feed, after time.Duration, fn func(inventory.Event) []R) source.TypedSource[R] {
	return source.TypedFunc[R](func(_ context.Context, q workqueue.TypedRateLimitingInterface[R]) error {
		f.add(func(ev inventory.Event) {
			if ev.Kind == "" {
				return
			}
			for _, r := range fn(ev) {
				queue(q, r, after)
			}
		})
		return nil
	})
}

// OnCalm is On for events that only change a status. While many requests for machines come in, it waits, rushMost at most,
// because these need the API server more.
func OnCalm[R comparable](f *Feed, after time.Duration, fn func(inventory.Event) []R) source.TypedSource[R] {
	return source.TypedFunc[R](func(ctx context.Context, q workqueue.TypedRateLimitingInterface[R]) error {
		c := &calm[R]{
			rush: &f.rush, queue: func(r R) { queue(q, r, after) }, is: func() bool { return ctx.Err() == nil },
			later: func(look func()) { time.AfterFunc(rushLook, look) },
		}
		f.add(func(ev inventory.Event) {
			if ev.Kind == "" {
				return
			}
			for _, r := range fn(ev) {
				c.add(r, time.Now())
			}
		})
		return nil
	})
}

func queue[R comparable](q workqueue.TypedRateLimitingInterface[R], r R, after time.Duration) {
	if ranked, ok := q.(priorityqueue.PriorityQueue[R]); ok {
		ranked.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: new(Told)}, r)
		return
	}
	q.AddAfter(r, after)
}

// Once is a source that queues what fn returns each time the stream begins. It handles all that happened before. fn runs in
// a goroutine of its own; when it fails it is tried again.
func Once[R comparable](f *Feed, fn func(context.Context) ([]R, error)) source.TypedSource[R] {
	return source.TypedFunc[R](func(ctx context.Context, q workqueue.TypedRateLimitingInterface[R]) error {
		f.add(func(ev inventory.Event) {
			if ev.Kind != "" {
				return
			}
			f.looks.Go(func() {
				f.look(ctx, func(ctx context.Context) error {
					all, err := fn(ctx)
					for _, r := range all {
						q.Add(r)
					}
					return err
				})
			})
		})
		return nil
	})
}

func (f *Feed) look(ctx context.Context, fn func(context.Context) error) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
		err := fn(ctx)
		if err == nil {
			return
		}
		f.log.Warn("inventory not listed", "err", err, "again", pause)
		_ = sleep.For(ctx, pause)
	}
}

// MachineOf returns the name of the machine that an event is about, "" for none.
func MachineOf(ev inventory.Event) string {
	name, ok := strings.CutPrefix(ev.Subject, "machine/")
	if !ok {
		return ""
	}
	return name
}
