package clusterapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"slipway.dev/slipway/hardware/placement"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/translate"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

// templates writes into the status of SlipwayMachineTemplates what their machines would have. People read it, and
// autoscalers that scale from zero.
type templates struct{ *kit }

func setupTemplates(mgr manager.Manager, k *kit) error {
	r := &templates{k}
	return builder.ControllerManagedBy(mgr).Named("slipwaymachinetemplate").
		For(&infrav1.SlipwayMachineTemplate{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WatchesRawSource(controllers.On(k.feed, calm, r.ofEvent)).
		WatchesRawSource(controllers.Once(k.feed, r.all)).
		WithOptions(options(1)).
		Complete(r)
}

// ofEvent returns all templates: a host may fit any of them.
func (r *templates) ofEvent(ev inventory.Event) []reconcile.Request {
	if !isAboutHosts(ev) {
		return nil
	}
	all, _ := r.all(context.Background()) // from the cache
	return all
}

func (r *templates) all(ctx context.Context) (all []reconcile.Request, err error) {
	r.yard.spoil()
	return controllers.Requests(ctx, r.client, &infrav1.SlipwayMachineTemplateList{})
}

// Reconcile implements reconcile.Reconciler.
func (r *templates) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	t, err := find(ctx, client.Reader(r.client), req.Namespace, req.Name, &infrav1.SlipwayMachineTemplate{})
	if err != nil || t == nil || !r.isOurs(t) || !t.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, err
	}
	t = t.DeepCopy()
	// clusterctl move pauses the Cluster. Templates of it are on their way to another cluster then.
	cluster, err := r.clusterOf(ctx, t)
	if err != nil || isPaused(cluster, t) {
		return reconcile.Result{}, err
	}
	st := t.Status.DeepCopy()
	ready := metav1.Condition{Type: metalv1.Ready, Status: metav1.ConditionTrue, Reason: metalv1.ReasonReady}
	fit, err := r.fit(ctx, t)
	switch {
	case err != nil && isLasting(err):
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, string(metalv1.FailureInvalidConfiguration), err.Error()
		fit = fitting{}
	case err != nil:
		return reconcile.Result{}, err
	case fit.matching == 0:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, metalv1.ReasonNoMatchingHost, fit.why
	}
	n, free := int32(fit.matching), int32(fit.available)
	st.Capacity, st.NodeInfo, st.MatchingHosts, st.AvailableHosts = fit.capacity, fit.info, &n, &free
	cs, isNew := translate.MergeConditions(t.Status.Conditions, []metav1.Condition{ready}, t.Generation, time.Now())
	if isNew {
		st.Conditions = cs
	}
	if equality.Semantic.DeepEqual(&t.Status, st) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, controllers.ApplyStatus(ctx, r.client, t, infrav1.GroupVersion.WithKind(infrav1.KindSlipwayMachineTemplate), ManagerTemplate, st)
}

// clusterOf returns the Cluster of a template, or nil.
func (k *kit) clusterOf(ctx context.Context, o client.Object) (*clusterv1.Cluster, error) {
	name := o.GetLabels()[clusterv1.ClusterNameLabel]
	if ref := ownerRef(o, "Cluster"); ref != nil {
		name = ref.Name
	}
	if name == "" {
		return nil, nil
	}
	return find(ctx, client.Reader(k.client), o.GetNamespace(), name, &clusterv1.Cluster{})
}

// fitting says which hosts the machines of a template could have.
type fitting struct {
	matching, available int
	capacity            infrav1.ResourceList
	info                infrav1.NodeInfo
	why                 string // what keeps most of them out, when none matches
}

