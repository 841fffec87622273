package clusterapi

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/kubernetes/controllers"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/translate"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

// writeStatus writes the status of a machine.
func (r *machines) writeStatus(ctx context.Context, sm *infrav1.SlipwayMachine) error {
	return controllers.ApplyStatus(ctx, r.client, sm, infrav1.GroupVersion.WithKind(infrav1.KindSlipwayMachine), ManagerMachine, &sm.Status)
}

// report writes the status of a machine when it changed. Provisioned never becomes false again: Cluster API takes it
// as a fact for the life of the object.
func (r *machines) report(ctx context.Context, p *pass) error {
	p.facts.View = p.view
	told := translate.StatusOf(p.facts)
	if p.waiting != nil && (p.view == nil || p.view.Claim == nil) {
		// Only the controller knows this reason: the inventory has no machine for the object.
		told.Conditions = because(told.Conditions, metalv1.HostClaimed, p.waiting.Reason, p.waiting.Message)
	}
	was, st := &p.sm.Status, p.sm.Status.DeepCopy()
	now := time.Now()
	cs, isNew := translate.MergeConditions(was.Conditions, told.Conditions, p.sm.Generation, now)
	cs, isPauseNew := translate.Pause(cs, false, "", p.sm.Generation, now)
	if isNew || isPauseNew {
		st.Conditions = cs
	}
	if p.view != nil && p.view.IsUnseen && p.view.IsUp && p.again == 0 { // no event tells that it asks for an address
		p.again = controllers.UnseenAgain
	}
	yes := true
	if told.IsProvisioned {
		st.Initialization.Provisioned, st.Ready = &yes, &yes
	}
	if p.view != nil && p.view.Claim != nil {
		st.Addresses = slices.Clone(told.Addresses)
		st.FailureDomain = r.domainOf(ctx, p)
		st.HostRef = &metalv1.HostReference{Name: told.HostName, InventoryID: told.InventoryID}
	}
	st.ObservedGeneration = p.sm.Generation
	// Most passes change nothing. A write would wake everybody who watches the object.
	if equality.Semantic.DeepEqual(was, st) {
		return nil
	}
	p.sm.Status = *st
	return r.writeStatus(ctx, p.sm)
}

// because replaces the reason of a condition, and that of Ready when Ready names this condition.
func because(cs []metav1.Condition, kind, reason, message string) []metav1.Condition {
	var first string
	for i := range cs {
		if cs[i].Type == metalv1.Ready {
			continue
		}
		if first == "" && cs[i].Status != metav1.ConditionTrue {
			first = cs[i].Type
		}
		if cs[i].Type == kind {
			cs[i].Reason, cs[i].Message = reason, message
		}
	}
	for i := range cs {
		stalled := slices.ContainsFunc(cs, func(c metav1.Condition) bool { return c.Type == metalv1.Stalled && c.Status == metav1.ConditionTrue })
		if cs[i].Type == metalv1.Ready && first == kind && !stalled && cs[i].Reason != metalv1.ReasonDeleting {
			cs[i].Reason, cs[i].Message = reason, kind+": "+message
		}
	}
	return cs
}

// domainOf returns the failure domain of a machine's host, under the name that the cluster uses.
func (r *machines) domainOf(ctx context.Context, p *pass) string {
	place := p.view.Host.Place
	if p.Machine != nil && p.Machine.Spec.FailureDomain != "" && place.InDomain(p.Machine.Spec.FailureDomain) {
		return p.Machine.Spec.FailureDomain
	}
	if p.Cluster != nil && p.Cluster.Spec.InfrastructureRef.Kind == infrav1.KindSlipwayCluster {
		sc, err := find(ctx, r.client, p.sm.Namespace, p.Cluster.Spec.InfrastructureRef.Name, &infrav1.SlipwayCluster{})
		if err == nil && sc != nil {
			for _, d := range sc.Spec.FailureDomains {
				if place.InDomain(d) {
					return d
				}
			}
		}
	}
	return place.Domain()
}
