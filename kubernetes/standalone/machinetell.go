package standalone

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// reporter writes what became of MetalMachines: fields and status of the objects, and events on them. mu guards told.
type reporter struct {
	client client.Client
	events events.EventRecorder
	now    func() time.Time

	mu   sync.Mutex
	told map[string]string // by owner and what it is about: what was said in an event
}

// forget drops what was said of the object of an owner.
func (r *reporter) forget(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// By prefix: an object has one entry for each subject.
	maps.DeleteFunc(r.told, func(k, _ string) bool { return strings.HasPrefix(k, owner+"\x00") })
}

// applySpec writes fields of a concern into the spec. What is told next is told of the generation that this makes.
func (r *reporter) applySpec(ctx context.Context, mm *v1alpha1.MetalMachine, manager string, spec map[string]any) error {
	generation, err := controllers.ApplySpec(ctx, r.client, mm, v1alpha1.GroupVersion.WithKind(v1alpha1.KindMetalMachine), manager, spec)
	if err == nil {
		mm.SetGeneration(generation)
	}
	return err
}

// writeStatus writes the status of a MetalMachine. It is no error when the object is gone.
func (r *reporter) writeStatus(ctx context.Context, mm *v1alpha1.MetalMachine) error {
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.KindMetalMachine)
	return client.IgnoreNotFound(controllers.ApplyStatus(ctx, r.client, mm, kind, managerMachine, &mm.Status))
}

// report writes the status of a MetalMachine when it changed. It runs last, so that the status never promises what
// the spec or the inventory lacks.
func (r *reporter) report(ctx context.Context, p *pass) error {
	// A pure function of the facts: the same facts give the same status, and cause no write.
	told := translate.StatusOf(p.facts)
	was, st := &p.mm.Status, p.mm.Status.DeepCopy()
	now := r.now()
	cs, isNew := translate.MergeConditions(was.Conditions, told.Conditions, p.mm.Generation, now)
	cs, isPauseNew := translate.Pause(cs, false, "", p.mm.Generation, now)
	if isNew || isPauseNew {
		st.Conditions = cs
	}
	if st.Phase != told.Phase {
		at := metav1.NewTime(now.Truncate(time.Second))
		st.Phase, st.LastUpdated = told.Phase, &at
	}
	st.ObservedGeneration = p.mm.Generation
	st.FailureReason, st.FailureMessage = told.FailureReason, told.FailureMessage
	if p.view != nil && p.view.IsUnseen && p.view.IsUp && p.again == 0 { // no event tells that it asks for an address
		p.again = controllers.UnseenAgain
	}
	if told.IsProvisioned {
		yes := true
		st.Initialization.Provisioned = &yes
	}
	r.reportHost(p, st, &told)
	r.reportNode(p, st)
	r.reportDeletion(p, st, now)
	// Before the status: if the process dies in between, an event is written twice, and none is lost.
	r.announce(p, was, st)
	// Most passes change nothing. A write would wake everybody who watches the object.
	if equality.Semantic.DeepEqual(was, st) {
		return nil
	}
	p.mm.Status = *st
	return r.writeStatus(ctx, p.mm)
}

func (r *reporter) reportHost(p *pass, st *v1alpha1.MetalMachineStatus, told *translate.Status) {
	if p.view == nil {
		return
	}
	st.Attempts = int32(min(p.view.Machine.AttemptN, 1<<30)) //nolint:gosec // bounded
	if told.HostName == "" {
		if !p.facts.IsDeleting {
			st.HostRef, st.Addresses, st.FailureDomain = nil, nil, ""
		}
		return
	}
	st.HostRef = &v1alpha1.HostReference{Name: told.HostName, InventoryID: told.InventoryID}
	st.FailureDomain = told.FailureDomain
	if d := p.mm.Spec.FailureDomain; d != "" && p.view.Host.Place.InDomain(d) {
		st.FailureDomain = d
	}
	addresses := told.Addresses
	if p.node != nil && p.node.Found {
		for _, a := range p.node.Addresses {
			if !slices.Contains(addresses, a) {
				addresses = append(addresses, a)
			}
		}
	}
	st.Addresses = addresses[:min(len(addresses), 64)]
}

func (r *reporter) reportNode(p *pass, st *v1alpha1.MetalMachineStatus) {
	switch {
	case p.node != nil && p.node.Found:
		st.NodeRef = &v1alpha1.NodeReference{Name: p.node.Name, UID: p.node.UID}
		st.Versions = p.node.Versions
	case p.node != nil && p.node.Reason != v1alpha1.ReasonWorkloadClusterUnreachable:
		// The cluster answered and has no such node. While it does not answer, the last known node stays.
		st.NodeRef = nil
	}
	if p.view != nil && st.Versions.OSImage == "" && st.Initialization.Provisioned != nil && p.view.Image != "" {
		st.Versions.OSImage = p.view.Image
	}
	if p.node != nil && p.node.Found && p.target != nil && p.mm.Spec.Versions.ControlPlane != "" {
		st.Versions.ControlPlane = p.node.Versions.Kubelet
	}
}

