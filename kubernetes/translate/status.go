package translate

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// StatusOf says what became of a machine.
func StatusOf(f Facts) Status {
	t := teller{f: f, v: f.View}
	if t.v == nil {
		t.v = &contract.View{}
	}
	var told Status
	told.FailureReason, told.FailureMessage = t.failure()
	claimed, data, installed, delivered := t.claimed(), t.data(), t.installed(), t.delivered()
	cs := []metav1.Condition{claimed}
	if f.Bootstrap.IsWanted {
		cs = append(cs, data)
	}
	cs = append(cs, installed, delivered)
	if f.Node.IsWanted {
		cs = append(cs, t.joined(), t.healthy())
	}
	ready := t.ready(told, cs)
	if f.IsDeleting && f.Node.IsWanted {
		cs = append(cs, t.drained())
	}
	cs = append(cs, t.upToDate(), t.stalled(told))
	told.Conditions = append([]metav1.Condition{ready}, cs...)
	told.Phase = t.phase(told)
	told.IsProvisioned = t.isDelivered()
	t.where(&told)
	return told
}

// phase is a word for people. Nothing reads it back.
func (t *teller) phase(told Status) v1alpha1.MachinePhase {
	op := t.v.Operation
	switch {
	case t.f.IsDeleting:
		if op != nil && op.Kind == inventory.OpRelease && (op.Step == inventory.StepPreDrain || op.Step == inventory.StepDrain) {
			return v1alpha1.PhaseDraining
		}
		return v1alpha1.PhaseDeleting
	case told.FailureReason != "" && told.FailureReason != v1alpha1.FailureUnsupportedChange:
		return v1alpha1.PhaseFailed
	case t.f.View == nil:
		return v1alpha1.PhasePending
	case t.v.Claim == nil:
		return v1alpha1.PhaseClaiming
	case t.isDelivered():
		if t.f.Node.IsWanted && !t.f.Node.IsJoined {
			if t.f.Node.Reason == v1alpha1.ReasonWorkloadClusterUnreachable {
				return v1alpha1.PhaseUnknown
			}
			return v1alpha1.PhaseJoining
		}
		return v1alpha1.PhaseRunning
	case t.f.Bootstrap.IsWanted && !t.f.Bootstrap.IsReady:
		return v1alpha1.PhaseWaitingForBootstrapData
	case t.isWritten(), op != nil && (op.Step == inventory.StepReboot || op.Step == inventory.StepFirstBoot):
		return v1alpha1.PhaseBooting
	}
	return v1alpha1.PhaseProvisioning
}

// where says which host it is, and how it is reached.
func (t *teller) where(told *Status) {
	h := t.v.Host
	if h == nil || t.v.Claim == nil {
		return
	}
	told.HostName, told.InventoryID, told.FailureDomain = h.Name, string(h.ID), h.Place.Domain()
	told.Addresses = append(told.Addresses, v1alpha1.Address{Type: v1alpha1.AddressHostname, Address: cmp.Or(t.v.Machine.Hostname, t.v.Machine.Name)})
	for _, a := range t.v.Addresses {
		told.Addresses = append(told.Addresses, v1alpha1.Address{Type: v1alpha1.AddressInternalIP, Address: a})
	}
}
