package backend

import (
	"context"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// Scoped is an appliance as one cluster may use it. Many goroutines may call it. Each group of calls has a type of its own,
// which holds the appliance in a field. A call of the contract without a limit does therefore not compile.
type Scoped struct {
	*scoped
	scopedMachines
	scopedHosts
	scopedNouns
}

var _ contract.Appliance = (*Scoped)(nil)

// ForCluster returns the appliance as the cluster with a UID may use it. With nil for namespaces, every namespace counts
// as one without labels.
func ForCluster(a contract.Appliance, uid string, namespaces Namespaces) *Scoped {
	return newScoped(a, Scope{UID: uid}, namespaces)
}

// ForToken returns the appliance as the holder of a cluster's token may use it. The holder itself says which labels
// its namespaces have, so that they are not checked here. Controllers that check them use ForCluster as well.
func ForToken(a contract.Appliance, s Scope) *Scoped {
	s.saysLabels = true
	return newScoped(a, s, nil)
}

func newScoped(all contract.Appliance, s Scope, namespaces Namespaces) *Scoped {
	a := &scoped{all: all, scope: s, namespaces: namespaces, owners: map[string]string{}, seen: map[inventory.HostID]sight{}}
	return &Scoped{a, scopedMachines{a}, scopedHosts{a}, scopedNouns{a}}
}

// Site implements contract.Appliance. All clusters may know it: it is in the provider IDs of their nodes.
func (a *Scoped) Site() string { return a.all.Site() }

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
