package metal_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/test/kube/rig"
)

// strip takes the finalizers off an object by hand, and waits until it is gone.
func (s *stage) strip(name string) {
	s.t.Helper()
	s.delete(name)
	s.WaitFor(s.t, "the finalizer is off", func() error {
		o := &v1alpha1.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
		return client.IgnoreNotFound(s.Client.Patch(context.Background(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	})
	s.gone(name)
}

// orphan takes an object away so that its finalizer never runs: paused, and then without it.
func (s *stage) orphan(name string) {
	s.t.Helper()
	s.change(name, annotate(v1alpha1.AnnotationPaused, "true"))
	s.is(name, v1alpha1.Paused, metav1.ConditionTrue, v1alpha1.ReasonPaused)
	s.strip(name)
}

func (s *stage) hasEvent(reason string) error {
	var events corev1.EventList
	if err := s.Client.List(context.Background(), &events, client.InNamespace(s.ns)); err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("no event %s among %d", reason, len(events.Items))
}

func init() {
	all["of two machines that want one host one waits, and says why"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("a")
		s.ready("a")
		s.machine("b")
		s.is("b", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonInsufficientResources)
		if n := s.robots[0].Counts(); n.Writes != 1 {
			t.Errorf("the host was written %d times", n.Writes)
		}
		s.delete("a")
		s.ready("b")
		s.gone("a")
	}
	all["two machines that name one host get it one after the other"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		pin := func(mm *v1alpha1.MetalMachine) { mm.Spec.Placement = &v1alpha1.Placement{HostName: s.robots[0].Name()} }
		s.machine("a", pin)
		s.settled("a")
		s.machine("b", pin)
		s.is("b", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonPinnedHostUnavailable, s.robots[0].Name())
		s.delete("b")
		s.gone("b")
		if h := s.host(s.robots[0].ID()); h.State != inventory.Active {
			t.Errorf("the other's host is %s", h.State)
		}
	}
	all["a profile that is not there is refused before anything is touched, and a better one is taken"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web", func(mm *v1alpha1.MetalMachine) { mm.Spec.OS.Profile = "nonsense" })
		mm := s.is("web", v1alpha1.Stalled, metav1.ConditionTrue, "InvalidConfiguration", "nonsense")
		if mm.Status.FailureReason != v1alpha1.FailureInvalidConfiguration || mm.Status.Phase != v1alpha1.PhaseFailed {
			t.Errorf("failure %s, phase %s", mm.Status.FailureReason, mm.Status.Phase)
		}
		if n := s.robots[0].Counts(); n.Boots != 0 {
			t.Errorf("the host booted: %+v", n)
		}
		s.change("web", func(mm *v1alpha1.MetalMachine) { mm.Spec.OS.Profile = rig.DiskProfile })
		if mm := s.ready("web"); mm.Status.FailureReason != "" {
			t.Errorf("it is still failed: %s", mm.Status.FailureReason)
		}
	}
	all["a pool that is made after the machine that names it is found"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web", func(mm *v1alpha1.MetalMachine) { mm.Spec.Placement = &v1alpha1.Placement{Pool: "late-" + s.ns} })
		s.is("web", v1alpha1.Stalled, metav1.ConditionTrue, "InvalidConfiguration", "late-"+s.ns)
		mp := &v1alpha1.MetalPool{ObjectMeta: metav1.ObjectMeta{Name: "late-" + s.ns}}
		if err := s.Client.Create(t.Context(), mp); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Client.Delete(context.Background(), mp) })
		s.is("web", v1alpha1.Stalled, metav1.ConditionFalse, v1alpha1.ReasonNotStalled)
		s.delete("web")
		s.gone("web")
	}
	for _, step := range []rig.Step{rig.Boot, rig.Write, rig.Up} {
		all["a machine that is deleted at "+string(step)+" frees its host"] = func(t *testing.T, r *rig.Rig) {
			s := newStage(t, r, 1)
			s.robots[0].Hold(step)
			s.machine("web")
			reached := map[rig.Step]v1alpha1.MachinePhase{
				rig.Boot: v1alpha1.PhaseProvisioning, rig.Write: v1alpha1.PhaseProvisioning, rig.Up: v1alpha1.PhaseBooting,
			}[step]
			s.WaitFor(t, "it is at "+string(step), func() error {
				mm := s.get("web")
				if step == rig.Up && mm.Status.Phase == v1alpha1.PhaseRunning { // it has its configuration with its disk
					return nil
				}
				if mm.Status.Phase != reached {
					return fmt.Errorf("it is %s", mm.Status.Phase)
				}
				return nil
			})
			s.delete("web")
			s.robots[0].Go(step)
			s.gone("web")
			s.hostIs(s.robots[0].ID(), inventory.Available)
		}
		all["a machine that is paused at "+string(step)+" says nothing but that until the pause ends"] = func(t *testing.T, r *rig.Rig) {
			s := newStage(t, r, 1)
			s.robots[0].Hold(step)
			s.machine("web")
			s.is("web", v1alpha1.HostClaimed, metav1.ConditionTrue, v1alpha1.ReasonClaimed)
			s.change("web", annotate(v1alpha1.AnnotationPaused, "true"))
			was := s.is("web", v1alpha1.Paused, metav1.ConditionTrue, v1alpha1.ReasonPaused)
			s.robots[0].Go(step)
			s.hostIs(s.robots[0].ID(), inventory.Active) // what runs runs on
			now := s.get("web")
			if now.ResourceVersion != was.ResourceVersion || now.Status.Phase != was.Status.Phase {
				t.Errorf("it was written to while it was paused: %s", conditions(now))
			}
			s.change("web", annotate(v1alpha1.AnnotationPaused, ""))
			s.ready("web")
			s.is("web", v1alpha1.Paused, metav1.ConditionFalse, v1alpha1.ReasonNotPaused)
		}
	}
	all["a machine that is deleted while it waits for a host is gone at once"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 0)
		s.machine("web")
		s.is("web", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonNoMatchingHost)
		s.delete("web")
		s.gone("web")
	}
	all["an object that is deleted while it gets its finalizer leaves no machine behind"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		var once sync.Once
		r.After(func(k rig.Call, q *http.Request) { // the API server does that to a deletion that has begun before
			if k.Verb == "patch" && strings.HasSuffix(q.URL.Path, "/"+s.ns+"/metalmachines/web") {
				once.Do(func() { s.strip("web") })
			}
		})
		t.Cleanup(func() { r.After(nil) })
		s.machine("web")
		s.WaitFor(t, "its machine came and went", func() error {
			if text := r.History(500); !strings.Contains(text, "machine/"+s.ns+"-web gone: ") {
				return errors.New("it did not")
			}
			return nil
		})
		s.gone("web")
		s.hostIs(s.robots[0].ID(), inventory.Available)
		if err := s.hasEvent("Orphaned"); err == nil {
			t.Error("somebody is told that it runs on")
		}
	}
	all["a machine that is paused without a host claims none until the pause ends"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 0)
		s.machine("web")
		s.is("web", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonNoMatchingHost)
		s.change("web", annotate(v1alpha1.CAPIPaused, "true"))
		s.is("web", v1alpha1.Paused, metav1.ConditionTrue, v1alpha1.ReasonPaused)
		s.robots = r.AddHosts(1, map[string]string{"stage": s.ns})
		other := s.machine("other")
		s.delete(other.Name) // the allocator has passed by: it may have had the host or not
		s.gone(other.Name)
		if v := s.view("web"); v.Claim != nil {
			t.Errorf("it claimed %s", v.Host.Name)
		}
		s.change("web", annotate(v1alpha1.CAPIPaused, ""))
		s.ready("web")
	}
	all["an object that is made again with its claim has the same status, and its host is not touched"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web")
		was := s.settled("web")
		s.orphan("web")
		s.WaitFor(t, "somebody is told", func() error { return s.hasEvent("Orphaned") })
		if h := s.host(s.robots[0].ID()); h.State != inventory.Active || h.ClaimID == "" {
			t.Fatalf("the host of an object without finalizer is %s, claim %q", h.State, h.ClaimID)
		}
		again := was.DeepCopy()
		again.ObjectMeta = metav1.ObjectMeta{Namespace: s.ns, Name: "web"}
		again.Status = v1alpha1.MetalMachineStatus{}
		s.Must(t, again)
		now := s.settled("web")
		if now.Spec.ClaimID != was.Spec.ClaimID || now.Spec.ProviderID != was.Spec.ProviderID || now.Status.HostRef.Name != was.Status.HostRef.Name ||
			now.Status.Phase != was.Status.Phase || now.Status.Initialization.Provisioned == nil || fmt.Sprint(now.Status.Addresses) != fmt.Sprint(was.Status.Addresses) {
			t.Errorf("was %+v\nis  %+v", was.Status, now.Status)
		}
		for _, c := range was.Status.Conditions {
			if n := apimeta.FindStatusCondition(now.Status.Conditions, c.Type); n == nil || n.Status != c.Status || n.Reason != c.Reason {
				t.Errorf("%s was %s/%s, is %+v", c.Type, c.Status, c.Reason, n)
			}
		}
		if n := s.robots[0].Counts(); n.Writes != 1 || n.Boots > 2 {
			t.Errorf("the host was touched: %+v", n)
		}
		s.delete("web")
		s.gone("web")
		s.hostIs(s.robots[0].ID(), inventory.Available)
	}
	all["an object of the same name without the claim gets a host of its own"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 2)
		s.machine("web")
		was := s.settled("web")
		s.orphan("web")
		s.machine("web")
		now := s.ready("web")
		if now.Spec.ClaimID == was.Spec.ClaimID || now.Status.HostRef.Name == was.Status.HostRef.Name {
			t.Errorf("it inherited host %s", now.Status.HostRef.Name)
		}
		if h := s.host(inventory.HostID(was.Status.HostRef.InventoryID)); h.State != inventory.Active {
			t.Errorf("the host of the first is %s", h.State)
		}
	}
	all["nobody takes a machine by its claim from an object that is there"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web")
		was := s.settled("web")
		thief := newStage(t, r, 0)
		steal := func(mm *v1alpha1.MetalMachine) {
			mm.Spec.ClaimID, mm.Spec.ProviderID = was.Spec.ClaimID, was.Spec.ProviderID
		}
		thief.machine("web", steal)
		thief.is("web", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonHostMissing, "of another namespace") // whose it is does not concern it
		s.machine("web2", steal)
		s.is("web2", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonHostMissing, "belongs to")
		for _, x := range []*stage{thief, s} {
			name := map[*stage]string{thief: "web", s: "web2"}[x]
			x.delete(name)
			x.gone(name)
		}
		if h := s.host(s.robots[0].ID()); h.State != inventory.Active || string(h.ClaimID) != was.Spec.ClaimID {
			t.Errorf("the host is %s", h.State)
		}
		s.ready("web")
	}
	all["an object whose machine was deleted in Slipway says so, and installs nothing again"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web")
		s.ready("web")
		if _, err := r.Engine().DeleteMachine(context.Background(), s.view("web").Machine.Name, false, ledger.By("a person")); err != nil {
			t.Fatal(err)
		}
		s.is("web", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonHostMissing, "was deleted in Slipway")
		s.hostIs(s.robots[0].ID(), inventory.Available)
		if n := s.robots[0].Counts(); n.Writes != 1 {
			t.Errorf("the host was installed again: %+v", n)
		}
		s.delete("web")
		s.gone("web")
	}
	all["a pool is for the namespaces that it allows, whichever way its hosts are asked for"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1, "team", "red")
		pool := &v1alpha1.MetalPool{ObjectMeta: metav1.ObjectMeta{Name: "pool-" + s.ns}}
		pool.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": s.ns}}
		pool.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
		s.Must(t, pool)
		t.Cleanup(func() { _ = r.Client.Delete(context.Background(), pool) })
		s.WaitFor(t, "the pool is in the inventory", func() error {
			_, err := r.Appliance().CountPool(context.Background(), pool.Name)
			return err
		})
		other := newStage(t, r, 0, "team", "blue")
		byPool := func(mm *v1alpha1.MetalMachine) { mm.Spec.Placement = &v1alpha1.Placement{Pool: pool.Name} }
		byLabel := func(mm *v1alpha1.MetalMachine) { mm.Spec.Placement.Selector.MatchLabels["stage"] = s.ns }
		byName := func(mm *v1alpha1.MetalMachine) {
			mm.Spec.Placement = &v1alpha1.Placement{HostName: s.robots[0].Name()}
		}
		other.machine("by-pool", byPool)
		other.is("by-pool", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonInsufficientResources, "is not for namespace "+other.ns)
		other.machine("by-label", byLabel)
		other.is("by-label", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonNoMatchingHost, "pool")
		other.machine("by-name", byName)
		other.is("by-name", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonPinnedHostUnavailable)
		if n := s.robots[0].Counts(); n.Boots != 0 {
			t.Errorf("the host booted: %+v", n)
		}
		s.machine("ours", byPool)
		s.ready("ours")
		s.delete("ours")
		s.gone("ours")
		s.hostIs(s.robots[0].ID(), inventory.Available)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.ns}}
		if err := r.Client.Patch(context.Background(), ns, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"red"}}}`))); err != nil {
			t.Fatal(err)
		}
		other.WaitFor(t, "one of the others has the host now", func() error {
			for _, name := range []string{"by-pool", "by-label", "by-name"} {
				if apimeta.IsStatusConditionTrue(other.get(name).Status.Conditions, v1alpha1.HostClaimed) {
					return nil
				}
			}
			return fmt.Errorf("by-pool: %s", conditions(other.get("by-pool")))
		})
	}
	all["a protected host keeps its machine, and says so"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web")
		s.settled("web")
		if err := r.Appliance().Protect(context.Background(), s.robots[0].ID(), true); err != nil {
			t.Fatal(err)
		}
		s.delete("web")
		s.is("web", v1alpha1.Stalled, metav1.ConditionTrue, "DeleteError", "protected")
		if h := s.host(s.robots[0].ID()); h.State != inventory.Active {
			t.Errorf("the host is %s", h.State)
		}
		s.change("web", annotate(v1alpha1.AnnotationForceDelete, ""))
		s.change("web", func(mm *v1alpha1.MetalMachine) { annotate(v1alpha1.AnnotationForceDelete, "true")(mm) })
		s.gone("web")
		s.hostIs(s.robots[0].ID(), inventory.Failed)
		if n := s.robots[0].Counts(); n.Wipes != 0 {
			t.Errorf("it was wiped: %+v", n)
		}
	}
	all["hooks hold the steps they name until their annotation goes"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		boot, clean := v1alpha1.HookAnnotation("pre-boot", "dns"), v1alpha1.HookAnnotation("pre-clean", "storage")
		s.machine("web", annotate(boot, ""), func(mm *v1alpha1.MetalMachine) {
			mm.Annotations = map[string]string{boot: "x", clean: "x"}
		})
		s.is("web", v1alpha1.OSInstalled, metav1.ConditionFalse, v1alpha1.ReasonWaitingForHook, "dns")
		if s.robots[0].IsOn() {
			t.Error("it was switched on before the hook")
		}
		s.change("web", annotate(boot, ""))
		s.ready("web")
		s.delete("web")
		s.WaitFor(t, "the hook blocks the wipe", func() error {
			d := s.get("web").Status.Deletion
			if d == nil || len(d.BlockedBy) != 1 || d.BlockedBy[0] != clean || d.FencedAt == nil {
				return fmt.Errorf("deletion is %+v", d)
			}
			return nil
		})
		s.change("web", annotate(clean, ""))
		s.gone("web")
		s.hostIs(s.robots[0].ID(), inventory.Available)
	}
	all["releaseAfter Cleaned keeps the object until the host is wiped, and clean None leaves the disks"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 2)
		s.robots[0].Hold(rig.Wipe)
		s.robots[1].Hold(rig.Wipe)
		s.machine("slow", func(mm *v1alpha1.MetalMachine) { mm.Spec.Deletion.ReleaseAfter = v1alpha1.ReleaseCleaned })
		s.machine("kept", func(mm *v1alpha1.MetalMachine) { mm.Spec.Deletion.Clean = v1alpha1.CleanNone })
		s.ready("slow")
		kept := s.robotOf(s.ready("kept").Name)
		slow := s.robotOf("slow")
		s.delete("slow")
		s.delete("kept")
		s.gone("kept")
		s.hostIs(slow.ID(), inventory.Cleaning)
		s.WaitFor(t, "it is told since when it is fenced", func() error {
			if d := s.get("slow").Status.Deletion; d == nil || d.FencedAt == nil {
				return fmt.Errorf("deletion is %+v", d)
			}
			return nil
		})
		slow.Go(rig.Wipe)
		s.gone("slow")
		if kept.Counts().Wipes != 0 || slow.Counts().Wipes != 1 {
			t.Errorf("wipes: %d and %d", kept.Counts().Wipes, slow.Counts().Wipes)
		}
	}
}
