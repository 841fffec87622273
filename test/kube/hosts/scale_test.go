package hosts_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	v1alpha1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

// The most calls to the API server that the life of one MetalMachine may cost, from its creation until it is gone: its
// own, those for its host and its share of those for pools. docs/metalhosts.md says what they are.
const callsPerMachine = 40

func TestCallsOfManyMachinesAreBoundedAndNothingIsWrittenOnceTheyRun(t *testing.T) {
	const n = 40
	s := newSite(t, n)
	s.WaitFor(t, "all hosts are shown", func() error {
		var list v1alpha1.MetalHostList
		if err := s.Client.List(ctx, &list); err != nil {
			return err
		}
		shown := 0
		for i := range list.Items {
			if isTrue(&list.Items[i], v1alpha1.Ready) {
				shown++
			}
		}
		if shown != n {
			return fmt.Errorf("%d of %d", shown, n)
		}
		return nil
	})
	s.Idle(t, 2*time.Second)
	toShow := s.Calls()
	if got := toShow.Writes(); got > 3*n {
		t.Errorf("to show %d hosts took %d writes: %s", n, got, toShow)
	}
	ns := s.Namespace(t)
	for i := range n {
		s.Must(t, &v1alpha1.MetalMachine{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("m%d", i)},
			Spec:       v1alpha1.MetalMachineSpec{OS: v1alpha1.OSSpec{Profile: rig.DiskProfile}},
		})
	}
	s.WaitFor(t, "all machines run", func() error { return s.phases(ns, v1alpha1.PhaseRunning, n) })
	s.Idle(t, 2*time.Second)

	quiet := s.Calls()
	s.Write(t, func(tx inventory.Tx) error { // machines are seen all the time: that is nothing to tell
		for i := range n {
			h, err := tx.FindHost(s.Machine(i).ID())
			if err != nil {
				return err
			}
			h.LastSeenAt = s.Now()
			if err := tx.UpdateHost(&h, s.Now()); err != nil {
				return err
			}
			err = tx.AddEvent(&inventory.Event{At: s.Now(), Kind: inventory.EventBMC, HostID: h.ID, Detail: "controller asked"})
			if err != nil {
				return err
			}
		}
		return nil
	})
	time.Sleep(5 * time.Second) // longer than anything that gathers events
	if now := s.Calls().Sub(quiet); now.Sum() != 0 {
		t.Errorf("nothing happened, and it cost %s", now)
	}

	for i := range n {
		err := s.Client.Delete(ctx, &v1alpha1.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("m%d", i)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.WaitFor(t, "all are gone and all hosts are free", func() error {
		if err := s.phases(ns, "", 0); err != nil {
			return err
		}
		return s.Store.Read(ctx, func(tx inventory.Tx) error {
			free, err := tx.CountHosts(inventory.HostFilter{State: inventory.Available})
			if err == nil && free != n {
				return fmt.Errorf("%d hosts are free", free)
			}
			return err
		})
	})
	s.Idle(t, 2*time.Second)
	lives := s.Calls().Sub(toShow)
	perMachine := lives.Sum() / n
	t.Logf("%d calls for each of %d machines: %s", perMachine, n, lives)
	if perMachine > callsPerMachine {
		t.Errorf("each machine cost %d calls, at most %d are promised: %s", perMachine, callsPerMachine, lives)
	}
}

// phases checks that all machines of a namespace, n of them, are in a phase.
func (s site) phases(ns string, want v1alpha1.MachinePhase, n int) error {
	var list v1alpha1.MetalMachineList
	if err := s.Client.List(ctx, &list, client.InNamespace(ns)); err != nil {
		return err
	}
	if len(list.Items) != n {
		return fmt.Errorf("there are %d machines", len(list.Items))
	}
	var errs []error
	for i := range list.Items {
		if mm := &list.Items[i]; mm.Status.Phase != want && len(errs) < 3 {
			errs = append(errs, fmt.Errorf("%s is %q: %+v", mm.Name, mm.Status.Phase, mm.Status.Conditions))
		}
	}
	return errors.Join(errs...)
}
