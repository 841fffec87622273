package contract

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/clusterapi"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/manager"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/cluster"
	"slipway.dev/slipway/test/kube/rig"
)

// second attaches another cluster to the appliance of a rig.
func second(t *testing.T, r *rig.Rig) client.Client {
	t.Helper()
	other := cluster.Start(t)
	cfg, err := clientcmd.RESTConfigFromKubeConfig(other.Admin())
	if err != nil {
		t.Fatal(err)
	}
	modes := []inventory.ClusterMode{inventory.ModeStandalone, inventory.ModeCAPI}
	within, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := manager.Install(within, cfg, modes, "v0.0.0-test"); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: r.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	installCore(t, r, c)
	run, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- manager.Run(run, cfg, manager.Options{
			Appliance: r.Appliance(), Cluster: "second",
			Sets: []manager.Set{{Mode: inventory.ModeCAPI, AddToScheme: clusterapi.AddToScheme, Setup: clusterapi.Setup}},
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("controllers of the second cluster: %v", err)
		}
	})
	return c
}

// grant lets the cluster of a stage take over machines of others, as slipway cluster access does.
func (s *stage) grant(from ...string) {
	s.Helper()
	access := inventory.ClusterAccess{UID: s.clusterUID(), TakesFrom: from}
	if err := s.r.Store.Write(ctx, func(tx inventory.Tx) error { return tx.SaveClusterAccess(&access, s.r.Now()) }); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) clusterUID() string {
	s.Helper()
	kubeSystem := &corev1.Namespace{}
	if err := s.c.Get(ctx, client.ObjectKey{Name: "kube-system"}, kubeSystem); err != nil {
		s.Fatal(err)
	}
	return string(kubeSystem.UID)
}

// copied makes an object of another cluster again, as clusterctl move does: with its spec, without its status.
func copied[T client.Object](s *stage, o T, owner *metav1.OwnerReference) T {
	s.Helper()
	o = o.DeepCopyObject().(T)
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	o.SetOwnerReferences(nil)
	if owner != nil {
		o.SetOwnerReferences([]metav1.OwnerReference{*owner})
	}
	s.create(o)
	return o
}

func TestMachinesMoveBetweenAttachedClustersUntouched(t *testing.T) {
	r := newRig(t)
	a := newStage(t, r, 2)
	running, waiting := a.whole("running", nil), a.add("waiting", nil)
	waiting.untilClaimed()
	a.pause(true)
	running.untilIs(metalv1.Paused, metav1.ConditionTrue, "")
	waiting.untilIs(metalv1.Paused, metav1.ConditionTrue, "")
	counts, site := running.robot().Counts(), waiting.robot().Counts()

	b := &stage{T: t, r: r, c: second(t, r), ns: a.ns, robots: a.robots}
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.ns}})
	b.cluster = copied(b, a.cluster, nil)
	a.get(a.infra)
	ref := b.ownerRef("Cluster", b.cluster)
	b.infra = copied(b, a.infra, &ref)
	there := func(p *pair) *pair {
		q := &pair{stage: b, m: copied(b, p.m, nil)}
		ref := b.ownerRef("Machine", q.m)
		p.read()
		q.sm = copied(b, p.sm, &ref)
		return q
	}
	running2, waiting2 := there(running), there(waiting)
	running2.untilIs(metalv1.Paused, metav1.ConditionTrue, "")
	if len(running2.sm.Status.Conditions) != 1 {
		t.Errorf("more than Paused was written at the target: %+v", running2.sm.Status)
	}
	a.lift(running)
	a.lift(waiting)
	b.pause(false)
	b.provisioned()
	running2.untilIs(metalv1.Stalled, metav1.ConditionTrue, string(metalv1.FailureInvalidConfiguration)) // nobody granted it
	b.grant(a.clusterUID())
	running2.untilProvisioned()
	running2.untilIs(metalv1.Ready, metav1.ConditionTrue, "")
	if got := running2.robot().Counts(); got != counts {
		t.Errorf("a running host was touched: %+v, before %+v", got, counts)
	}
	waiting2.until("the waiting one has its host again", func() error {
		waiting2.read()
		return is(waiting2.sm.Status.HostRef != nil, "it has none: %+v", waiting2.sm.Status.Conditions)
	})
	if got := waiting2.robot().Counts(); got != site {
		t.Errorf("a waiting host was touched: %+v, before %+v", got, site)
	}
	waiting2.bootstrap(nil)
	waiting2.untilProvisioned()
	if waiting2.sm.Spec.ClaimID != waiting.sm.Spec.ClaimID || running2.sm.Spec.ProviderID != running.sm.Spec.ProviderID {
		t.Error("they have other claims")
	}
	// The target is the one that releases them.
	running2.remove()
	running2.untilGone()
	b.untilFree(r.Robot(running2.sm.Status.HostRef.Name))
}

func TestAnInstallationSurvivesTheAppliance(t *testing.T) {
	r := newRig(t)
	s := newStage(t, r, 2)
	s.robots[0].Hold(rig.Write)
	s.robots[1].Hold(rig.Write)
	p, q := s.add("m", nil), s.add("n", nil)
	p.bootstrap(nil)
	p.untilIs(metalv1.OSInstalled, metav1.ConditionFalse, metalv1.ReasonDownloading)
	q.untilClaimed()
	claim := p.sm.Spec.ClaimID
	r.Restart() // what was kept in memory is gone: the bootstrap data are asked for again
	s.robots[0].Go(rig.Write)
	s.robots[1].Go(rig.Write)
	p.untilProvisioned()
	if p.sm.Spec.ClaimID != claim {
		t.Errorf("its claim was %s and is %s", claim, p.sm.Spec.ClaimID)
	}
	r.StopAPI() // the cluster is away while the next host asks for its data
	r.StartAPI()
	q.bootstrap(nil)
	q.untilProvisioned()
}

func TestAWatchFilterNarrowsWhatIsLookedAt(t *testing.T) {
	r := newRig(t, func(o *rig.Options) { o.WatchFilter = "mine" })
	s := bareStage(t, r, 1)
	label := func(m map[string]string) map[string]string {
		return map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.WatchLabel: "mine"}
	}
	s.addCluster(func(c *infrav1.SlipwayCluster) { c.Labels = label(c.Labels) })
	s.infraIs("a labelled cluster is provisioned", s.infraProvisioned)
	s.provisioned()
	theirs := s.add("theirs", nil)
	mine := s.add("mine", func(_ *clusterMachine, sm *slipwayMachine) { sm.Labels = label(sm.Labels) })
	mine.untilClaimed()
	theirs.read()
	if len(theirs.sm.Finalizers) > 0 || len(theirs.sm.Status.Conditions) > 0 {
		t.Errorf("what has no label was touched: %+v", theirs.sm)
	}
}
