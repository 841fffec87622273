package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/standalone"
	"slipway.dev/slipway/kubernetes/v1alpha1"
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
	claims   float64 // seconds from the moment that all machines were in the API server until all had a host
	together float64 // the same from before the first was
	shown    float64 // until all showed it, from before the first was
	memory   float64 // MB of the controllers, with all hosts and machines
	calls    float64 // to the API server for each machine, from its creation until it is gone
	quiet    float64 // calls in a minute in which nothing happens

	bareTogether, bareShown float64 // the same calls to the API server by somebody who does nothing else
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

// kubeBare is a figure beside that of a writer that only makes the calls.
func kubeBare(name string, of func(*kube) (ours, bare float64)) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		f, err := kubeBenchmark(name, "s", 0, func(k *kube) float64 { return 0 })(ctx, e)
		if err == nil && e.kube != nil {
			f.PeerName = "the-calls-alone"
			f.Ours, f.Peer = of(e.kube)
		}
		return f, err
	}
}

// kubeRun measures 1,000 MetalMachines on 1,000 hosts that robots play.
func kubeRun(ctx context.Context, e *Env) (k *kube, err error) {
	r, end, err := kubeRig(e, []rig.Setup{standalone.Setup})
	if err != nil {
		return nil, err
	}
	defer end(&err)
	tb, n := r.TB(), kubeSize(e)
	r.StopControllers()
	k = &kube{}
	if err := k.bare(ctx, r, n); err != nil {
		return nil, err
	}
	without, rss := heap(), resident()
	r.StartControllers()
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
	with, grown := heap(), resident()-rss
	r.StopControllers()
	k.memory = max(0, with-heap())
	e.say("%d machines run: controllers hold %.1f MB of heap (the process held %.1f MB before, and its resident memory is larger by %.1f MB with the engine's share); in a quiet minute %.0f calls",
		n, k.memory, without, grown, k.quiet)
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

// kubeRig makes a rig with hosts that robots play. end ends it, and turns what broke in it into an error.
func kubeRig(e *Env, setup []rig.Setup) (r *rig.Rig, end func(*error), err error) {
	for _, part := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if _, err := os.Stat(filepath.Join("../../build/parts", part)); err != nil {
			return nil, nil, errors.New("needs etcd and kube-apiserver; run: make kube-binaries")
		}
	}
	if err := os.Setenv(cluster.Env, "1"); err != nil {
		return nil, nil, err
	}
	tb, over := rig.Outside()
	end = func(err *error) {
		if p := recover(); p != nil {
			*err = fmt.Errorf("the rig broke: %v", p)
		}
		over()
	}
	defer func() {
		if p := recover(); p != nil {
			over()
			err = fmt.Errorf("the rig broke: %v", p)
		}
	}()
	return rig.New(tb, rig.Options{Hosts: kubeSize(e), Setup: setup}), end, nil
}

// create applies the machines and waits until each has a host, and until each shows it.
func (k *kube) create(ctx context.Context, e *Env, r *rig.Rig, n int) error {
	for i := range n { // a machine takes minutes to come to the network: robots do not share the claims' time
		r.Machine(i).Hold(rig.Boot)
		defer r.Machine(i).Go(rig.Boot)
	}
	watching, stop := context.WithCancel(ctx)
	var claimed atomic.Int64
	ready := make(chan struct{})
	var watch errgroup.Group
	defer func() { stop(); _ = watch.Wait() }() // it ends because it is told to
	watch.Go(func() error {
		return r.Appliance().Watch(watching, func(ev inventory.Event) {
			switch ev.Kind {
			case "":
				close(ready)
			case inventory.EventClaimed:
				claimed.Add(1)
			}
		})
	})
	<-ready
	begin := time.Now()
	if err := kubeApply(ctx, r.Client, "bench", n); err != nil {
		return err
	}
	applied, early := time.Now(), claimed.Load()
	if err := until(ctx, "all are claimed", func() (bool, error) { return claimed.Load() >= int64(n), nil }); err != nil {
		return err
	}
	k.claims, k.together = time.Since(applied).Seconds(), time.Since(begin).Seconds()
	err := until(ctx, "all show their claim", func() (bool, error) {
		time.Sleep(time.Second) // a list costs the API server as much as a dozen writes
		var list v1alpha1.MetalMachineList
		if err := r.Client.List(ctx, &list); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(list.Items, func(mm v1alpha1.MetalMachine) bool {
			return mm.Spec.ClaimID == "" || mm.Status.HostRef == nil
		}), nil
	})
	k.shown = time.Since(begin).Seconds()
	e.say("%d MetalMachines: all in the API server after %.2f s, %d claimed by then; all claimed %.2f s later; all show it %.2f s after the first was made",
		n, applied.Sub(begin).Seconds(), early, k.claims, k.shown)
	e.say("the same calls alone: made and finalized in %.2f s, claims and statuses written and told of in %.2f s", k.bareTogether, k.bareShown)
	return err
}

