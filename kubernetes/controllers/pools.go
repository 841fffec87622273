package controllers

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
)

// Pools says from which pools the machines of a namespace may take hosts.
type Pools struct {
	labels labels.Set // of the namespace
	all    []inventory.Pool
}

// PoolsFor reads the pools, and the labels of the namespace when a pool selects by them. Namespaces come from the cache,
// or where the account may not watch them from the API server.
func (e *Env) PoolsFor(ctx context.Context, cached, direct client.Reader, namespace string) (*Pools, error) {
	all, err := e.Appliance.ListPools(ctx)
	if err != nil {
		return nil, fmt.Errorf("list pools: %w", err)
	}
	p := &Pools{all: all}
	for i := range all {
		if all[i].AllowedNamespaces == "" {
			continue
		}
		from := cached
		if e.Reach.Narrow() {
			from = direct
		}
		ns := &metav1.PartialObjectMetadata{}
		ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := from.Get(ctx, client.ObjectKey{Name: namespace}, ns); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read namespace %s: %w", namespace, err)
		}
		p.labels = ns.Labels
		break
	}
	return p, nil
}

// may reports whether the namespace may use a pool. A selector that does not parse allows no namespace.
func (p *Pools) may(pool *inventory.Pool) bool {
	if pool.AllowedNamespaces == "" {
		return true
	}
	s, err := labels.Parse(pool.AllowedNamespaces)
	return err == nil && s.Matches(p.labels)
}

// Find returns the pool that a machine names, or nil. A machine without a name is in the default pool.
func (p *Pools) Find(name string) *inventory.Pool {
	name = cmp.Or(name, inventory.DefaultPool)
	for i := range p.all {
		if p.all[i].Name == name {
			return &p.all[i]
		}
	}
	return nil
}

// MayUse reports whether a host may serve the namespace: no pool whose selector has the host is closed to the namespace.
func (p *Pools) MayUse(h *inventory.Host) bool {
	for i := range p.all {
		if pool := &p.all[i]; !p.may(pool) && holds(pool, h) {
			return false
		}
	}
	return true
}

// holds reports whether a pool's selector holds a host.
func holds(p *inventory.Pool, h *inventory.Host) bool {
	if p.Selector == "" {
		return true
	}
	s, err := inventory.ParseSelector(p.Selector)
	return err == nil && s.Matches(h)
}

// Closed returns the pools that are not for the namespace.
func (p *Pools) Closed() (all []inventory.Pool) {
	for i := range p.all {
		if !p.may(&p.all[i]) {
			all = append(all, p.all[i])
		}
	}
	return all
}
