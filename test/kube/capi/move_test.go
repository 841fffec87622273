package capi_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/clusterapi"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/manager"
	"slipway.dev/slipway/kubernetes/standalone"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/capi/stock"
	"slipway.dev/slipway/test/kube/cluster"
	"slipway.dev/slipway/test/kube/rig"
)

// second starts another management cluster with stock Cluster API, attached to the appliance of the first one. Only what
// goes by Client and clusterctl is about it: the inventory and the robots are the same.
func (s *stage) second() *stage {
	s.t.Helper()
	control := cluster.Start(s.t)
	cfg, err := clientcmd.RESTConfigFromKubeConfig(control.Admin())
	s.must(err)
	cfg.QPS = -1
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	s.must(manager.Install(ctx, cfg, []inventory.ClusterMode{inventory.ModeStandalone, inventory.ModeCAPI}, "v0.0.0-test"))
	other := &stage{t: s.t, Rig: s.Rig, memory: s.memory, config: s.config, others: []*stage{s}}
	other.Client, err = client.New(cfg, client.Options{Scheme: s.Client.Scheme()})
	s.must(err)
	other.grant(s)
	s.grant(other)
	other.stack = stock.Start(s.t, control)
	run, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- manager.Run(run, cfg, manager.Options{Appliance: s.Appliance(), Cluster: "second", Sets: []manager.Set{
			{Mode: inventory.ModeStandalone, AddToScheme: metalv1.AddToScheme, Setup: standalone.Setup},
			{Mode: inventory.ModeCAPI, AddToScheme: clusterapi.AddToScheme, Setup: clusterapi.Setup},
		}})
	}()
	s.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			s.t.Errorf("controllers of the second cluster: %v", err)
		}
	})
	s.others = append(s.others, other)
	return other
}

// grant lets a management cluster take over machines of another one, as slipway cluster access does.
func (s *stage) grant(from *stage) {
	s.t.Helper()
	access := inventory.ClusterAccess{UID: s.uid(), TakesFrom: []string{from.uid()}}
	s.must(s.Store.Write(s.t.Context(), func(tx inventory.Tx) error { return tx.SaveClusterAccess(&access, s.Now()) }))
}

// at is a workload cluster as another management cluster has it.
func (w *workload) at(s *stage) *workload {
	return &workload{stage: s, name: w.name, namespace: w.namespace}
}

// objects are all objects of Cluster API and its Secrets in the namespace of a workload cluster, by kind and name.
func (w *workload) objects() (all []string) {
	w.t.Helper()
	list := func(api, kind string) *unstructured.UnstructuredList {
		l := &unstructured.UnstructuredList{}
		l.SetAPIVersion(api)
		l.SetKind(kind + "List")
		return l
	}
	crds := list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
	w.must(w.Client.List(w.t.Context(), crds))
	lists := []*unstructured.UnstructuredList{list("v1", "Secret")}
	for _, crd := range crds.Items {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
		if scope != "Namespaced" || !strings.HasSuffix(group, "cluster.x-k8s.io") {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range versions {
			if v := v.(map[string]any); v["storage"] == true {
				lists = append(lists, list(group+"/"+v["name"].(string), kind))
			}
		}
	}
	found := map[types.UID]unstructured.Unstructured{}
	for _, l := range lists {
		w.must(w.Client.List(w.t.Context(), l, client.InNamespace(w.namespace)))
		for _, o := range l.Items {
			found[o.GetUID()] = o
		}
	}
	for _, o := range found {
		isOwned := func(ref metav1.OwnerReference) bool { _, is := found[ref.UID]; return is }
		if refs := o.GetOwnerReferences(); o.GetKind() == "Secret" && len(refs) > 0 && !slices.ContainsFunc(refs, isOwned) {
			continue // of a machine that is gone: no garbage collector runs here
		}
		all = append(all, o.GetKind()+"/"+o.GetName())
	}
	slices.Sort(all)
	return all
}

// counts are what was done to all hosts.
func (s *stage) counts(hosts int) map[string]rig.Counts {
	out := map[string]rig.Counts{}
	for i := range hosts {
		b := s.Machine(i)
		out[b.Name()] = b.Counts()
	}
	return out
}

// essence is what a move must not change of machines, by name.
func essence(all []machineView) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		out[m.name] = strings.Join([]string{m.claim, m.providerID, m.infraProviderID, m.host, m.node, m.domain, m.infraDomain, strings.Join(m.addresses, " ")}, ", ")
	}
	return out
}

