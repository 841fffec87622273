package translate

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// MergeConditions gives the told conditions their generation and, where the status changed, the time. Conditions of others
// and Paused stay. Our conditions that are no longer set go. It says whether anything but the generation of nothing
// changed.
func MergeConditions(old, told []metav1.Condition, generation int64, now time.Time) (merged []metav1.Condition, isNew bool) {
	for _, c := range told {
		c.ObservedGeneration = generation
		c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		c.Message = clip(c.Message)
		if was := find(old, c.Type); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
		merged = append(merged, c)
	}
	for _, c := range old {
		if find(merged, c.Type) == nil && !slices.Contains(ours, c.Type) {
			merged = append(merged, c)
		}
	}
	return merged, !sameConditions(old, merged)
}

// Pause says in the conditions whether a machine is paused, and nothing else.
func Pause(old []metav1.Condition, isPaused bool, message string, generation int64, now time.Time) (merged []metav1.Condition, isNew bool) {
	c := no(v1alpha1.Paused, v1alpha1.ReasonNotPaused, "")
	if isPaused {
		c = yes(v1alpha1.Paused, v1alpha1.ReasonPaused, message)
	}
	c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now.Truncate(time.Second))
	if was := find(old, c.Type); was != nil && was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	for _, o := range old {
		if o.Type != c.Type {
			merged = append(merged, o)
		}
	}
	merged = append(merged, c)
	return merged, !sameConditions(old, merged)
}

// PausedEnd says of a machine that is to be deleted while it is paused that it is not ready, and how it goes on. Without it
// the status would go on to say that the machine runs. by is what pauses it, and how that is ended.
func PausedEnd(old []metav1.Condition, by string, generation int64, now time.Time) (merged []metav1.Condition, isNew bool) {
	text := "the machine is paused and waits to be deleted: " + by
	paused, isNew := Pause(old, true, text, generation, now)
	c := no(v1alpha1.Ready, v1alpha1.ReasonDeleting, text)
	c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now.Truncate(time.Second))
	for i := range paused {
		if paused[i].Type != c.Type {
			continue
		}
		if paused[i].Status == c.Status {
			c.LastTransitionTime = paused[i].LastTransitionTime
		}
		isNew = isNew || paused[i] != c
		paused[i] = c
		return paused, isNew
	}
	return append([]metav1.Condition{c}, paused...), true
}

// ours are the conditions that Machine tells.
var ours = []string{
	v1alpha1.Ready, v1alpha1.HostClaimed, v1alpha1.BootstrapDataAvailable, v1alpha1.OSInstalled,
	v1alpha1.ConfigDelivered, v1alpha1.NodeJoined, v1alpha1.NodeHealthy, v1alpha1.Drained,
	v1alpha1.UpToDate, v1alpha1.Stalled,
}

func find(cs []metav1.Condition, kind string) *metav1.Condition {
	for i := range cs {
		if cs[i].Type == kind {
			return &cs[i]
		}
	}
	return nil
}

// same compares two lists as what they are, maps by type.
func sameConditions(a, b []metav1.Condition) bool {
	if len(a) != len(b) {
		return false
	}
	for _, c := range a {
		o := find(b, c.Type)
		if o == nil || o.Status != c.Status || o.Reason != c.Reason || o.Message != c.Message || o.ObservedGeneration != c.ObservedGeneration {
			return false
		}
	}
	return true
}

// clip keeps a message within what an API server accepts.
func clip(s string) string {
	const limit = 4096
	if len(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit/4])
}
