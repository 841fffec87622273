package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

// AnnotationOwned is the annotation of a Node that says which of its labels, annotations and taints are ours.
const AnnotationOwned = metal.Prefix + "owned"

// Wanted holds what a node carries for its machine, in addition to what others set.
type Wanted struct {
	Labels      map[string]string
	Annotations map[string]string
	Taints      []corev1.Taint
}

// owned lists the keys that are ours. A taint is <key>:<effect>.
type owned struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	Taints      []string `json:"taints,omitempty"`
}

func (o *owned) isEmpty() bool { return len(o.Labels)+len(o.Annotations)+len(o.Taints) == 0 }

// change is what has to be written to a node, as the members of a JSON merge patch.
type change struct {
	metadata, spec map[string]any
	refused        []string // what others hold with another value, in words, sorted
}

func (c *change) isEmpty() bool { return len(c.metadata)+len(c.spec) == 0 }

// patch returns the merge patch. It holds for the version of the node that it was planned on, and for no other.
func (c *change) patch(resourceVersion string) ([]byte, error) {
	metadata := map[string]any{"resourceVersion": resourceVersion}
	maps.Copy(metadata, c.metadata)
	doc := map[string]any{"metadata": metadata}
	if len(c.spec) > 0 {
		doc["spec"] = c.spec
	}
	return json.Marshal(doc)
}

// plan compares a node with what is wanted. It sets what is missing, removes what was ours and is no longer wanted,
// and leaves what others hold with another value.
//
// A node without our annotation has registered with the values of its machine's configuration. Wanted values that are
// there already are ours from the start. Another value was set by somebody else.
func plan(n *corev1.Node, providerID string, w Wanted) change {
	var before owned
	note, isKnown := n.Annotations[AnnotationOwned]
	if isKnown && json.Unmarshal([]byte(note), &before) != nil {
		before = owned{} // somebody else wrote it: nothing that is there now is ours
	}
	// What is ours is written into the same patch as the values. If the process dies, both are there or neither.
	c := change{metadata: map[string]any{}, spec: map[string]any{}}
	var after owned
	labels := c.pairs("label", n.Labels, w.Labels, before.Labels, !isKnown, &after.Labels)
	annotations := c.pairs("annotation", n.Annotations, w.Annotations, before.Annotations, !isKnown, &after.Annotations)
	taints, isChanged := c.taints(n.Spec.Taints, w.Taints, before.Taints, !isKnown, &after.Taints)
	switch text, err := json.Marshal(after); {
	case err != nil: // strings only
	case after.isEmpty() && isKnown && before.isEmpty():
	case after.isEmpty() && !isKnown:
	case string(text) != note:
		annotations[AnnotationOwned] = string(text)
	}
	if len(labels) > 0 {
		c.metadata["labels"] = labels
	}
	if len(annotations) > 0 {
		c.metadata["annotations"] = annotations
	}
	if isChanged {
		c.spec["taints"] = taints
	}
	if n.Spec.ProviderID == "" && providerID != "" {
		c.spec["providerID"] = providerID
	}
	slices.Sort(c.refused)
	return c
}

func (c *change) refuse(format string, args ...any) {
	c.refused = append(c.refused, fmt.Sprintf(format, args...))
}

// pairs plans labels or annotations. It returns what to write, where nil deletes.
func (c *change) pairs(what string, have, want map[string]string, ours []string, isNew bool, own *[]string) map[string]any {
	out := map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		v := want[k]
		now, isThere := have[k]
		isOurs := slices.Contains(ours, k) || isNew && now == v
		switch {
		case isReserved(k):
			if !isThere || now != v {
				c.refuse("%s %s is kept by Kubernetes itself", what, k)
			}
			continue
		case isThere && now == v && !isOurs:
			continue // somebody else says the same
		case isThere && now != v && !isOurs:
			c.refuse("%s %s is %q, set by somebody else; wanted is %q", what, k, now, v)
			continue
		case !isThere || now != v:
			out[k] = v
		}
		*own = append(*own, k)
	}
	for _, k := range ours {
		_, isWanted := want[k]
		if _, isThere := have[k]; isThere && !isWanted && !isReserved(k) {
			out[k] = nil
		}
	}
	return out
}

// isReserved reports whether a key is the kubelet's or ours to keep books with.
func isReserved(key string) bool {
	switch key {
	case corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, AnnotationOwned:
		return true
	}
	return false
}

func taintKey(t *corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

// isControllers reports whether a taint is put on nodes, and taken away, by controllers or installers of Kubernetes.
func isControllers(t *corev1.Taint) bool {
	return strings.HasPrefix(t.Key, "node.kubernetes.io/") || strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/")
}

func isInstallers(t *corev1.Taint) bool { return strings.HasPrefix(t.Key, "node-role.kubernetes.io/") }

// taints plans the whole list, in the order in which it is, and says whether it differs.
func (c *change) taints(have, want []corev1.Taint, ours []string, isNew bool, own *[]string) (out []corev1.Taint, isChanged bool) {
	wanted := map[string]*corev1.Taint{}
	for i := range want {
		if t := &want[i]; isControllers(t) {
			c.refuse("taint %s is kept by Kubernetes itself", taintKey(t))
		} else {
			wanted[taintKey(t)] = t
		}
	}
	there := map[string]bool{}
	for _, t := range have {
		key := taintKey(&t)
		there[key] = true
		w := wanted[key]
		isOurs := slices.Contains(ours, key) || isNew && !isInstallers(&t) && w != nil && w.Value == t.Value
		switch {
		case w == nil && slices.Contains(ours, key):
			isChanged = true
			continue
		case w == nil:
		case !isOurs && t.Value != w.Value:
			c.refuse("taint %s is %q, set by somebody else; wanted is %q", key, t.Value, w.Value)
		case isOurs:
			*own = append(*own, key)
			if t.Value != w.Value {
				t, isChanged = corev1.Taint{Key: w.Key, Value: w.Value, Effect: w.Effect}, true
			}
		}
		out = append(out, t)
	}
	for i := range want {
		t := &want[i]
		if key := taintKey(t); wanted[key] != nil && !there[key] {
			there[key], isChanged = true, true
			*own = append(*own, key)
			out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	slices.Sort(*own)
	return out, isChanged
}
