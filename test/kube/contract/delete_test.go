package contract

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"slipway.dev/slipway/inventory"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

// untilFree waits until the host of a robot can be claimed again.
func (s *stage) untilFree(b *rig.Robot) {
	s.Helper()
	s.until(b.Name()+" is free and clean", func() error {
		v, err := s.r.Appliance().FindHost(ctx, b.ID())
		if err != nil {
			return err
		}
		return is(v.Host.State == inventory.Available && v.Host.ClaimID == "" && !v.Host.IsDirty, "it is %s, claim %q", v.Host.State, v.Host.ClaimID)
	})
}

// noted reports whether an event with a reason was written in the namespace.
func (s *stage) noted(reason string) error {
	var events corev1.EventList
	if err := s.c.List(ctx, &events, client.InNamespace(s.ns)); err != nil {
		return err
	}
	var all []string
	for _, e := range events.Items {
		if e.Reason == reason {
			return nil
		}
		all = append(all, e.Reason)
	}
	return is(false, "events are %v", all)
}

// deletedAt is a row that deletes a Machine when it has come to a point.
func deletedAt(what string, reach func(*pair)) row {
	return row{name: "delete: " + what, hosts: 1, run: func(s *stage) {
		p := s.add("m", nil)
		reach(p)
		p.remove()
		for _, step := range []rig.Step{rig.Boot, rig.Write, rig.Up} {
			s.robots[0].Go(step)
		}
		p.untilGone()
		s.untilFree(s.robots[0])
		// The host serves the next one.
		s.whole("next", nil)
	}}
}

var deleteRows = []row{
	deletedAt("before it has a host", func(p *pair) {
		p.robots[0].Hold(rig.Boot)
		p.until("the finalizer is there", func() error {
			p.read()
			return is(controllerutil.ContainsFinalizer(p.sm, metalv1.FinalizerSlipwayMachine), "it is not")
		})
	}),
	deletedAt("while it waits for bootstrap data", (*pair).untilClaimed),
	deletedAt("while its host boots", func(p *pair) {
		p.robots[0].Hold(rig.Boot)
		p.bootstrap(nil)
		p.until("it is on", func() error { return is(p.robots[0].IsOn(), "it is off") })
	}),
	deletedAt("while its disk is written", func(p *pair) {
		p.robots[0].Hold(rig.Write)
		p.bootstrap(nil)
		p.untilIs(metalv1.OSInstalled, metav1.ConditionFalse, metalv1.ReasonDownloading)
	}),
	deletedAt("when it runs", func(p *pair) {
		p.bootstrap(nil)
		p.untilProvisioned()
	}),
	{name: "delete: with the Machine nothing of ours drains, the host is fenced and wiped, Ready stays told", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		b, wipes := p.robot(), p.robot().Counts().Wipes
		b.Hold(rig.Wipe)
		s.edit(p.sm, func() { p.sm.Spec.ReleaseAfter = metalv1.ReleaseCleaned }, false)
		p.settle()
		p.remove()
		p.untilIs(metalv1.Ready, metav1.ConditionFalse, metalv1.ReasonDeleting)
		if err := s.noted("DrainedBySlipway"); err == nil {
			s.Error("Slipway drained what Cluster API has drained")
		}
		b.Go(rig.Wipe)
		p.untilGone()
		s.untilFree(b)
		if b.Counts().Wipes == wipes {
			s.Error("its disk was not wiped")
		}
	}},
	{name: "delete: one of a set leaves its host to its successor", hosts: 1, run: func(s *stage) {
		b := s.leave(func(*pair) {})
		s.until("its host is kept for the set", func() error {
			h := s.hostOf(b)
			return is(strings.HasSuffix(h.ReuseKey, "/"+s.ns+"/c/workers"), "it is kept for %q", h.ReuseKey)
		})
	}},
	{name: "delete: with the whole Cluster nobody is kept a host", hosts: 1, run: func(s *stage) {
		b := s.leave(func(*pair) {
			s.edit(s.cluster, func() { s.cluster.Finalizers = append(s.cluster.Finalizers, clusterv1.ClusterFinalizer) }, false)
			if err := s.c.Delete(ctx, s.cluster); err != nil {
				s.Fatal(err)
			}
		})
		s.freeForAll(b)
		s.edit(s.cluster, func() { s.cluster.Finalizers = nil }, false)
	}},
	{name: "delete: with the whole set nobody is kept a host", hosts: 1, run: func(s *stage) {
		b := s.leave(func(p *pair) {
			if err := s.c.Delete(ctx, p.set); err != nil {
				s.Fatal(err)
			}
		})
		s.freeForAll(b)
	}},
	{name: "delete: of the SlipwayMachine alone is warned about", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		if err := s.c.Delete(ctx, p.sm); err != nil {
			s.Fatal(err)
		}
		p.untilGone()
		s.until("somebody is warned", func() error { return s.noted("NotDrained") }) // the workload cluster is not known here
	}},
	{name: "delete: force-delete asks nobody and quarantines the host", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		b := p.robot()
		b.Hold(rig.Wipe)
		s.edit(p.sm, func() { p.sm.Annotations = map[string]string{metalv1.AnnotationForceDelete: ""} }, false)
		p.remove()
		p.untilGone()
		v, err := s.r.Appliance().FindHost(ctx, b.ID())
		if err != nil || v.Host.State != inventory.Failed {
			s.Errorf("the host is %s: %v", v.Host.State, err)
		}
	}},
	{name: "delete: a hook holds it until its annotation goes", hosts: 1, run: func(s *stage) {
		hook := metalv1.HookAnnotation("pre-fence", "storage")
		p := s.whole("m", nil)
		s.edit(p.sm, func() { p.sm.Annotations = map[string]string{hook: ""} }, false)
		v, _ := p.view()
		s.until("the appliance knows the hook", func() error {
			v, _ = p.view()
			return is(len(v.Machine.Hooks) > 0 && v.Machine.Hooks[len(v.Machine.Hooks)-1].Owner == "storage", "hooks are %v", v.Machine.Hooks)
		})
		p.remove()
		s.until("it waits for the hook", func() error {
			v, ok := p.view()
			return is(ok && v.Operation != nil && strings.Contains(v.Operation.Reason, "storage"), "it is at %+v", v.Operation)
		})
		if !p.robot().IsOn() {
			s.Error("it was fenced before the hook was acknowledged")
		}
		s.edit(p.sm, func() { delete(p.sm.Annotations, hook) }, false)
		p.untilGone()
	}},
	{name: "delete: without an owner, as on the source of a move, the host stays untouched", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		b := p.robot()
		s.edit(p.sm, func() { p.sm.OwnerReferences = nil }, false)
		if err := s.c.Delete(ctx, p.sm); err != nil {
			s.Fatal(err)
		}
		p.untilGone()
		if v, ok := p.view(); !ok || !v.Machine.DeletedAt.IsZero() || !b.IsOn() {
			s.Errorf("its machine is %+v, on: %v", v.Machine, b.IsOn())
		}
		s.until("somebody is warned", func() error { return s.noted("LeftRunning") })
	}},
	{name: "delete: an object that loses its finalizer first loses no server", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		b := p.robot()
		s.lift(p)
		if v, ok := p.view(); !ok || !v.Machine.DeletedAt.IsZero() || !b.IsOn() {
			s.Errorf("its machine is %+v, on: %v", v.Machine, b.IsOn())
		}
		// Who has its claim in a new object has the server again.
		q := s.add("again", func(_ *clusterMachine, sm *slipwayMachine) {
			sm.Spec.ClaimID, sm.Spec.ProviderID = p.sm.Spec.ClaimID, p.sm.Spec.ProviderID
		})
		q.untilProvisioned()
		if b.Counts().Offs > 0 && !b.IsOn() {
			s.Error("its host was switched off")
		}
	}},
	{name: "delete: before a host is claimed, with the finalizer stripped, the request goes too", hosts: 0, run: func(s *stage) {
		p := s.add("m", nil)
		p.untilIs(metalv1.HostClaimed, metav1.ConditionFalse, metalv1.ReasonNoMatchingHost)
		s.strip(p)
		s.until("the appliance has no machine for it", func() error {
			views, err := s.r.Appliance().ListMachines(ctx, "")
			if err != nil {
				return err
			}
			for _, v := range views {
				if strings.Contains(v.Machine.Owner, "/"+s.ns+"/") && v.Machine.DeletedAt.IsZero() {
					return is(false, "it has %s", v.Machine.Name)
				}
			}
			return nil
		})
	}},
}

