package node

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubectl/pkg/drain"

	"slipway.dev/slipway/inventory"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

const evictAtOnce = 8 // calls at a time

// Drain drains the node of a machine by one step. It cordons the node, asks once for the eviction of each pod, and
// reports what is left. It never waits for a pod. Everything is in the cluster, so that another process may make the
// next call.
//
// Pods of DaemonSets and of the node's own manifests stay. Pods on a node without contact to its kubelet are not
// waited for. A missing node, and one that was never ours, is empty.
func (c *Cluster) Drain(ctx context.Context, id Identity, d inventory.Drain, _ time.Time) (inventory.DrainState, error) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	n, err := c.find(ctx, id)
	if err != nil {
		return inventory.DrainState{}, err
	}
	if n == nil {
		return inventory.DrainState{IsDone: true, Detail: "cluster " + c.name + " has no node of the machine"}, nil
	}
	if d.IsSkipped {
		return inventory.DrainState{IsDone: true, Detail: "the pods of node " + n.Name + " are left where they are"}, nil
	}
	r := &round{c: c, node: n, d: &d}
	r.helper = &drain.Helper{
		Ctx: ctx, Client: c.api, Out: io.Discard, ErrOut: io.Discard,
		// With Force and DeleteEmptyDirData the helper refuses no node because of one pod. holdLocalData then decides for each
		// pod whether it stays.
		IgnoreAllDaemonSets: true, Force: true, DeleteEmptyDirData: true, ChunkSize: pageSize, GracePeriodSeconds: -1,
		AdditionalFilters: []drain.PodFilter{r.holdLocalData},
	}
	if d.GraceSeconds > 0 { // 0 would take pods out of the API before they have ended
		r.helper.GracePeriodSeconds = d.GraceSeconds
	}
	if !isReachable(n) { // nobody there to end pods, or to say that they have ended
		r.helper.GracePeriodSeconds, r.helper.SkipWaitForDeleteTimeoutSeconds = 1, 1
	}
	return r.run(ctx)
}

// round is one call of Drain. mu guards the lists, which parallel evictions fill.
type round struct {
	c      *Cluster
	node   *corev1.Node
	d      *inventory.Drain
	helper *drain.Helper

	mu      sync.Mutex
	leaving []string            // pods that were asked to go
	local   []string            // pods that stay because of their local data
	blocked map[string][]string // budgets, then the pods that they keep
	refused error               // that a pod could not be evicted at all
}

func (r *round) run(ctx context.Context) (inventory.DrainState, error) {
	if !r.node.Spec.Unschedulable {
		if err := drain.RunCordonOrUncordon(r.helper, r.node, true); err != nil && !apierrors.IsNotFound(err) {
			return inventory.DrainState{}, r.c.failure("cordon node "+r.node.Name, err)
		}
	}
	list, errs := r.helper.GetPodsForDeletion(r.node.Name)
	if len(errs) > 0 {
		return inventory.DrainState{}, r.c.failure("list the pods of node "+r.node.Name, errs[0])
	}
	r.evict(ctx, list.Pods())
	// The time for volumes begins when the last pod is gone. A pod that comes back begins it again.
	if state, isLeft := r.state(); isLeft {
		r.c.emptied(r.node.UID, false)
		return state, nil
	}
	return r.c.volumes(ctx, r.node, time.Duration(r.d.VolumeTimeout))
}

// holdLocalData keeps pods whose local data would be lost, unless the machine allows that. The helper calls it for
// one pod at a time.
func (r *round) holdLocalData(p corev1.Pod) drain.PodDeleteStatus {
	isOver := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if r.d.DeleteEmptyDirData || isOver || p.DeletionTimestamp != nil {
		return drain.MakePodDeleteStatusOkay()
	}
	if slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil }) {
		r.local = append(r.local, p.Namespace+"/"+p.Name)
		return drain.MakePodDeleteStatusSkip()
	}
	return drain.MakePodDeleteStatusOkay()
}

