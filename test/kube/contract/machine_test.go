package contract

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

// TestContract is the contract of Cluster API's infrastructure providers, v1beta2, with one row for each thing that it
// asks for, and those that core reads without saying so. The parts that stock Cluster API plays itself are in
// test/kube/capi.
func TestContract(t *testing.T) {
	r := newRig(t)
	for _, row := range rows() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if row.isBare {
				row.run(bareStage(t, r, row.hosts))
				return
			}
			row.run(newStage(t, r, row.hosts))
		})
	}
}

// row is one thing that the contract asks for.
type row struct {
	name   string
	hosts  int
	isBare bool // without a Cluster
	run    func(*stage)
}

func rows() []row {
	var all []row
	for _, some := range [][]row{machineRows, bootstrapRows, deleteRows, drainRows, pauseRows, moveRows, clusterRows, templateRows, remediationRows} {
		all = append(all, some...)
	}
	return all
}

var machineRows = []row{
	{name: "InfraMachine: provider ID, initialization completed, addresses, Ready", hosts: 1, run: func(s *stage) {
		p := s.add("m", nil)
		p.untilClaimed()
		if !strings.HasPrefix(p.sm.Spec.ProviderID, "slipway://lab/") || !strings.HasSuffix(p.sm.Spec.ProviderID, "/"+p.sm.Spec.ClaimID) {
			s.Errorf("provider id %q, claim %q", p.sm.Spec.ProviderID, p.sm.Spec.ClaimID)
		}
		if isTrue(p.sm.Status.Initialization.Provisioned) {
			s.Error("it is provisioned at the claim")
		}
		p.bootstrap(nil)
		p.untilProvisioned()
		p.untilIs(metalv1.Ready, metav1.ConditionTrue, metalv1.ReasonReady)
		kinds := map[metalv1.AddressType]string{}
		for _, a := range p.sm.Status.Addresses {
			kinds[a.Type] = a.Address
		}
		if kinds[metalv1.AddressHostname] != "m" || kinds[metalv1.AddressInternalIP] != p.robot().Address().String() {
			s.Errorf("addresses %v", p.sm.Status.Addresses)
		}
		if !isTrue(p.sm.Status.Ready) {
			s.Error("status.ready does not mirror provisioned")
		}
		if p.sm.Status.HostRef.InventoryID != string(p.robot().ID()) {
			s.Errorf("hostRef %+v", p.sm.Status.HostRef)
		}
	}},
	{name: "InfraMachine: its host is claimed before the bootstrap data are there, and switched on after", hosts: 1, run: func(s *stage) {
		boots := s.robots[0].Counts().Boots
		p := s.add("m", nil)
		p.untilClaimed()
		p.untilIs(metalv1.BootstrapDataAvailable, metav1.ConditionFalse, metalv1.ReasonWaitingForControlPlaneInit)
		s.edit(s.cluster, func() { s.cluster.Status.Initialization.ControlPlaneInitialized = ptr(true) }, true)
		p.untilIs(metalv1.BootstrapDataAvailable, metav1.ConditionFalse, metalv1.ReasonWaitingForBootstrapData)
		if p.robot().IsOn() || s.robots[0].Counts().Boots != boots {
			s.Error("a host was switched on before its bootstrap data were there")
		}
		p.bootstrap(nil)
		p.untilProvisioned()
	}},
	{name: "InfraMachine: nothing is claimed before the Cluster's infrastructure is provisioned", hosts: 1, isBare: true, run: func(s *stage) {
		s.addCluster(nil)
		p := s.add("m", nil)
		p.untilIs(metalv1.HostClaimed, metav1.ConditionFalse, metalv1.ReasonWaitingForInfrastructure)
		if c := p.condition(metalv1.Ready); c.Reason != metalv1.ReasonWaitingForInfrastructure {
			s.Errorf("Ready says %s: %s", c.Reason, c.Message)
		}
		s.provisioned()
		p.untilClaimed()
	}},
	{name: "InfraMachine: without a Machine that owns it nothing is done", hosts: 1, run: func(s *stage) {
		alone := &infrav1.SlipwayMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "alone", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
		alone.Spec.OS.Profile = rig.DiskProfile
		s.create(alone)
		s.whole("m", nil) // comes after it, and has the only host
		s.get(alone)
		if len(alone.Finalizers) > 0 || alone.Spec.ClaimID != "" || len(alone.Status.Conditions) > 0 {
			s.Errorf("it was touched: %+v", alone)
		}
	}},
	{name: "InfraMachine: failure domain of the Machine is obeyed and the actual one published", hosts: 2, run: func(s *stage) {
		s.place(0, "rack-a")
		s.place(1, "rack-b")
		p := s.add("m", func(m *clusterv1.Machine, _ *infrav1.SlipwayMachine) { m.Spec.FailureDomain = s.ns + "-rack-b" })
		p.untilClaimed()
		if p.sm.Status.FailureDomain != s.ns+"-rack-b" || p.robot() != s.robots[1] {
			s.Errorf("it stands in %s on %s", p.sm.Status.FailureDomain, p.sm.Status.HostRef.Name)
		}
		q := s.add("n", func(m *clusterv1.Machine, _ *infrav1.SlipwayMachine) { m.Spec.FailureDomain = s.ns + "-rack-b" })
		q.untilIs(metalv1.HostClaimed, metav1.ConditionFalse, metalv1.ReasonNoMatchInFailureDomain)
		o := s.add("o", func(m *clusterv1.Machine, sm *infrav1.SlipwayMachine) {
			m.Spec.FailureDomain, sm.Spec.Placement.FailureDomainPolicy = s.ns+"-rack-b", metalv1.FailureDomainPreferred
		})
		o.untilClaimed()
		if o.sm.Status.FailureDomain != s.ns+"-rack-a" {
			s.Errorf("a preferred domain: it stands in %s", o.sm.Status.FailureDomain)
		}
	}},
	{name: "InfraMachine: no free host is no failure, and the first that comes is taken", hosts: 0, run: func(s *stage) {
		p := s.add("m", nil)
		p.untilIs(metalv1.HostClaimed, metav1.ConditionFalse, metalv1.ReasonNoMatchingHost)
		if p.condition(metalv1.Stalled).Status == metav1.ConditionTrue {
			s.Error("it counts as failed")
		}
		s.robots = s.r.AddHosts(1, map[string]string{"for": s.ns})
		p.untilClaimed()
	}},
	{name: "InfraMachine: two Machines never have one host", hosts: 1, run: func(s *stage) {
		a, b := s.add("a", nil), s.add("b", nil)
		a.bootstrap(nil)
		b.bootstrap(nil)
		s.until("one of them is provisioned", func() error {
			a.read()
			b.read()
			return is(isTrue(a.sm.Status.Initialization.Provisioned) || isTrue(b.sm.Status.Initialization.Provisioned), "none is")
		})
		won, lost := a, b
		if isTrue(b.sm.Status.Initialization.Provisioned) {
			won, lost = b, a
		}
		lost.untilIs(metalv1.HostClaimed, metav1.ConditionFalse, metalv1.ReasonInsufficientResources)
		if lost.sm.Spec.ClaimID != "" || lost.sm.Spec.ProviderID != "" {
			s.Errorf("the loser has claim %s", lost.sm.Spec.ClaimID)
		}
		won.remove()
		won.untilGone()
		lost.untilProvisioned()
	}},
	{name: "InfraMachine: provisioned never flips back, Ready says what is wrong", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		v, _ := p.view()
		p.robot().Hold(rig.Write)
		if _, err := s.r.Appliance().Reinstall(ctx, v.Machine.Name); err != nil {
			s.Fatal(err)
		}
		was := p.sm.Spec.ProviderID
		s.until("a new claim is in its spec", func() error {
			p.read()
			return is(p.sm.Spec.ProviderID != was && strings.HasSuffix(p.sm.Spec.ProviderID, p.sm.Spec.ClaimID), "it has %s", p.sm.Spec.ProviderID)
		})
		p.untilIs(metalv1.Ready, metav1.ConditionFalse, "")
		if !isTrue(p.sm.Status.Initialization.Provisioned) || !isTrue(p.sm.Status.Ready) {
			s.Error("provisioned flipped back")
		}
		p.robot().Go(rig.Write)
		p.untilIs(metalv1.Ready, metav1.ConditionTrue, "")
	}},
	{name: "InfraMachine: a specification that cannot work is said before anything is done", hosts: 1, run: func(s *stage) {
		p := s.add("m", func(_ *clusterv1.Machine, sm *infrav1.SlipwayMachine) { sm.Spec.OS.Profile = "nowhere" })
		p.untilIs(metalv1.Stalled, metav1.ConditionTrue, string(metalv1.FailureInvalidConfiguration))
		if c := p.condition(metalv1.Ready); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "nowhere") {
			s.Errorf("Ready says %s: %s", c.Reason, c.Message)
		}
		if p.sm.Spec.ClaimID != "" {
			s.Error("it has a host")
		}
		s.r.Write(s.T, func(tx inventory.Tx) error {
			return tx.Profiles().Create(&inventory.Profile{Name: "p-" + s.ns, Image: "debian-disk"}, time.Now())
		})
		s.edit(p.sm, func() { p.sm.Spec.OS.Profile = "p-" + s.ns }, false)
		p.untilClaimed()
	}},
	{name: "InfraMachine: nothing is written while nothing changes", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		p.untilIs(metalv1.Ready, metav1.ConditionTrue, "")
		version := p.settle()
		s.edit(s.cluster, func() { s.cluster.Status.Initialization.ControlPlaneInitialized = ptr(true) }, true)
		s.edit(p.m, func() { p.m.Labels["x"] = "y" }, false)
		if now := p.settle(); now != version {
			s.Errorf("it was written again: %+v", p.sm.ManagedFields)
		}
	}},
	{name: "InfraMachine: no object and no event holds a piece of the bootstrap data", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		p.settle()
		var events corev1.EventList
		if err := s.c.List(ctx, &events, client.InNamespace(s.ns)); err != nil {
			s.Fatal(err)
		}
		if len(events.Items) == 0 {
			s.Error("no event was written: nothing was looked at")
		}
		for _, o := range []any{p.sm, s.infra, events.Items} {
			text, err := json.Marshal(o)
			if err != nil {
				s.Fatal(err)
			}
			if strings.Contains(string(text), "canary-of-the-contract") {
				s.Errorf("%T holds the secret: %s", o, text)
			}
		}
		if strings.Contains(s.r.History(5000), "canary-of-the-contract") {
			s.Error("an event of the appliance holds the secret")
		}
	}},
	{name: "InfraMachine: reuse PreferSame gives the successor of a set the same host", hosts: 3, run: func(s *stage) {
		set := func(m *clusterv1.Machine, sm *infrav1.SlipwayMachine) {
			m.Labels = map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md"}
			sm.Annotations = map[string]string{clusterv1.TemplateClonedFromNameAnnotation: m.Name + "-template"}
			sm.Spec.Placement.Reuse = metalv1.ReusePrefer
		}
		p := s.whole("old", set)
		host := p.sm.Status.HostRef.Name
		p.remove()
		p.untilGone()
		s.untilFree(s.r.Robot(host)) // held for its set from now on; while it is wiped another one would be taken
		q := s.add("new", set)
		q.untilClaimed()
		if q.sm.Status.HostRef.Name != host {
			s.Errorf("it has %s, its predecessor had %s", q.sm.Status.HostRef.Name, host)
		}
		if q.sm.Spec.ClaimID == p.sm.Spec.ClaimID {
			s.Error("it has the old claim")
		}
	}},
	{name: "tenancy: a pool that is closed to the namespace is not used", hosts: 1, run: func(s *stage) {
		s.r.Write(s.T, func(tx inventory.Tx) error {
			return tx.Pools().Create(&inventory.Pool{Name: "closed-" + s.ns, Selector: "for=" + s.ns, AllowedNamespaces: "team=other-" + s.ns}, time.Now())
		})
		p := s.add("m", nil)
		p.untilIs(metalv1.HostClaimed, metav1.ConditionFalse, "")
		q := s.add("n", func(_ *clusterv1.Machine, sm *infrav1.SlipwayMachine) { sm.Spec.Placement.Pool = "closed-" + s.ns })
		q.untilIs(metalv1.Stalled, metav1.ConditionTrue, string(metalv1.FailureInvalidConfiguration))
		p.until("it says why", func() error {
			c := p.condition(metalv1.HostClaimed)
			return is(strings.Contains(c.Message, "may not"), "it says %q", c.Message)
		})
		if p.sm.Spec.ClaimID != "" {
			s.Error("it has a host of a closed pool")
		}
	}},
}

// place puts a host into a rack, named for the stage.
func (s *stage) place(i int, rack string) {
	s.Helper()
	s.r.Write(s.T, func(tx inventory.Tx) error {
		h, err := tx.FindHost(s.robots[i].ID())
		if err != nil {
			return err
		}
		h.Place = inventory.Place{Site: "here", Rack: s.ns + "-" + rack}
		return tx.UpdateHost(&h, time.Now())
	})
}
