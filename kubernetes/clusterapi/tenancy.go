package clusterapi

import (
	"context"

	"slipway.dev/slipway/inventory"
)

// tenancy keeps a machine out of the pools that its namespace may not use. It is Forbidden when the machine names one
// of them.
func (k *kit) tenancy(ctx context.Context, namespace string, m *inventory.Machine) error {
	pools, err := k.env.PoolsFor(ctx, k.client, k.direct, namespace)
	if err != nil {
		return err
	}
	// The machine keeps these names. So the engine can choose a host without asking the cluster.
	for _, p := range pools.Closed() {
		if p.Name == m.Pool || m.Pool == "" && m.Placement.Host == "" && p.Name == inventory.DefaultPool {
			return notFor("pool "+p.Name, namespace)
		}
		m.Placement.NotPools = append(m.Placement.NotPools, p.Name)
	}
	return nil
}

// tenancyOfHost is Forbidden when the namespace may not use a host.
func (k *kit) tenancyOfHost(ctx context.Context, namespace string, h *inventory.Host) error {
	pools, err := k.env.PoolsFor(ctx, k.client, k.direct, namespace)
	if err != nil {
		return err
	}
	if !pools.MayUse(h) {
		return notFor("host "+h.Name, namespace)
	}
	return nil
}

func notFor(what, namespace string) error {
	return inventory.Errorf(inventory.Forbidden, "%s is not for namespace %s", what, namespace).WithHint("allowedNamespaces of the MetalPool says which are")
}