// evict asks once for each pod that has not been asked for yet.
func (r *round) evict(ctx context.Context, pods []corev1.Pod) {
	r.blocked = map[string][]string{}
	var wg sync.WaitGroup
	turn := make(chan struct{}, evictAtOnce)
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp != nil {
			r.leaving = append(r.leaving, p.Namespace+"/"+p.Name)
			continue
		}
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			r.settle(ctx, p, r.helper.EvictPod(*p, policyv1.SchemeGroupVersion))
		})
	}
	wg.Wait()
}

// settle notes what became of an eviction.
func (r *round) settle(ctx context.Context, p *corev1.Pod, err error) {
	name := p.Namespace + "/" + p.Name
	var budgets []string
	if isBudget(err) {
		budgets = r.budgets(ctx, p, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case apierrors.IsNotFound(err):
	case len(budgets) > 0:
		for _, b := range budgets {
			r.blocked[b] = append(r.blocked[b], name)
		}
	case err == nil, apierrors.IsConflict(err), apierrors.IsTooManyRequests(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		r.leaving = append(r.leaving, name) // asked, or to be asked again
	default:
		// The pod is still there, so the drain is not done, whatever the reason was.
		r.leaving = append(r.leaving, name)
		if r.refused == nil {
			r.refused = r.c.failure("evict pods", err)
		}
	}
}

// isBudget reports whether a budget refused an eviction. With several budgets for one pod the API server gives up with 500.
func isBudget(err error) bool {
	return apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) || apierrors.IsInternalError(err)
}

// budgets names those that cover a pod: the answer to an eviction does so only in words.
func (r *round) budgets(ctx context.Context, p *corev1.Pod, why error) []string {
	list, err := r.c.api.PolicyV1().PodDisruptionBudgets(p.Namespace).List(ctx, metav1.ListOptions{Limit: pageSize})
	var out []string
	for i := range list.Items {
		b := &list.Items[i]
		if s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && s.Matches(labels.Set(p.Labels)) {
			out = append(out, b.Namespace+"/"+b.Name)
		}
	}
	slices.Sort(out)
	switch {
	case apierrors.HasStatusCause(why, policyv1.DisruptionBudgetCause) && (err != nil || len(out) == 0):
		return []string{p.Namespace + "/(a budget)"} // that we may not list
	case !apierrors.HasStatusCause(why, policyv1.DisruptionBudgetCause) && len(out) < 2:
		return nil // another problem of the server
	}
	return out
}

// state says what is left, the same words for the same pods.
func (r *round) state() (inventory.DrainState, bool) {
	slices.Sort(r.leaving)
	slices.Sort(r.local)
	s := inventory.DrainState{Reason: metal.ReasonDraining}
	var lines []string
	if len(r.blocked) > 0 {
		s.Reason = metal.ReasonBlockedByPDB
		s.BlockedBy = slices.Sorted(maps.Keys(r.blocked))
		for _, b := range s.BlockedBy {
			slices.Sort(r.blocked[b])
			lines = append(lines, fmt.Sprintf("budget %s keeps %s", b, some(r.blocked[b])))
		}
	}
	if len(r.local) > 0 {
		s.BlockedBy = append(s.BlockedBy, r.local...)
		lines = append(lines, "kept for the data in their emptyDir volumes, which deleteEmptyDirData gives up: "+some(r.local))
	}
	if len(r.leaving) > 0 {
		lines = append(lines, "ending: "+some(r.leaving))
	}
	if r.refused != nil {
		lines = append(lines, inventory.MessageOf(r.refused))
	}
	s.BlockedBy = s.BlockedBy[:min(len(s.BlockedBy), maxNamed)]
	s.Detail = strings.Join(lines, "; ")
	return s, len(r.blocked)+len(r.local)+len(r.leaving) > 0
}
