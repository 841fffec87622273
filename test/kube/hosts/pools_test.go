package hosts_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	v1alpha1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/test/kube/rig"
)

func (s site) pool(t *testing.T, name, what string, is func(*v1alpha1.MetalPool) bool) {
	t.Helper()
	s.WaitFor(t, what, func() error {
		mp := &v1alpha1.MetalPool{}
		if err := s.Client.Get(ctx, client.ObjectKey{Name: name}, mp); err != nil {
			return err
		}
		if !is(mp) {
			return fmt.Errorf("pool %+v %+v", mp.ObjectMeta, mp.Status)
		}
		return nil
	})
}

func says(mp *v1alpha1.MetalPool, reason, part string) bool {
	c := apimeta.FindStatusCondition(mp.Status.Conditions, v1alpha1.Ready)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason && strings.Contains(c.Message, part)
}

func TestMetalPools(t *testing.T) {
	s := newSite(t, 6)
	spare, interval := int32(1), int32(90)
	racks := &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelRack: "rack-1"}}
	s.Must(t, &v1alpha1.MetalPool{
		ObjectMeta: metav1.ObjectMeta{Name: "gold"},
		Spec: v1alpha1.MetalPoolSpec{
			Selector: racks, Requirements: &v1alpha1.HardwareRequirements{MinCPUThreads: 8},
			AllowedNamespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "gold"}},
			Budgets:           v1alpha1.PoolBudgets{MaxConcurrentProvisioning: 3, MaxConcurrentDestroy: 2, DestroyIntervalSeconds: &interval},
			CleanPolicy:       v1alpha1.CleanFull, MinSpare: &spare,
		},
	})
	s.pool(t, "gold", "its hosts are counted", func(mp *v1alpha1.MetalPool) bool {
		return mp.Status.Total == 2 && mp.Status.Available == 2 && apimeta.IsStatusConditionTrue(mp.Status.Conditions, v1alpha1.Ready)
	})
	var p inventory.Pool
	s.Read(t, func(tx inventory.Tx) (err error) {
		p, err = tx.Pools().Find("gold")
		return err
	})
	if p.Selector != "rack=rack-1" || p.Requirements.CPUThreads != 8 || p.AllowedNamespaces != "team=gold" || p.Budget.Provision != 3 || p.Budget.Destroy != 2 ||
		p.Clean != inventory.CleanFull || p.MinSpare != 1 || !strings.Contains(p.Owner, "/MetalPool/gold/") {
		t.Errorf("pool %+v", p)
	}

	b := s.Machine(0)
	b.Hold(rig.Boot)
	if _, err := s.Engine().CreateMachine(ctx, inventory.Machine{Name: "m1", Profile: rig.DiskProfile, Pool: "gold"}, ledger.By("a person")); err != nil {
		t.Fatal(err)
	}
	s.pool(t, "gold", "the claim is counted", func(mp *v1alpha1.MetalPool) bool { return mp.Status.Claimed == 1 && mp.Status.Available == 1 })

	mp := &v1alpha1.MetalPool{ObjectMeta: metav1.ObjectMeta{Name: "gold"}}
	if err := s.Client.Delete(ctx, mp); err != nil {
		t.Fatal(err)
	}
	s.pool(t, "gold", "it says that a machine names it", func(mp *v1alpha1.MetalPool) bool { return says(mp, "Deleting", "m1") })
	b.Go(rig.Boot)
	if _, err := s.Engine().DeleteMachine(ctx, "m1", false, ledger.By("a person")); err != nil {
		t.Fatal(err)
	}
	s.WaitFor(t, "the pool goes when the machine is gone", func() error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(mp), mp); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%v: %+v", err, mp.Status)
		}
		return s.Store.Read(ctx, func(tx inventory.Tx) error {
			if _, err := tx.Pools().Find("gold"); err == nil {
				return errors.New("the row is still there")
			}
			return nil
		})
	})

	s.Write(t, func(tx inventory.Tx) error { return tx.Pools().Create(&inventory.Pool{Name: "taken"}, s.Now()) })
	s.Must(t, &v1alpha1.MetalPool{ObjectMeta: metav1.ObjectMeta{Name: "taken"}, Spec: v1alpha1.MetalPoolSpec{MinSpare: &spare}})
	s.pool(t, "taken", "it says that somebody else made a pool of that name", func(mp *v1alpha1.MetalPool) bool { return says(mp, "NameTaken", "taken") })
	taken := &v1alpha1.MetalPool{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}
	if err := s.Client.Delete(ctx, taken); err != nil {
		t.Fatal(err)
	}
	s.WaitFor(t, "its object can be deleted all the same", func() error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(taken), taken); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%v: %+v", err, taken.ObjectMeta)
		}
		return nil
	})
	s.Read(t, func(tx inventory.Tx) error {
		p, err := tx.Pools().Find("taken")
		if err == nil && (p.Owner != "" || p.MinSpare != 0) {
			t.Errorf("somebody else's pool is now %+v", p)
		}
		return err
	})

	s.Must(t, &v1alpha1.MetalPool{ObjectMeta: metav1.ObjectMeta{Name: "bad"}, Spec: v1alpha1.MetalPoolSpec{Requirements: &v1alpha1.HardwareRequirements{Expression: "host.cpu.threads >"}}})
	s.pool(t, "bad", "it says what is wrong", func(mp *v1alpha1.MetalPool) bool { return says(mp, "InvalidConfiguration", "expression") })
}
