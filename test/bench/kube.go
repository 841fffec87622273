package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machine/metal"
	"slipway.dev/slipway/machine/v1alpha1"
	"slipway.dev/slipway/test/kube/cluster"
	"slipway.dev/slipway/test/kube/rig"
)

const (
	kubeN       = 1000
	kubeClaims  = 10.0 // seconds that the claims may take
	kubeMemory  = 120  // MB that the controllers may need
	kubeCalls   = 40.0 // to the API server for one machine
	kubeQuiet   = time.Minute
	kubePatient = 10 * time.Minute
)

// kube is what one run with a Kubernetes control plane has found.
type kube struct {
	claims float64 // seconds until all machines that were applied had a host
	memory float64 // MB of the controllers, with all hosts and machines
	calls  float64 // to the API server for each machine, from its creation until it is gone
	quiet  float64 // calls in a minute in which nothing happens
}

// kubeBenchmark is a figure of a run with a control plane, which is made once.
func kubeBenchmark(name, unit string, limit float64, of func(*kube) float64) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		f := Figure{Name: name, IsCost: true, Unit: unit, PeerName: "promised", Peer: limit}
		if e.Slipway == "" {
			return f, nil // there is no other peer
		}
		if e.kube == nil {
			k, err := kubeRun(ctx, e)
			if err != nil {
				return f, err
			}
			e.kube = k
		}
		f.Ours = of(e.kube)
		return f, nil
	}
}

// kubeRun measures 1,000 MetalMachines on 1,000 hosts that robots play.
func kubeRun(ctx context.Context, e *Env) (k *kube, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the rig broke: %v", p)
		}
	}()
	for _, part := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if _, err := os.Stat(filepath.Join("../../build/parts", part)); err != nil {
			return nil, errors.New("needs etcd and kube-apiserver; run: make kube-binaries")
		}
	}
	if err := os.Setenv(cluster.Env, "1"); err != nil {
		return nil, err
	}
	tb, end := rig.Outside()
	defer end()
	n := kubeN
	if e.Quick {
		n = 100
	}
	r := rig.New(tb, rig.Options{Hosts: n, Setup: []rig.Setup{metal.Setup}})
	r.StopControllers()
	without := heap()
	r.StartControllers()
	k = &kube{}
	if err := until(ctx, "all hosts are shown", func() (bool, error) {
		var list v1alpha1.MetalHostList
		err := r.Client.List(ctx, &list)
		return len(list.Items) == n && list.Items[n-1].Status.Phase != "", err
	}); err != nil {
		return nil, err
	}
	r.Idle(tb, 5*time.Second)
	before := r.Calls()
	if err := k.create(ctx, e, r, n); err != nil {
		return nil, err
	}
	if err := until(ctx, "all machines run", func() (bool, error) {
		running, err := inPhase(ctx, r.Client, v1alpha1.PhaseRunning)
		return running == n, err
	}); err != nil {
		return nil, err
	}
	r.Idle(tb, 5*time.Second)
	quiet := r.Calls()
	time.Sleep(kubeQuiet)
	k.quiet = float64(r.Calls().Sub(quiet).Sum())
	with := heap()
	r.StopControllers()
	k.memory = max(0, with-heap())
	e.say("%d machines run: controllers hold %.1f MB of heap (the rest of the process %.1f MB); in a quiet minute %.0f calls", n, k.memory, without, k.quiet)
	r.StartControllers()
	if err := r.Client.DeleteAllOf(ctx, &v1alpha1.MetalMachine{}, client.InNamespace("bench")); err != nil {
		return nil, err
	}
	if err := until(ctx, "all machines are gone", func() (bool, error) {
		left, err := inPhase(ctx, r.Client, "")
		return left == 0, err
	}); err != nil {
		return nil, err
	}
	r.Idle(tb, 5*time.Second)
	lives := r.Calls().Sub(before)
	k.calls = float64(lives.Sum()) / float64(n)
	e.say("calls to the API server: %s", lives)
	if k.quiet != 0 {
		return nil, fmt.Errorf("%.0f calls in a minute in which nothing happened", k.quiet)
	}
	return k, nil
}

// create applies the machines and waits until each has a host.
func (k *kube) create(ctx context.Context, e *Env, r *rig.Rig, n int) error {
	if err := r.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bench"}}); err != nil {
		return err
	}
	for i := range n { // a machine takes minutes to come to the network: robots do not share the claims' time
		r.Machine(i).Hold(rig.Boot)
		defer r.Machine(i).Go(rig.Boot)
	}
	begin := time.Now()
	var g errgroup.Group
	g.SetLimit(16)
	for i := range n {
		g.Go(func() error {
			return r.Client.Create(ctx, &v1alpha1.MetalMachine{
				ObjectMeta: metav1.ObjectMeta{Namespace: "bench", Name: fmt.Sprintf("m%04d", i)},
				Spec:       v1alpha1.MetalMachineSpec{OS: v1alpha1.OSSpec{Profile: rig.DiskProfile}},
			})
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	applied := time.Since(begin)
	err := until(ctx, "all are claimed", func() (bool, error) {
		claimed := 0
		err := r.Store.Read(ctx, func(tx inventory.Tx) error {
			all, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
			for i := range all {
				if all[i].ClaimID != "" {
					claimed++
				}
			}
			return err
		})
		return claimed == n, err
	})
	k.claims = time.Since(begin).Seconds()
	e.say("%d MetalMachines: applied after %.2f s, all claimed after %.2f s", n, applied.Seconds(), k.claims)
	return err
}

// inPhase counts the machines in a phase, all for "".
func inPhase(ctx context.Context, c client.Client, phase v1alpha1.MachinePhase) (n int, _ error) {
	var list v1alpha1.MetalMachineList
	if err := c.List(ctx, &list); err != nil {
		return 0, err
	}
	for i := range list.Items {
		if phase == "" || list.Items[i].Status.Phase == phase {
			n++
		}
	}
	return n, nil
}

// heap is how many MB are in use once everything that can go is gone.
func heap() float64 {
	var m runtime.MemStats
	for range 3 {
		debug.FreeOSMemory()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

func until(ctx context.Context, what string, is func() (bool, error)) error {
	for end := time.Now().Add(kubePatient); ; time.Sleep(200 * time.Millisecond) {
		ok, err := is()
		if ok || ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(end) {
			return fmt.Errorf("waited %s until %s: %w", kubePatient, what, err)
		}
	}
}
