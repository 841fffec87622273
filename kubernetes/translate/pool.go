package translate

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

var cleans = map[v1alpha1.CleanPolicy]inventory.CleanMode{
	"": "", v1alpha1.CleanNone: inventory.CleanNone, v1alpha1.CleanQuick: inventory.CleanQuick, v1alpha1.CleanFull: inventory.CleanFull, v1alpha1.CleanSecure: inventory.CleanSecure,
}

// Pool returns the pool that a MetalPool describes. An error is an *Invalid.
func Pool(mp *v1alpha1.MetalPool, owner contract.Owner) (p inventory.Pool, err error) {
	s := &mp.Spec
	p = inventory.Pool{Name: mp.Name, Owner: owner.String(), Clean: cleans[s.CleanPolicy]}
	if p.Selector, err = Selector(s.Selector); err != nil {
		return p, invalid("spec.selector", err.Error())
	}
	if p.Requirements, err = Requirements(s.Requirements); err != nil {
		return p, invalid("spec.requirements", err.Error())
	}
	if s.AllowedNamespaces != nil {
		allowed, err := metav1.LabelSelectorAsSelector(s.AllowedNamespaces)
		if err != nil {
			return p, invalid("spec.allowedNamespaces", err.Error())
		}
		p.AllowedNamespaces = allowed.String()
	}
	p.Budget = inventory.Budget{Provision: int(s.Budgets.MaxConcurrentProvisioning), Destroy: int(s.Budgets.MaxConcurrentDestroy)}
	if n := s.Budgets.DestroyIntervalSeconds; n != nil {
		p.Budget.DestroyInterval = inventory.Duration(time.Duration(*n) * time.Second)
	}
	if s.MinSpare != nil {
		p.MinSpare = int(*s.MinSpare)
	}
	if err := p.Validate(); err != nil {
		return p, invalid("spec", err.Error())
	}
	return p, nil
}
