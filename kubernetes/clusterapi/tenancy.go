package clusterapi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
)

// allowed says from which pools the machines of a namespace may take hosts.
type allowed struct {
	namespace string
	labels    labels.Set
	pools     []inventory.Pool
}

// allowedFor reads the pools, and the labels of the namespace when a pool selects by them.
func (k *kit) allowedFor(ctx context.Context, namespace string) (*allowed, error) {
	pools, err := k.env.Appliance.ListPools(ctx)
	if err != nil {
		return nil, fmt.Errorf("list pools: %w", err)
	}
	a := &allowed{namespace: namespace, pools: pools}
	for _, p := range pools {
		if p.AllowedNamespaces == "" {
			continue
		}
		from := client.Reader(k.client)
		if k.env.Reach != nil && k.env.Reach.IsNarrow {
			from = k.direct
		}
		ns, err := find(ctx, from, "", namespace, &corev1.Namespace{})
		if err != nil {
			return nil, err
		}
		if ns != nil {
			a.labels = ns.Labels
		}
		break
	}
	return a, nil
}

// pool reports whether the namespace may use a pool. A selector that does not parse allows no namespace.
func (a *allowed) pool(p *inventory.Pool) bool {
	if p.AllowedNamespaces == "" {
		return true
	}
	s, err := labels.Parse(p.AllowedNamespaces)
	return err == nil && s.Matches(a.labels)
}

// named returns the pool that a machine names, or nil. A machine without a name is in the default pool.
func (a *allowed) named(name string) *inventory.Pool {
	if name == "" {
		name = inventory.DefaultPool
	}
	for i := range a.pools {
		if a.pools[i].Name == name {
			return &a.pools[i]
		}
	}
	return nil
}

// host reports whether a host may serve the namespace: no pool whose selector has the host is closed to the
// namespace.
func (a *allowed) host(h *inventory.Host) bool {
	for i := range a.pools {
		if p := &a.pools[i]; !a.pool(p) && holds(p, h) {
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

// closed are the pools that are not for the namespace.
func (a *allowed) closed() (all []inventory.Pool) {
	for i := range a.pools {
		if !a.pool(&a.pools[i]) {
			all = append(all, a.pools[i])
		}
	}
	return all
}

// tenancy keeps a machine out of the pools that its namespace may not use. It is Forbidden when the machine names one
// of them.
func (k *kit) tenancy(ctx context.Context, namespace string, m *inventory.Machine) error {
	a, err := k.allowedFor(ctx, namespace)
	if err != nil {
		return err
	}
	for _, p := range a.closed() {
		if p.Name == m.Pool || m.Pool == "" && m.Placement.Host == "" && p.Name == inventory.DefaultPool {
			return notFor("pool "+p.Name, namespace)
		}
		m.Placement.NotPools = append(m.Placement.NotPools, p.Name)
	}
	return nil
}

// tenancyOfHost is Forbidden when the namespace may not use a host.
func (k *kit) tenancyOfHost(ctx context.Context, namespace string, h *inventory.Host) error {
	a, err := k.allowedFor(ctx, namespace)
	if err != nil {
		return err
	}
	if !a.host(h) {
		return notFor("host "+h.Name, namespace)
	}
	return nil
}

func notFor(what, namespace string) error {
	return inventory.Errorf(inventory.Forbidden, "%s is not for namespace %s", what, namespace).WithHint("allowedNamespaces of the MetalPool says which are")
}