// reportDeletion describes in the status how far a deletion is, and what blocks it. It writes each time only once.
func (r *reporter) reportDeletion(p *pass, st *v1alpha1.MetalMachineStatus, now time.Time) {
	if !p.facts.IsDeleting || p.view == nil {
		return
	}
	d := st.Deletion
	if d == nil {
		d = &v1alpha1.DeletionStatus{}
	}
	d.BlockedBy = nil
	if op := p.view.Operation; op != nil && op.Kind == inventory.OpRelease {
		at := metav1.NewTime(op.StepAt.Truncate(time.Second))
		if op.Step == inventory.StepDrain && d.DrainStarted == nil {
			d.DrainStarted = &at
		}
		isFenced := slices.Contains([]inventory.Step{inventory.StepForget, inventory.StepPreClean, inventory.StepWipe, inventory.StepPreRelease, inventory.StepRest}, op.Step)
		if isFenced && d.FencedAt == nil {
			fenced := metav1.NewTime(now.Truncate(time.Second))
			d.FencedAt = &fenced
		}
		for _, h := range p.view.Machine.Hooks {
			if h.AckedAt.IsZero() && string(h.Step) == string(op.Step) {
				d.BlockedBy = append(d.BlockedBy, v1alpha1.HookAnnotation(string(h.Step), h.Owner))
			}
		}
		if op.Reason != "" && op.Step != inventory.StepDrain && len(d.BlockedBy) == 0 { // such as a controller that does not answer
			d.BlockedBy = append(d.BlockedBy, inventory.Clean(string(op.Step)+": "+op.Reason, 500))
		}
		if drain := p.view.Drain; drain != nil && !drain.IsDone && op.Step == inventory.StepDrain {
			d.BlockedBy = append(d.BlockedBy, drain.BlockedBy...)
		}
		// The definition allows 16. One more, and the API server would refuse the whole status.
		d.BlockedBy = d.BlockedBy[:min(len(d.BlockedBy), 16)]
	}
	st.Deletion = d
}

// announce writes an event for each fact that has just become true.
func (r *reporter) announce(p *pass, was, st *v1alpha1.MetalMachineStatus) {
	if st.Phase != was.Phase && st.Phase != v1alpha1.PhaseFailed && !p.isClaimed { // this pass has just recorded its claim
		message := string(st.Phase)
		if c := apimeta.FindStatusCondition(st.Conditions, v1alpha1.Ready); c != nil && c.Message != "" {
			message = c.Message
		}
		r.tellf(p.mm, corev1.EventTypeNormal, string(st.Phase), "%s", message)
	}
	if st.FailureReason != "" && (st.FailureReason != was.FailureReason || st.FailureMessage != was.FailureMessage) {
		r.tellf(p.mm, corev1.EventTypeWarning, string(st.FailureReason), "%s", st.FailureMessage)
	}
	for _, c := range st.Conditions {
		if !slices.Contains(alarming, c.Reason) || c.Type == v1alpha1.Ready {
			continue
		}
		if old := apimeta.FindStatusCondition(was.Conditions, c.Type); old == nil || old.Reason != c.Reason {
			r.tellf(p.mm, corev1.EventTypeWarning, c.Reason, "%s", c.Message)
		}
	}
}

// alarming are the reasons of conditions that cause a warning event as well.
var alarming = []string{
	v1alpha1.ReasonNodeProviderIDMismatch, v1alpha1.ReasonJoinFailed, v1alpha1.ReasonHostMissing, v1alpha1.ReasonBlockedByPDB,
	v1alpha1.ReasonDrainTimeout, v1alpha1.ReasonTokenMintFailed, v1alpha1.ReasonBootTimeout, v1alpha1.ReasonInstallFailed,
}

// maxNote bounds the text of an event; the API server refuses more than 1 kB.
const maxNote = 1000

// tellf writes an event on an object.
func (r *reporter) tellf(mm *v1alpha1.MetalMachine, kind, reason, format string, args ...any) {
	r.events.Eventf(mm, nil, kind, reason, "Reconcile", "%s", inventory.Clean(fmt.Sprintf(format, args...), maxNote))
}

// once calls do when what differs from the last call for this object and subject. After a restart it calls do once
// more.
func (r *reporter) once(p *pass, about, what string, do func()) {
	key := p.owner.String() + "\x00" + about
	r.mu.Lock()
	isNew := r.told[key] != what
	// Noted before the event is written. If this process dies in between, its memory is gone as well, and the next pass
	// writes the event.
	r.told[key] = what
	r.mu.Unlock()
	if isNew {
		do()
	}
}
