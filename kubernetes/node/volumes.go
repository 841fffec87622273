package node

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"slipway.dev/slipway/inventory"
)

// volumes says whether anything is still attached to a node that is empty. Volumes of the pods that stay on it are not
// waited for: nothing detaches them.
func (r *round) volumes(ctx context.Context) (inventory.DrainState, error) {
	done := inventory.DrainState{IsDone: true}
	limit := time.Duration(r.d.VolumeTimeout)
	if limit <= 0 {
		return done, nil
	}
	attached, err := r.attached(ctx)
	if err != nil {
		return inventory.DrainState{}, err
	}
	if len(attached) > 0 {
		staying, err := r.staying(ctx)
		if err != nil {
			return inventory.DrainState{}, err
		}
		attached = slices.DeleteFunc(attached, func(pv string) bool { return staying[pv] })
	}
	if len(attached) == 0 {
		r.c.emptied(r.node.UID, false)
		return done, nil
	}
	slices.Sort(attached)
	attached = slices.Compact(attached)
	// A driver that is broken would keep the host without end. After the limit the machine goes, as Kubernetes itself does with
	// a node that is out of service.
	if since := r.c.emptied(r.node.UID, true); r.c.now().Sub(since) >= limit {
		done.Detail = "went on although these volumes are still attached: " + some(attached)
		return done, nil
	}
	return inventory.DrainState{
		Reason: ReasonWaitingForVolumes, Detail: "volumes are still attached: " + some(attached),
		BlockedBy: attached[:min(len(attached), maxNamed)],
	}, nil
}

// attached returns the persistent volumes that are attached to the node, or are on the way. The API server cannot select
// attachments by node.
func (r *round) attached(ctx context.Context) ([]string, error) {
	var out []string
	o := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := r.c.api.StorageV1().VolumeAttachments().List(ctx, o)
		if err != nil {
			return nil, r.c.failure("list the attachments of volumes", err)
		}
		for i := range page.Items {
			if a := &page.Items[i]; a.Spec.NodeName == r.node.Name {
				out = append(out, volumeOf(a))
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return out, nil
		}
	}
}

func volumeOf(a *storagev1.VolumeAttachment) string {
	if pv := a.Spec.Source.PersistentVolumeName; pv != nil {
		return *pv
	}
	return "attachment " + a.Name
}

// staying returns the persistent volumes of the pods that are still on the node.
func (r *round) staying(ctx context.Context) (map[string]bool, error) {
	pods, err := r.c.api.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", r.node.Name).String(),
	})
	if err != nil {
		return nil, r.c.failure("list the pods of node "+r.node.Name, err)
	}
	out := map[string]bool{}
	for i := range pods.Items {
		p := &pods.Items[i]
		isOver := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		for j := range p.Spec.Volumes {
			claim := claimOf(p, &p.Spec.Volumes[j])
			if claim == "" || isOver || p.DeletionTimestamp != nil {
				continue
			}
			pvc, err := r.c.api.CoreV1().PersistentVolumeClaims(p.Namespace).Get(ctx, claim, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, r.c.failure("read the volume claims of pods", err)
			}
			out[pvc.Spec.VolumeName] = true
		}
	}
	return out, nil
}

func claimOf(p *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return p.Name + "-" + v.Name
	}
	return ""
}

// emptied notes whether a node is empty, and returns the time since when. A restart of this process begins that time
// again, which only waits longer.
func (c *Cluster) emptied(node types.UID, is bool) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !is {
		delete(c.detached, node)
		return time.Time{}
	}
	at, ok := c.detached[node]
	if !ok {
		at = c.now()
		c.detached[node] = at
	}
	return at
}
