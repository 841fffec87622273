package backend

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

const (
	// seenFor is how long is believed whether the cluster is shown a host, for events.
	seenFor = 5 * time.Second
	seenMax = 10_000
)

// sight is whether the cluster was shown a host, and when that was looked up.
type sight struct {
	is bool
	at time.Time
}

// shared are the nouns of which every cluster hears that something was made or changed: a machine may wait for it.
var shared = []string{"pool", "profile", "image", "host", "layer", "secret"}

// Watch implements contract.Appliance. fn receives only what the cluster may see.
func (a *Scoped) Watch(ctx context.Context, fn func(inventory.Event)) error {
	return a.all.Watch(ctx, func(e inventory.Event) {
		if e.Kind == "" {
			fn(e)
			return
		}
		if e, ok := a.Hear(ctx, e); ok {
			fn(e)
		}
	})
}

// Hear returns the part of an event that the cluster may see, and whether it may see it at all. The cluster learns
// that something happened to a host that it may see, or to a machine of its own. It also learns of changes that
// machines may wait for. It learns what happened by reading the thing.
func (a *Scoped) Hear(ctx context.Context, e inventory.Event) (inventory.Event, bool) {
	said := inventory.Event{ID: e.ID, At: e.At, Kind: e.Kind}
	if owner := contract.OwnerOf(e); owner != "" && a.isOwn(owner) {
		said.HostID, said.Subject, said.Data = e.HostID, e.Subject, map[string]any{"owner": owner}
		return said, true
	}
	if noun, _, ok := strings.Cut(e.Subject, "/"); ok && slices.Contains(shared, noun) {
		said.Subject = noun + "/"
	}
	if e.HostID != "" && a.shows(ctx, e.HostID) {
		said.HostID = e.HostID
	}
	return said, said.HostID != "" || said.Subject != ""
}

// shows reports whether the cluster is shown a host. One that is gone was perhaps shown, and its id tells nothing.
func (a *scoped) shows(ctx context.Context, id inventory.HostID) bool {
	r, err := a.rule(ctx)
	if err != nil {
		return false
	}
	if len(r.only) == 0 {
		return true
	}
	a.mu.Lock()
	// Events come in bursts about one host. Each look would be a request to the appliance.
	s, ok := a.seen[id]
	a.mu.Unlock()
	if ok && time.Since(s.at) < seenFor {
		return s.is
	}
	v, err := a.all.FindHost(ctx, id)
	is := err == nil && r.sees(&v)
	if err != nil {
		var e *inventory.Error
		return errors.As(err, &e) && e.Kind == inventory.NotFound
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen) >= seenMax {
		clear(a.seen)
	}
	a.seen[id] = sight{is, time.Now()}
	return is
}