// kubeApply creates n machines, 16 at a time.
func kubeApply(ctx context.Context, c client.Client, namespace string, n int) error {
	err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil {
		return err
	}
	return atOnce(n, func(i int) error { return c.Create(ctx, kubeMachine(namespace, i)) })
}

func kubeMachine(namespace string, i int) *v1alpha1.MetalMachine {
	return &v1alpha1.MetalMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("m%04d", i)},
		Spec:       v1alpha1.MetalMachineSpec{OS: v1alpha1.OSSpec{Profile: rig.DiskProfile}},
	}
}

func atOnce(n int, do func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(16)
	for i := range n {
		g.Go(func() error { return do(i) })
	}
	return g.Wait()
}

// bare makes the calls to the API server that claims need, and nothing else: nobody can be quicker. No controller runs.
func (k *kube) bare(ctx context.Context, r *rig.Rig, n int) error {
	c, began := r.Client, time.Now()
	if err := kubeApply(ctx, c, "bare", n); err != nil {
		return err
	}
	finalizers := func(text string) error {
		return atOnce(n, func(i int) error {
			return c.Patch(ctx, kubeMachine("bare", i), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+text+`}}`)))
		})
	}
	if err := finalizers(`["` + v1alpha1.FinalizerMachine + `"]`); err != nil {
		return err
	}
	k.bareTogether = time.Since(began).Seconds()
	if err := atOnce(n, func(i int) error { return bareClaim(ctx, c, kubeMachine("bare", i)) }); err != nil {
		return err
	}
	k.bareShown = time.Since(began).Seconds()
	if err := c.DeleteAllOf(ctx, &v1alpha1.MetalMachine{}, client.InNamespace("bare")); err != nil {
		return err
	}
	if err := finalizers("null"); err != nil {
		return err
	}
	return until(ctx, "the machines of the bare writer are gone", func() (bool, error) {
		left, err := inPhase(ctx, c, "")
		return left == 0, err
	})
}

// bareClaim writes what the controller writes for a claim: the spec, the status, an event.
func bareClaim(ctx context.Context, c client.Client, mm *v1alpha1.MetalMachine) error {
	apply := func(fields map[string]any) kuberuntime.ApplyConfiguration {
		u := &unstructured.Unstructured{Object: fields}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindMetalMachine))
		u.SetNamespace(mm.Namespace)
		u.SetName(mm.Name)
		return client.ApplyConfigurationFromUnstructured(u)
	}
	now := metav1.NowMicro()
	at := now.UTC().Format(time.RFC3339)
	var conditions []any
	for _, kind := range []string{v1alpha1.Ready, v1alpha1.HostClaimed, v1alpha1.ConfigDelivered, v1alpha1.Paused} {
		conditions = append(conditions, map[string]any{
			"type": kind, "status": "False", "reason": v1alpha1.ReasonClaimed, "message": "written by the benchmark", "lastTransitionTime": at, "observedGeneration": int64(2),
		})
	}
	claim := "01K" + fmt.Sprintf("%023d", 0)
	if err := c.Apply(ctx, apply(map[string]any{"spec": map[string]any{"claimID": claim, "providerID": "slipway://lab/h/" + claim}}), client.FieldOwner("bench"), client.ForceOwnership); err != nil {
		return err
	}
	status := map[string]any{"phase": string(v1alpha1.PhaseProvisioning), "conditions": conditions, "observedGeneration": int64(2), "hostRef": map[string]any{"name": "h"}}
	if err := c.Status().Apply(ctx, apply(map[string]any{"status": status}), client.FieldOwner("bench"), client.ForceOwnership); err != nil {
		return err
	}
	return c.Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: mm.Namespace, GenerateName: mm.Name + "-"}, EventTime: now,
		ReportingController: "bench", ReportingInstance: "bench", Action: "Reconcile", Reason: v1alpha1.ReasonClaimed, Type: corev1.EventTypeNormal,
		Regarding: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindMetalMachine, Namespace: mm.Namespace, Name: mm.Name},
		Note:      "written by the benchmark",
	})
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

// resident is how many MB of memory the process has.
func resident() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	var size, pages int
	if _, e := fmt.Sscan(string(text), &size, &pages); err != nil || e != nil {
		return 0
	}
	return float64(pages*os.Getpagesize()) / 1e6
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