// fit counts the hosts that machines of a template could have. It uses the rules of package placement, so the count
// is what an allocation would give.
func (r *templates) fit(ctx context.Context, t *infrav1.SlipwayMachineTemplate) (f fitting, err error) {
	sm := &infrav1.SlipwayMachine{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name}}
	sm.Spec.SlipwayMachineTemplateResourceSpec = t.Spec.Template.Spec
	m, err := translate.SlipwayMachine(sm, translate.Options{})
	if err != nil {
		return f, err
	}
	if err := r.tenancy(ctx, t.Namespace, &m); err != nil {
		return f, err
	}
	profile, err := r.env.Appliance.FindProfile(ctx, m.Profile)
	if err != nil {
		return f, err
	}
	name := cmp.Or(m.Image, profile.Image)
	image, err := r.env.Appliance.FindImage(ctx, name)
	if err != nil {
		return f, err
	}
	pools, err := r.env.PoolsFor(ctx, r.client, r.direct, t.Namespace)
	if err != nil {
		return f, err
	}
	views, err := r.yard.all(ctx)
	if err != nil {
		return f, fmt.Errorf("list hosts: %w", err)
	}
	pool := inventory.Pool{}
	if p := pools.Find(m.Pool); p != nil {
		pool = *p
	}
	// A template has no former hosts. With Require no host would fit.
	m.Placement.Reuse = ""
	d := placement.Demand{Machine: m, Pool: pool, Image: image, Barred: pools.Closed(), Now: time.Now()}
	// Two counts: an autoscaler needs to know what fits now, and a person whether anything would ever fit.
	now, ever := candidates(views)
	f.available = len(placed(d, now))
	// Spare hosts are a rule for the moment. How many fit at all does not depend on it.
	d.Pool.MinSpare = 0
	matching := placed(d, ever)
	if f.matching = len(matching); f.matching == 0 {
		if o := placement.NewForecast(ever).Outlook(d); o.IsHopeless {
			f.why = o.Reason
		} else {
			f.why = placement.Choose(d, ever).Reason
		}
		return f, nil
	}
	f.measure(views, matching)
	return f, nil
}

// candidates returns the hosts as they are now, and as they would be if none was in use.
func candidates(views []contract.HostView) (now, ever []placement.Candidate) {
	for i := range views {
		v := &views[i]
		c := placement.Candidate{Host: v.Host, HasPower: v.BMC != nil}
		if v.Inspection != nil {
			c.Hardware = &v.Inspection.Hardware
		}
		now = append(now, c)
		if v.Host.State != inventory.Discovered && !v.Host.IsAdopted && !v.Host.IsProtected {
			ever = append(ever, placement.Idle(c))
		}
	}
	return now, ever
}

// placed returns the hosts that as many machines as there are hosts would get.
func placed(d placement.Demand, among []placement.Candidate) map[inventory.HostID]bool {
	demands := make([]placement.Demand, len(among))
	for i := range demands {
		demands[i] = d
		demands[i].Machine.Name = d.Machine.Name + "-" + strconv.Itoa(i)
		demands[i].Machine.UID = strconv.Itoa(i)
	}
	hosts := map[inventory.HostID]bool{}
	for _, c := range placement.Allocate(demands, among) {
		if c.Host != nil {
			hosts[c.Host.ID] = true
		}
	}
	return hosts
}

var nodeArches = map[inventory.Arch]metalv1.Architecture{inventory.X8664: metalv1.AMD64, inventory.ARM64: metalv1.ARM64}

// measure sets each resource to the least that a matching host has: an autoscaler may then count on it.
func (f *fitting) measure(views []contract.HostView, matching map[inventory.HostID]bool) {
	least := map[string]int64{}
	lower := func(what string, n int64) {
		if had, ok := least[what]; !ok || n < had {
			least[what] = n
		}
	}
	var arches []metalv1.Architecture
	for i := range views {
		h := &views[i].Host
		if !matching[h.ID] {
			continue
		}
		if a, ok := nodeArches[h.Arch]; ok && !slices.Contains(arches, a) {
			arches = append(arches, a)
		}
		memory := int64(h.MemoryMiB) << 20
		if x := views[i].Inspection; x != nil {
			memory = max(memory, x.Hardware.MemoryBytes)
			lower("cpu", int64(x.Hardware.CPU.Threads))
			for _, g := range gpus {
				lower(g.resource, int64(countGPUs(&x.Hardware, g.vendor)))
			}
		}
		lower("memory", memory)
	}
	f.capacity = infrav1.ResourceList{}
	for what, n := range least {
		if n > 0 {
			format := resource.DecimalSI
			if what == "memory" {
				format = resource.BinarySI
			}
			f.capacity[what] = *resource.NewQuantity(n, format)
		}
	}
	if len(f.capacity) == 0 {
		f.capacity = nil
	}
	f.info.OperatingSystem = "linux"
	if len(arches) == 1 {
		f.info.Architecture = arches[0]
	}
}

// gpus are the resource names of device plug-ins for accelerators, with the PCI vendor ids.
var gpus = []struct{ resource, vendor string }{{"nvidia.com/gpu", "10de"}, {"amd.com/gpu", "1002"}}

func countGPUs(h *inventory.Hardware, vendor string) (n int) {
	for _, a := range h.Accelerators {
		if strings.HasPrefix(strings.ToLower(a.ID), vendor+":") {
			n++
		}
	}
	return n
}
