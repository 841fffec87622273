package metal_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

// readyWithin waits for Ready, and does something now and then meanwhile.
func (s *stage) readyWithin(name string, do func()) *v1alpha1.MetalMachine {
	s.t.Helper()
	var mm *v1alpha1.MetalMachine
	last := time.Now()
	s.WaitFor(s.t, name+" is ready", func() error {
		if time.Since(last) > time.Second {
			do()
			last = time.Now()
		}
		mm = s.get(name)
		for _, c := range mm.Status.Conditions {
			if c.Type == v1alpha1.Ready && c.Status == metav1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions are %s", conditions(mm))
	})
	return mm
}

// anew waits until a machine has another claim than before, and is ready with it.
func (s *stage) anew(name, claim string) *v1alpha1.MetalMachine {
	s.t.Helper()
	s.WaitFor(s.t, name+" has a new claim", func() error {
		if mm := s.get(name); mm.Spec.ClaimID == claim {
			return fmt.Errorf("claim is %s still: %s", claim, conditions(mm))
		}
		return nil
	})
	return s.ready(name)
}

func init() {
	all["OnDelete leaves an installed system as it is, and says what it lacks"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web")
		was := s.ready("web")
		s.change("web", func(mm *v1alpha1.MetalMachine) { mm.Spec.OS.Version = rig.OtherImage })
		s.is("web", v1alpha1.UpToDate, metav1.ConditionFalse, v1alpha1.ReasonSpecChanged, "os.version")
		if now := s.ready("web"); now.Spec.ClaimID != was.Spec.ClaimID || s.robots[0].Counts().Writes != 1 {
			t.Errorf("it was installed anew: %+v", s.robots[0].Counts())
		}
		s.change("web", func(mm *v1alpha1.MetalMachine) { mm.Spec.OS.Version = "" })
		s.is("web", v1alpha1.UpToDate, metav1.ConditionTrue, v1alpha1.ReasonUpToDate)
	}
	all["Reprovision installs the same host anew, with a new claim and provider id, once"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 2)
		s.machine("web", func(mm *v1alpha1.MetalMachine) { mm.Spec.UpdatePolicy = v1alpha1.UpdateReprovision })
		was := s.ready("web")
		s.change("web", func(mm *v1alpha1.MetalMachine) { mm.Spec.OS.Version = rig.OtherImage })
		now := s.anew("web", was.Spec.ClaimID)
		if now.Status.HostRef.Name != was.Status.HostRef.Name || now.Spec.ProviderID == was.Spec.ProviderID || s.view("web").Image != rig.OtherImage {
			t.Errorf("host %s, provider id %s, image %s", now.Status.HostRef.Name, now.Spec.ProviderID, s.view("web").Image)
		}
		s.is("web", v1alpha1.UpToDate, metav1.ConditionTrue, v1alpha1.ReasonUpToDate)
		if n := s.robotOf("web").Counts(); n.Writes != 2 {
			t.Errorf("it was written %d times", n.Writes)
		}
	}
	all["the annotations reprovision-at and reboot-at are carried out once each"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web", annotate(v1alpha1.AnnotationReprovisionAt, "2020-01-01T00:00:00Z"))
		was := s.ready("web")
		if n := s.robots[0].Counts(); n.Writes != 1 {
			t.Errorf("what was asked for before the machine was there happened to it: %+v", n)
		}
		s.change("web", annotate(v1alpha1.AnnotationReprovisionAt, "2021-01-01T00:00:00Z"))
		now := s.anew("web", was.Spec.ClaimID)
		offs := s.robots[0].Counts().Offs
		s.change("web", annotate(v1alpha1.AnnotationRebootAt, "2021-01-01T00:00:00Z"))
		s.WaitFor(t, "it is rebooted", func() error {
			if n := s.robots[0].Counts(); n.Offs == offs {
				return fmt.Errorf("%+v", n)
			}
			return nil
		})
		s.hostIs(s.robots[0].ID(), inventory.Active)
		s.change("web", annotate("example.com/look", "again"))
		s.WaitFor(t, "nothing is under way", func() error {
			if op := s.view("web").Operation; op != nil {
				return fmt.Errorf("%s at %s", op.Kind, op.Step)
			}
			return nil
		})
		if n := s.robots[0].Counts(); n.Writes != 2 || n.Offs != offs+1 {
			t.Errorf("it was written %d times and switched off %d times, before the reboot %d", n.Writes, n.Offs, offs)
		}
		if again := s.get("web"); again.Spec.ClaimID != now.Spec.ClaimID {
			t.Error("it has a third claim")
		}
	}
	all["what cannot be changed any more is refused, and the machine runs on"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web")
		s.ready("web")
		s.change("web", func(mm *v1alpha1.MetalMachine) { mm.Spec.Hostname = "other" })
		mm := s.is("web", v1alpha1.Stalled, metav1.ConditionTrue, "UnsupportedChange", "spec.hostname")
		if mm.Status.Phase != v1alpha1.PhaseRunning {
			t.Errorf("phase %s", mm.Status.Phase)
		}
		s.change("web", func(mm *v1alpha1.MetalMachine) {
			mm.Spec.Hostname, mm.Spec.OS.Version = "", rig.OtherImage
		})
		s.is("web", v1alpha1.UpToDate, metav1.ConditionFalse, v1alpha1.ReasonSpecChanged, "os.version")
		s.change("web", func(mm *v1alpha1.MetalMachine) { mm.Spec.OS.Version = "" })
		s.is("web", v1alpha1.Stalled, metav1.ConditionFalse, v1alpha1.ReasonNotStalled)
		if n := s.robots[0].Counts(); n.Writes != 1 {
			t.Errorf("it was installed anew: %+v", n)
		}
	}
}
