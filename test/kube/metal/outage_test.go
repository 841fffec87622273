package metal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/standalone"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

// steps are where machines stand when something else breaks.
var steps = []rig.Step{rig.Boot, rig.Write, rig.Up}

// stand brings one machine to each step, and one to waiting for a host.
func (s *stage) stand() {
	s.t.Helper()
	for i, step := range steps {
		s.robots[i].Hold(step)
		s.machine(string(step), func(mm *v1alpha1.MetalMachine) {
			mm.Spec.Placement = &v1alpha1.Placement{HostName: s.robots[i].Name()}
		})
	}
	s.machine("waits", func(mm *v1alpha1.MetalMachine) { mm.Spec.Placement.Selector.MatchLabels["stage"] = "nowhere" })
	for _, step := range steps {
		s.is(string(step), v1alpha1.HostClaimed, metav1.ConditionTrue, v1alpha1.ReasonClaimed)
	}
	s.is("waits", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonNoMatchingHost)
}

// arrive lets them all go on, and looks whether each was installed once, on the claim that it had.
func (s *stage) arrive(claims map[string]string) {
	s.t.Helper()
	for i, step := range steps {
		s.robots[i].Go(step)
	}
	for i, step := range steps {
		mm := s.ready(string(step))
		if n := s.robots[i].Counts(); n.Writes != 1 || mm.Spec.ClaimID != claims[string(step)] {
			s.t.Errorf("at %s: written %d times, claim %s, before %s", step, n.Writes, mm.Spec.ClaimID, claims[string(step)])
		}
	}
	s.is("waits", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonNoMatchingHost)
}

func (s *stage) claims() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for _, step := range steps {
		s.WaitFor(s.t, "the claim is in the spec", func() error {
			if all[string(step)] = s.get(string(step)).Spec.ClaimID; all[string(step)] == "" {
				return fmt.Errorf("%s has none", step)
			}
			return nil
		})
	}
	return all
}

func TestOutages(t *testing.T) {
	r := rig.New(t, rig.Options{Setup: []rig.Setup{standalone.Setup}, Nodes: drains})

	t.Run("an appliance that is killed at any step goes on where it was", func(t *testing.T) {
		s := newStage(t, r, 3)
		s.stand()
		was := s.claims()
		r.Restart()
		s.arrive(was)
		s.machine("later")
		r.Restart()
		s.delete(string(rig.Boot))
		r.Restart()
		s.gone(string(rig.Boot))
		mm := s.ready("later") // which waited for the only host that comes free
		if n := s.robots[0].Counts(); mm.Status.HostRef.Name != s.robots[0].Name() || n.Wipes != 1 || n.Writes != 2 {
			t.Errorf("it has host %s; done to the one that came free: %+v", mm.Status.HostRef.Name, n)
		}
		s.delete("later")
		s.gone("later")
		s.hostIs(s.robots[0].ID(), inventory.Available)
	})

	t.Run("an installation ends while the API server is away, and its result shows when that is back", func(t *testing.T) {
		s := newStage(t, r, 3)
		s.stand()
		was := s.claims()
		r.StopAPI()
		for i, step := range steps {
			s.robots[i].Go(step)
		}
		for i := range steps {
			s.hostIs(s.robots[i].ID(), inventory.Active)
		}
		r.StartAPI()
		s.arrive(was)
	})

	t.Run("objects that change and go while nobody looks are seen afterwards", func(t *testing.T) {
		s := newStage(t, r, 3)
		s.machine("kept")
		s.machine("deleted")
		s.machine("stripped")
		for _, name := range []string{"kept", "deleted", "stripped"} {
			s.settled(name)
		}
		stripped := s.robotOf("stripped")
		r.StopControllers()
		s.delete("deleted")
		s.strip("stripped")
		s.change("kept", func(mm *v1alpha1.MetalMachine) { mm.Spec.OS.Version = rig.OtherImage })
		r.StartControllers()
		s.gone("deleted")
		s.is("kept", v1alpha1.UpToDate, metav1.ConditionFalse, v1alpha1.ReasonSpecChanged)
		s.WaitFor(t, "somebody is told of the machine without an object", func() error { return s.hasEvent("Orphaned") })
		if h := s.host(stripped.ID()); h.State != inventory.Active {
			t.Errorf("the host of an object without finalizer is %s", h.State)
		}
	})

	t.Run("a host that cannot be written is put aside, and the machine takes another", func(t *testing.T) {
		s := newStage(t, r, 1)
		bad := s.robots[0]
		bad.Fail(rig.Write, 10, "disk is broken")
		s.machine("web")
		s.is("web", v1alpha1.OSInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallFailed, "disk is broken")
		first := s.get("web").Spec.ClaimID
		s.AddHosts(1, map[string]string{"stage": s.ns})
		mm := s.readyWithin("web", func() { r.Skip(2 * time.Minute) })
		if mm.Spec.ClaimID == first || mm.Status.HostRef.Name == bad.Name() || mm.Status.Attempts != 1 {
			t.Errorf("claim %s then %s on %s, %d attempts", first, mm.Spec.ClaimID, mm.Status.HostRef.Name, mm.Status.Attempts)
		}
		s.hostIs(bad.ID(), inventory.Failed)
		if !strings.HasSuffix(mm.Spec.ProviderID, mm.Spec.ClaimID) {
			t.Errorf("provider id %s of claim %s", mm.Spec.ProviderID, mm.Spec.ClaimID)
		}
	})

	t.Run("nothing is written while nothing happens, and a machine's life costs few calls", func(t *testing.T) {
		s := newStage(t, r, 5)
		r.Idle(t, 2*time.Second)
		before := r.Calls()
		for i := range 5 {
			s.machine(fmt.Sprintf("m%d", i))
		}
		for i := range 5 {
			s.ready(fmt.Sprintf("m%d", i))
		}
		for i := range 5 {
			s.delete(fmt.Sprintf("m%d", i))
		}
		for i := range 5 {
			s.gone(fmt.Sprintf("m%d", i))
		}
		r.Idle(t, 2*time.Second)
		calls := r.Calls().Sub(before)
		t.Logf("calls for five lives: %s", calls)
		if n := calls.Sum(); n > 5*maxCalls {
			t.Errorf("five lives cost %d calls, more than %d each: %s", n, maxCalls, calls)
		}
	})
}

// maxCalls bounds what one machine's life costs in calls of the API server, its host's object included; docs/metalmachines.md
// says what they are.
const maxCalls = 60
