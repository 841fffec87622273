package contract

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/test/kube/rig"
)

type (
	clusterMachine = clusterv1.Machine
	slipwayMachine = infrav1.SlipwayMachine
)

func (s *stage) pause(on bool) {
	s.Helper()
	s.edit(s.cluster, func() { s.cluster.Spec.Paused = &on }, false)
}

// pausedAt is a row that pauses a Cluster when a Machine has come to a point: nothing is written but Paused, and it goes
// on after.
func pausedAt(what string, reach func(*pair), during func(*pair)) row {
	return row{name: "paused: " + what, hosts: 1, run: func(s *stage) {
		p := s.add("m", nil)
		reach(p)
		p.settle()
		ready := p.condition(metalv1.Ready)
		s.pause(true)
		p.untilIs(metalv1.Paused, metav1.ConditionTrue, metalv1.ReasonPaused)
		before := p.sm.DeepCopy()
		during(p)
		p.settle()
		if p.sm.ResourceVersion != before.ResourceVersion {
			s.Errorf("it was written while paused: %+v", p.sm.ManagedFields)
		}
		if now := conditionOf(p.sm.Status.Conditions, metalv1.Ready); now.Status != ready.Status || now.Reason != ready.Reason {
			s.Errorf("Ready was %s %s and is %s %s", ready.Status, ready.Reason, now.Status, now.Reason)
		}
		s.pause(false)
		for _, step := range []rig.Step{rig.Boot, rig.Write, rig.Up} {
			s.robots[0].Go(step)
		}
		p.untilIs(metalv1.Paused, metav1.ConditionFalse, metalv1.ReasonNotPaused)
		if p.m.Spec.Bootstrap.DataSecretName == nil {
			p.bootstrap(nil)
		}
		p.untilProvisioned()
	}}
}

var pauseRows = []row{
	pausedAt("while it waits for bootstrap data, nothing is switched on", (*pair).untilClaimed, func(p *pair) {
		p.bootstrap(nil)
		if p.robot().IsOn() {
			p.Error("it was switched on")
		}
	}),
	pausedAt("an installation that has begun goes on", func(p *pair) {
		p.robots[0].Hold(rig.Write)
		p.bootstrap(nil)
		p.untilIs(metalv1.OSInstalled, metav1.ConditionFalse, metalv1.ReasonDownloading)
	}, func(p *pair) {
		p.robots[0].Go(rig.Write)
		p.until("the system is up", func() error { return is(p.robots[0].Counts().Ups > 0, "it is not") })
	}),
	pausedAt("when it runs", func(p *pair) {
		p.bootstrap(nil)
		p.untilProvisioned()
		p.untilIs(metalv1.Ready, metav1.ConditionTrue, "")
	}, func(*pair) {}),
	{name: "paused: a SlipwayMachine that is deleted is not ready, and says what it waits for", hosts: 1, run: func(s *stage) {
		p := s.add("m", nil)
		p.bootstrap(nil)
		p.untilProvisioned()
		s.pause(true)
		p.untilIs(metalv1.Paused, metav1.ConditionTrue, metalv1.ReasonPaused)
		p.remove()
		p.untilIs(metalv1.Ready, metav1.ConditionFalse, metalv1.ReasonDeleting)
		for _, kind := range []string{metalv1.Ready, metalv1.Paused} {
			if m := p.condition(kind).Message; !strings.Contains(m, "waits to be deleted: Cluster ") || !strings.Contains(m, "set its spec.paused to false") {
				s.Errorf("%s says %q", kind, m)
			}
		}
		s.pause(false)
		p.untilGone()
	}},
	{name: "paused: a Machine without a host asks for none, and asks again after", hosts: 0, run: func(s *stage) {
		p := s.add("m", nil)
		p.untilIs(metalv1.HostClaimed, metav1.ConditionFalse, metalv1.ReasonNoMatchingHost)
		s.pause(true)
		p.untilIs(metalv1.Paused, metav1.ConditionTrue, metalv1.ReasonPaused)
		s.robots = s.r.AddHosts(1, map[string]string{"for": s.ns})
		s.pause(false)
		p.untilClaimed()
	}},
	{name: "paused: by the annotation of Cluster API, and by ours", hosts: 1, run: func(s *stage) {
		for _, a := range []string{clusterv1.PausedAnnotation, metalv1.AnnotationPaused} {
			p := s.add("m"+string(rune('a'+len(a)%26)), func(_ *clusterMachine, sm *slipwayMachine) { sm.Annotations = map[string]string{a: ""} })
			p.untilIs(metalv1.Paused, metav1.ConditionTrue, metalv1.ReasonPaused)
			if len(p.sm.Finalizers) > 0 || p.sm.Spec.ClaimID != "" || len(p.sm.Status.Conditions) != 1 {
				s.Errorf("more than Paused was written: %+v", p.sm)
			}
		}
	}},
	{name: "paused: a deletion waits", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		b := p.robot()
		s.pause(true)
		p.untilIs(metalv1.Paused, metav1.ConditionTrue, "")
		p.remove()
		p.settle()
		if v, ok := p.view(); !ok || !v.Machine.DeletedAt.IsZero() || !b.IsOn() {
			s.Error("its host was released")
		}
		s.pause(false)
		p.untilGone()
	}},
}

