// Package capi_test owns the tests of Slipway under stock Cluster API: its core and kubeadm providers as others ship
// them, with a workload cluster that is kept in memory. Machines boot by robots through our own doors.
package capi_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/test/kube/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// TestAClusterLivesAndDies is what a user of Cluster API does: three control planes and two workers from our template,
// more workers, fewer workers, and the end of it all.
func TestAClusterLivesAndDies(t *testing.T) {
	s := newStage(t, 12) // three in each rack: both workers may take one where Cluster API then wants a control plane
	c := s.create("c1", 3, 2)

	t.Log("the cluster comes up")
	s.waitReplicas(c.controlPlane(), 3)
	s.waitReplicas(c.workers(), 2)
	machines := c.wait("five machines run on nodes of their own", func(all []machineView) error {
		if len(all) != 5 {
			return fmt.Errorf("%d machines", len(all))
		}
		for _, m := range all {
			if m.phase != "Running" || m.node == "" {
				return fmt.Errorf("%s is %s on node %q", m.name, m.phase, m.node)
			}
		}
		return nil
	})
	domains, hosts := map[string]bool{}, map[string]bool{}
	for _, m := range machines {
		hosts[m.host] = true
		if m.isControlPlane {
			domains[m.domain] = true
		}
		if m.providerID == "" || m.providerID != m.infraProviderID || m.providerID != c.node(m.node).Spec.ProviderID {
			t.Errorf("%s: provider ids %q of the Machine, %q of the SlipwayMachine, %q of the Node", m.name, m.providerID, m.infraProviderID, c.node(m.node).Spec.ProviderID)
		}
		if m.domain != m.infraDomain {
			t.Errorf("%s: Cluster API says failure domain %q, we say %q", m.name, m.domain, m.infraDomain)
		}
		if len(m.addresses) == 0 {
			t.Errorf("%s has no address", m.name)
		}
	}
	if len(hosts) != 5 {
		t.Errorf("five machines run on the hosts %v", slices.Sorted(maps.Keys(hosts)))
	}
	if len(domains) != 3 {
		t.Errorf("three control planes stand in the failure domains %v", slices.Sorted(maps.Keys(domains)))
	}
	if out := s.clusterctl("describe", "cluster", c.name, "-n", c.namespace, "--echo", "--grouping=false"); !contains(out, "SlipwayCluster/"+c.name, "SlipwayMachine/") &&
		!contains(out, "SlipwayCluster "+c.namespace+"/"+c.name, "SlipwayMachine "+c.namespace+"/") {
		t.Errorf("clusterctl describe shows\n%s", out)
	}
	if out := s.clusterctl("generate", "provider", "--infrastructure=slipway:v0.1.0", "--describe"); !contains(out, "Name:               slipway", "InfrastructureProvider", "SLIPWAY_URL", "SLIPWAY_TOKEN") {
		t.Errorf("clusterctl generate provider shows\n%s", out)
	}

	t.Log("it grows")
	s.scale(c.workers(), 3)
	s.waitReplicas(c.workers(), 3)

	t.Log("a worker of our choice goes")
	var victim machineView
	for _, m := range c.machines() {
		if !m.isControlPlane {
			victim = m
		}
	}
	o := s.object("cluster.x-k8s.io/v1beta2", "Machine", c.namespace, victim.name)
	s.patch(o, `{"metadata":{"annotations":{"cluster.x-k8s.io/delete-machine":"yes"}}}`)
	s.scale(c.workers(), 2)
	c.wait(victim.name+" is gone", func(all []machineView) error {
		if slices.ContainsFunc(all, func(m machineView) bool { return m.name == victim.name }) || len(all) != 5 {
			return fmt.Errorf("%d machines are left", len(all))
		}
		return nil
	})
	s.waitFree(victim.host)
	if c.node(victim.node) != nil {
		t.Errorf("node %s of the machine that went is left", victim.node)
	}

	t.Log("it pauses")
	s.patch(c.cluster(), `{"spec":{"paused":true}}`)
	c.waitPaused(true)
	s.patch(c.cluster(), `{"spec":{"paused":false}}`)
	c.waitPaused(false)

	t.Log("it ends")
	s.must(s.Client.Delete(t.Context(), c.cluster()))
	c.waitGone()
	for host := range hosts {
		s.waitFree(host)
	}
	s.Read(t, func(tx inventory.Tx) error {
		all, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
		if err == nil && len(all) > 0 {
			t.Errorf("%d machines are left in the inventory", len(all))
		}
		return err
	})
}

// waitFree waits until a host is wiped and can be had again.
func (s *stage) waitFree(host string) {
	s.t.Helper()
	b := s.Robot(host)
	s.WaitFor(s.t, host+" is wiped and free", func() error {
		if n := b.Counts().Wipes; n == 0 {
			return fmt.Errorf("it was never wiped")
		}
		var state inventory.State
		s.Read(s.t, func(tx inventory.Tx) error {
			h, err := tx.FindHost(b.ID())
			if err == nil {
				state = h.State
			}
			return err
		})
		if state != inventory.Available {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
}
