package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"slipway.dev/slipway/inventory"
)

// maxNamed is how many things are listed for people.
const maxNamed = 16

// ReasonWaitingForVolumes: the node is empty, and volumes are still attached to it.
const ReasonWaitingForVolumes = "WaitingForVolumes"

// volumes says whether anything is still attached to a node that is empty, and gives up waiting after limit. Volumes of
// the pods that stay on the node are not waited for: nothing detaches them.
func (c *Cluster) volumes(ctx context.Context, n *corev1.Node, limit time.Duration) (inventory.DrainState, error) {
	done := inventory.DrainState{IsDone: true}
	if limit <= 0 {
		return done, nil
	}
	attached, err := c.attached(ctx, n.Name)
	if err != nil {
		return inventory.DrainState{}, err
	}
	if len(attached) > 0 {
		staying, err := c.staying(ctx, n.Name)
		if err != nil {
			return inventory.DrainState{}, err
		}
		attached = slices.DeleteFunc(attached, func(pv string) bool { return staying[pv] })
	}
	if len(attached) == 0 {
		c.emptied(n.UID, false)
		return done, nil
	}
	slices.Sort(attached)
	attached = slices.Compact(attached)
	// A driver that is broken would keep the host without end. After the limit the machine goes, as Kubernetes itself does with
	// a node that is out of service.
	if since := c.emptied(n.UID, true); c.now().Sub(since) >= limit {
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
func (c *Cluster) attached(ctx context.Context, node string) ([]string, error) {
	var out []string
	o := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.api.StorageV1().VolumeAttachments().List(ctx, o)
		if err != nil {
			return nil, c.failure("list the attachments of volumes", err)
		}
		for i := range page.Items {
			if a := &page.Items[i]; a.Spec.NodeName == node {
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
func (c *Cluster) staying(ctx context.Context, node string) (map[string]bool, error) {
	pods, err := c.api.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, c.failure("list the pods of node "+node, err)
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
			pvc, err := c.api.CoreV1().PersistentVolumeClaims(p.Namespace).Get(ctx, claim, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, c.failure("read the volume claims of pods", err)
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

// some names the first few.
func some(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