// moveTo moves a workload cluster by clusterctl, and says what it is at its target, where everything has to be as it was.
func (w *workload) moveTo(target *stage, hosts int) *workload {
	w.t.Helper()
	before, were, counts := w.objects(), essence(w.machines()), w.counts(hosts)
	w.clusterctl("move", "--to-kubeconfig="+target.stack.Kubeconfig, "--namespace="+w.namespace)
	if left := w.objects(); len(left) > 0 {
		w.t.Errorf("what the move left behind: %s", strings.Join(left, ", "))
	}
	moved := w.at(target)
	moved.waitPaused(false)
	moved.wait("all machines run on the hosts that they had", func(all []machineView) error {
		for _, m := range all {
			if m.phase != "Running" {
				return fmt.Errorf("%s is %s", m.name, m.phase)
			}
		}
		if now := essence(all); !maps.Equal(now, were) {
			return fmt.Errorf("machines are\n%v\nand were\n%v", now, were)
		}
		return nil
	})
	moved.until("the cluster's infrastructure is provisioned", func() error {
		c := moved.cluster()
		if err := target.Client.Get(w.t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(c.Object, "status", "phase"); phase != "Provisioned" {
			return fmt.Errorf("it is %s", phase)
		}
		if done, _, _ := unstructured.NestedBool(c.Object, "status", "initialization", "infrastructureProvisioned"); !done {
			return errors.New("it is not")
		}
		return nil
	})
	target.waitReplicas(moved.controlPlane(), 1)
	target.waitReplicas(moved.workers(), 2)
	uid := target.uid()
	target.WaitFor(w.t, "the inventory knows whose machines they are", func() error {
		all, err := target.Appliance().ListMachines(w.t.Context(), "")
		if err != nil {
			return err
		}
		for _, v := range all {
			o, err := contract.ParseOwner(v.Machine.Owner)
			if err != nil {
				return err
			}
			if key := v.Machine.Placement.ReuseKey; o.ClusterUID != uid || !strings.HasPrefix(key, uid+"/") {
				return fmt.Errorf("machine %s is of %s, and who comes after it of %s", v.Machine.Name, v.Machine.Owner, key)
			}
		}
		if len(all) != len(were) {
			return fmt.Errorf("%d machines", len(all))
		}
		return nil
	})
	if after := moved.objects(); !slices.Equal(after, before) {
		w.t.Errorf("objects after the move\n%s\nand before\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	if now := w.counts(hosts); !maps.Equal(now, counts) {
		w.t.Errorf("hosts were touched: %v, before %v", now, counts)
	}
	return moved
}

// uid names a management cluster as owners of machines do.
func (s *stage) uid() string {
	s.t.Helper()
	ns := s.object("v1", "Namespace", "", "kube-system")
	s.must(s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(ns), ns))
	return string(ns.GetUID())
}

// TestAClusterMovesThereAndBack: clusterctl move takes a running cluster to another management cluster and back. No host
// notices, and each of them goes on working with it.
func TestAClusterMovesThereAndBack(t *testing.T) {
	long(t)
	const hosts = 5
	s := newStage(t, hosts)
	other := s.second()
	c := s.create("c5", 1, 2)
	s.waitReplicas(c.controlPlane(), 1)
	s.waitReplicas(c.workers(), 2)

	t.Log("there")
	there := c.moveTo(other, hosts)
	t.Log("the other one gives it another worker, and takes it away")
	other.scale(there.workers(), 3)
	other.waitReplicas(there.workers(), 3)
	other.scale(there.workers(), 2)
	other.waitReplicas(there.workers(), 2)
	there.wait("three machines are left", func(all []machineView) error {
		if len(all) != 3 {
			return fmt.Errorf("%d machines", len(all))
		}
		return nil
	})
	for i := range hosts {
		s.WaitFor(t, "who went is clean", func() error {
			var h inventory.Host
			s.Read(t, func(tx inventory.Tx) (err error) { h, err = tx.FindHost(s.Machine(i).ID()); return err })
			if h.ClaimID == "" && h.State != inventory.Available {
				return fmt.Errorf("%s is %s", h.Name, h.State)
			}
			return nil
		})
	}

	t.Log("and back")
	back := there.moveTo(s, hosts)
	t.Log("it ends")
	s.must(s.Client.Delete(t.Context(), back.cluster()))
	back.waitGone()
	s.WaitFor(t, "nothing of it is left in the inventory", func() error {
		all, err := s.Appliance().ListMachines(t.Context(), "")
		if err == nil && len(all) > 0 {
			err = fmt.Errorf("%d machines are left, such as %s", len(all), all[0].Machine.Name)
		}
		return err
	})
}