// remake makes an object again as a restored backup or a move does: with its spec, without its status.
func (p *pair) remake() {
	p.Helper()
	p.read()
	spec := p.sm.Spec
	p.lift(p)
	p.sm = &infrav1.SlipwayMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.ns, Name: p.m.Name, Labels: p.sm.Labels, OwnerReferences: []metav1.OwnerReference{p.ownerRef("Machine", p.m)},
	}, Spec: spec}
	p.create(p.sm)
}

var moveRows = []row{
	{name: "move: an object that is made again without its status gets the same one, and its host is not touched", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		p.untilIs(metalv1.Ready, metav1.ConditionTrue, "")
		p.settle()
		was, counts := p.sm.Status.DeepCopy(), p.robot().Counts()
		p.remake()
		p.untilProvisioned()
		p.untilIs(metalv1.Ready, metav1.ConditionTrue, "")
		p.settle()
		now := p.sm.Status
		if now.FailureDomain != was.FailureDomain || len(now.Addresses) != len(was.Addresses) || *now.HostRef != *was.HostRef {
			s.Errorf("status was %+v and is %+v", was, now)
		}
		for _, c := range was.Conditions {
			if got := conditionOf(now.Conditions, c.Type); got.Status != c.Status || got.Reason != c.Reason || got.Message != c.Message {
				s.Errorf("condition %s was %s %s %q and is %s %s %q", c.Type, c.Status, c.Reason, c.Message, got.Status, got.Reason, got.Message)
			}
		}
		if got := p.robot().Counts(); got != counts {
			s.Errorf("its host was touched: %+v, before %+v", got, counts)
		}
	}},
	{name: "move: an installation survives it", hosts: 1, run: func(s *stage) {
		s.robots[0].Hold(rig.Write)
		p := s.add("m", nil)
		p.bootstrap(nil)
		p.untilIs(metalv1.OSInstalled, metav1.ConditionFalse, metalv1.ReasonDownloading)
		s.pause(true)
		p.untilIs(metalv1.Paused, metav1.ConditionTrue, "")
		p.remake()
		s.robots[0].Go(rig.Write)
		s.pause(false)
		p.untilProvisioned()
		if n := s.robots[0].Counts().Writes; n != 1 {
			s.Errorf("its disk was written %d times", n)
		}
	}},
	{name: "adoption: a claim that another object holds is not taken away", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		thief := s.add("thief", func(_ *clusterMachine, sm *slipwayMachine) {
			sm.Spec.ClaimID, sm.Spec.ProviderID = p.sm.Spec.ClaimID, p.sm.Spec.ProviderID
		})
		thief.untilIs(metalv1.Stalled, metav1.ConditionTrue, string(metalv1.FailureInvalidConfiguration))
		if v, ok := p.view(); !ok || thief.sm.Status.HostRef != nil {
			s.Errorf("the claim is %s's", v.Machine.Owner)
		}
		thief.remove()
		thief.untilGone()
		if !p.robot().IsOn() {
			s.Error("deleting the thief switched the host off")
		}
	}},
	{name: "adoption: a server that people made becomes a Machine by its claim, untouched, when an admin has granted that", hosts: 1, run: func(s *stage) {
		made, err := s.r.Engine().CreateMachine(ctx, inventory.Machine{Name: "plain-" + s.ns, Profile: rig.DiskProfile, Placement: inventory.Placement{Selector: "for=" + s.ns}}, ledger.By("test"))
		if err != nil {
			s.Fatal(err)
		}
		s.until("it runs", func() error {
			return s.r.Store.Read(ctx, func(tx inventory.Tx) error {
				made, err = tx.FindMachine(made.Name)
				return is(err == nil && made.Phase == inventory.MachineRunning, "it is %s: %v", made.Phase, err)
			})
		})
		s.grant(inventory.FromPeople)
		counts := s.robots[0].Counts()
		claim := inventory.Claim{ID: made.ClaimID}
		p := s.add("m", func(_ *clusterMachine, sm *slipwayMachine) {
			sm.Spec.ClaimID, sm.Spec.ProviderID = string(made.ClaimID), claim.ProviderID("lab", string(made.HostID))
		})
		p.untilProvisioned()
		if got := s.robots[0].Counts(); got != counts {
			s.Errorf("its host was touched: %+v, before %+v", got, counts)
		}
	}},
	{name: "adoption: a claim that is gone is said, and no other host is taken", hosts: 1, run: func(s *stage) {
		p := s.add("m", func(_ *clusterMachine, sm *slipwayMachine) {
			sm.Spec.ClaimID, sm.Spec.ProviderID = "01J00000000000000000000000", "slipway://lab/x/01J00000000000000000000000"
		})
		p.untilIs(metalv1.HostClaimed, metav1.ConditionFalse, metalv1.ReasonHostMissing)
		if p.condition(metalv1.Ready).Status == metav1.ConditionTrue || s.robots[0].IsOn() {
			s.Error("a host was taken")
		}
		if err := client.IgnoreNotFound(s.c.Delete(ctx, p.m)); err != nil {
			s.Fatal(err)
		}
		p.remove()
		p.untilGone()
	}},
}