// leave lets a machine of a set that prefers its old host go, after before, and returns what plays its host.
func (s *stage) leave(before func(*pair)) *rig.Robot {
	s.Helper()
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "workers", Finalizers: []string{clusterv1.MachineSetFinalizer}}}
	set.Spec.ClusterName, set.Spec.Selector.MatchLabels = "c", map[string]string{"set": "workers"}
	set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
	set.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr("x")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.Group, Kind: "SlipwayMachineTemplate", Name: "x"},
	}
	s.create(set)
	p := s.whole("m", func(m *clusterMachine, sm *slipwayMachine) {
		m.Labels = map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineSetNameLabel: "workers"}
		m.OwnerReferences = append(m.OwnerReferences, s.ownerRef("MachineSet", set))
		sm.Spec.Placement.Reuse = metalv1.ReusePrefer
	})
	p.set = set
	before(p)
	b := p.robot()
	p.remove()
	p.untilGone()
	s.untilFree(b)
	s.edit(set, func() { set.Finalizers = nil }, false)
	return b
}

func (s *stage) hostOf(b *rig.Robot) inventory.Host {
	s.Helper()
	v, err := s.r.Appliance().FindHost(ctx, b.ID())
	if err != nil {
		s.Fatal(err)
	}
	return v.Host
}

// freeForAll looks whether a host is kept for nobody.
func (s *stage) freeForAll(b *rig.Robot) {
	s.Helper()
	if h := s.hostOf(b); h.ReuseKey != "" {
		s.Errorf("its host is kept for %q", h.ReuseKey)
	}
}

// strip removes an object and its finalizers after somebody has deleted it.
func (s *stage) strip(p *pair) {
	s.Helper()
	if err := s.c.Delete(ctx, p.sm); err != nil {
		s.Fatal(err)
	}
	s.until("it is gone", func() error {
		if p.read() {
			return nil
		}
		p.sm.Finalizers = nil
		if err := client.IgnoreNotFound(s.c.Update(ctx, p.sm)); err != nil {
			return err
		}
		return is(p.read(), "it is there")
	})
}

// lift removes an object as clusterctl does on the source of a move: it is paused, its finalizers go, then it does.
func (s *stage) lift(p *pair) {
	s.Helper()
	s.edit(p.sm, func() { p.sm.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }, false)
	p.untilIs(metalv1.Paused, metav1.ConditionTrue, "")
	s.edit(p.sm, func() { p.sm.Finalizers = nil }, false)
	if err := s.c.Delete(ctx, p.sm); err != nil {
		s.Fatal(err)
	}
	p.untilGone()
}
