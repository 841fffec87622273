package clusterapi

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/translate"
)

// machines reconciles SlipwayMachines. Reconciles of different objects run at once, of one object never.
// It keeps caches only. What has to survive is in the object or in the inventory.
type machines struct {
	*kit
	cache   cache.Cache // of the metadata of Secrets
	boots   *controllers.Bootstraps
	orphans *controllers.Orphans
}

// pass is one Reconcile of one SlipwayMachine. Only its goroutine uses it.
type pass struct {
	family
	sm    *infrav1.SlipwayMachine
	owner string
	view  *contract.View // nil when the appliance has no machine for it
	facts translate.Facts
	// waiting overrides why no host is claimed.
	waiting *metav1.Condition
	again   time.Duration // when to look again, 0 when an event tells
}

// look reads from the inventory the machine of an object. No machine is no error: then p.view is nil.
func (r *machines) look(ctx context.Context, p *pass) error {
	v, err := r.env.Appliance.FindMachine(ctx, p.owner)
	switch {
	case inventory.IsKind(err, inventory.NotFound):
		p.view = nil
		return nil
	case err != nil:
		return fmt.Errorf("read machine of %s: %w", p.owner, err)
	}
	p.view = &v
	return nil
}

// The keys of a bootstrap Secret. The contract names only value.
const (
	keyValue  = "value"
	keyFormat = "format"
)
