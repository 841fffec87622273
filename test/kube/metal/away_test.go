package metal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/manager"
	"slipway.dev/slipway/kubernetes/standalone"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

// awayFor is how long the API server is away: half of it, it hangs and keeps its connections; then it is gone.
const awayFor = 10 * time.Minute

// TestTheAPIServerIsAwayForTenMinutes: machines are installed on meanwhile, the lease is got again afterwards, and nothing
// is done twice.
func TestTheAPIServerIsAwayForTenMinutes(t *testing.T) {
	if os.Getenv("SLIPWAY_LONG") == "" {
		t.Skip("takes a quarter of an hour; run: make test-long RUN=" + t.Name())
	}
	var elected atomic.Int32
	r := rig.New(t, rig.Options{Setup: []rig.Setup{standalone.Setup}, Nodes: drains, Elected: func() { elected.Add(1) }})
	s := newStage(t, r, 5)
	s.machine("runs", func(mm *v1alpha1.MetalMachine) { mm.Spec.Placement = &v1alpha1.Placement{HostName: s.robots[3].Name()} })
	s.settled("runs")
	s.stand()
	was, calm := s.claims(), s.robots[3].Counts()
	spare := s.robots[4]

	began := time.Now()
	r.Cluster.HangAPI()
	for i, step := range steps { // one ends while the API server hangs, one at its death, one after it
		at := awayFor * time.Duration(i+1) / 4
		s.stays(began.Add(at), was, calm)
		if i == 1 {
			r.StopAPI()
		}
		s.robots[i].Go(step)
		s.hostIs(s.robots[i].ID(), inventory.Active)
	}
	s.stays(began.Add(awayFor), was, calm)
	t.Logf("away for %s; the controllers were elected %d times before", time.Since(began).Round(time.Second), elected.Load())
	r.StartAPI()

	s.arrive(was)
	s.WaitFor(t, "the controllers have the lease again", func() error { return s.leads(elected.Load()) })
	if got := s.robots[3].Counts(); got != calm {
		t.Errorf("the machine that ran was touched: %+v, before %+v", got, calm)
	}
	s.machine("later", func(mm *v1alpha1.MetalMachine) { mm.Spec.Placement = &v1alpha1.Placement{HostName: spare.Name()} })
	s.ready("later")
	s.delete(string(rig.Write))
	s.gone(string(rig.Write))
	s.stays(time.Now(), nil, calm)
	t.Logf("caught up %s after the API server went; elected %d times", time.Since(began).Round(time.Second), elected.Load())
}

// stays looks until a moment whether each claim is held by whom it was, and that nothing happens to the machine that runs.
func (s *stage) stays(until time.Time, claims map[string]string, runs rig.Counts) {
	s.t.Helper()
	for isFirst := true; isFirst || time.Now().Before(until); isFirst = false {
		views, err := s.Appliance().ListMachines(context.Background(), "")
		if err != nil {
			s.t.Fatal(err)
		}
		hosts := map[inventory.HostID]string{}
		for _, v := range views {
			if v.Claim == nil {
				continue
			}
			if other := hosts[v.Claim.HostID]; other != "" {
				s.t.Fatalf("a host is claimed by %s and by %s", other, v.Machine.Name)
			}
			hosts[v.Claim.HostID] = v.Machine.Name
			for name, id := range claims {
				if strings.Contains(v.Machine.Owner, "/"+s.ns+"/MetalMachine/"+name+"/") && string(v.Claim.ID) != id {
					s.t.Fatalf("%s has claim %s, before %s", name, v.Claim.ID, id)
				}
			}
		}
		if got := s.robots[3].Counts(); got != runs {
			s.t.Fatalf("the machine that runs was touched: %+v, before %+v", got, runs)
		}
		time.Sleep(min(time.Second, max(0, time.Until(until))))
	}
}

// leads looks whether the controllers hold the lease, and were elected anew for it.
func (s *stage) leads(elected int32) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: manager.LeaseNamespace, Name: manager.Options{}.LeaseName()}}
	if err := s.Client.Get(context.Background(), client.ObjectKeyFromObject(lease), lease); err != nil {
		return err
	}
	if h := lease.Spec.HolderIdentity; h == nil || *h != rig.LeaseHolder {
		return fmt.Errorf("it is held by %v", h)
	}
	if lease.Spec.RenewTime == nil || time.Since(lease.Spec.RenewTime.Time) > time.Minute {
		return fmt.Errorf("it was renewed at %s", lease.Spec.RenewTime)
	}
	if elected < 2 {
		return errors.New("nobody was elected since")
	}
	return nil
}
