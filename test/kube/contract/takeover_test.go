package contract

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

// TestAnotherClusterTakesNoMachineByCopyingItsClaim is the attack: cluster B copies claim and provider id of a machine of
// cluster A, and deletes its copy. Nothing happens to the server of A, and the timeline tells who tried. Then the owner in A
// offers the machine, and B gets it without any admin.
func TestAnotherClusterTakesNoMachineByCopyingItsClaim(t *testing.T) {
	r := newRig(t)
	a := newStage(t, r, 1)
	web := a.whole("web", nil)
	web.untilIs(metalv1.Ready, metav1.ConditionTrue, "")
	robot := web.robot()
	counts := robot.Counts()

	b := &stage{T: t, r: r, c: second(t, r), ns: a.ns, robots: a.robots}
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.ns}})
	b.cluster = copied(b, a.cluster, nil)
	a.get(a.infra)
	ref := b.ownerRef("Cluster", b.cluster)
	b.infra = copied(b, a.infra, &ref)
	b.provisioned()
	web.read()
	stolen := &pair{stage: b, m: copied(b, web.m, nil)}
	ref = b.ownerRef("Machine", stolen.m)
	stolen.sm = copied(b, web.sm, &ref)

	stolen.untilIs(metalv1.Stalled, metav1.ConditionTrue, string(metalv1.FailureInvalidConfiguration))
	if c := stolen.condition(metalv1.Stalled); !strings.Contains(c.Message, "another cluster") {
		t.Errorf("it says %q", c.Message)
	}
	if stolen.sm.Status.HostRef != nil || isTrue(stolen.sm.Status.Initialization.Provisioned) {
		t.Errorf("the copy has the host: %+v", stolen.sm.Status)
	}
	r.Read(t, func(tx inventory.Tx) error {
		all, err := tx.ListEvents(inventory.EventFilter{}, 0, 0)
		for _, e := range all {
			if e.Kind == inventory.EventTakeRefused && strings.Contains(fmt.Sprint(e.Data), b.clusterUID()) {
				return err
			}
		}
		t.Error("no event tells of the attempt")
		return err
	})
	stolen.remove()
	stolen.untilGone()
	b.edit(stolen.m, func() { stolen.m.Finalizers = nil }, false)
	b.until("the copy of its Machine is gone", func() error {
		return is(apierrors.IsNotFound(b.c.Get(ctx, client.ObjectKeyFromObject(stolen.m), stolen.m)), "it is there")
	})
	unharmed(t, web, robot, counts)

	// The owner's own word is enough, and it is for that cluster only.
	a.edit(web.sm, func() { web.sm.Annotations = map[string]string{metalv1.AnnotationHandOverTo: b.clusterUID()} }, false)
	a.until("the machine is offered", func() error {
		v, ok := web.view()
		return is(ok && v.Machine.OfferedTo == b.clusterUID(), "it is offered to %q", v.Machine.OfferedTo)
	})
	a.pause(true)
	web.untilIs(metalv1.Paused, metav1.ConditionTrue, "")
	web.read()
	moved := &pair{stage: b, m: copied(b, web.m, nil)}
	ref = b.ownerRef("Machine", moved.m)
	moved.sm = copied(b, web.sm, &ref)
	a.lift(web)
	moved.untilProvisioned()
	moved.untilIs(metalv1.Ready, metav1.ConditionTrue, "")
	if got := robot.Counts(); got != counts {
		t.Errorf("the host was touched by the move: %+v, before %+v", got, counts)
	}
	if v, ok := moved.view(); !ok || v.Machine.OfferedTo != "" {
		t.Errorf("the machine is offered on: %q", v.Machine.OfferedTo)
	}
}

// unharmed demands that a machine runs on as if nothing had been tried.
func unharmed(t *testing.T, p *pair, robot *rig.Robot, counts rig.Counts) {
	t.Helper()
	p.untilIs(metalv1.Ready, metav1.ConditionTrue, "")
	v, ok := p.view()
	if got := robot.Counts(); !ok || got != counts || v.Host == nil || v.Host.State != inventory.Active || !v.Machine.DeletedAt.IsZero() {
		t.Errorf("the server was touched: %+v, before %+v, machine %+v", got, counts, v.Machine)
	}
}
