// Package node owns what happens to the Kubernetes node that a machine becomes. It finds the Node, sets its provider
// ID, labels, annotations and taints, and reports its state. It drains the node before its host goes, and deletes its
// object afterwards. It never touches a node that is not ours, and never what others have set on ours.
//
// There are two users. The engine calls Nodes, with the kubeconfig of a join target. Controllers use the clusters of
// a Set, with a kubeconfig that they have read themselves.
//
// Start reading at match, here, and plan in wanted.go. They hold the rules for both users, and are pure. Then read
// Observe and Drain.
package node

import (
	"maps"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"slipway.dev/slipway/kubernetes/contract"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

// Identity is how the node of a machine is recognised.
type Identity struct {
	ProviderID string // of the claim
	Machine    string // name in the inventory, which is the value of the label metal.slipway.dev/machine
	SystemUUID string // that the firmware of its host says, "" when unknown
	Hostname   string
	// ClaimedAt is when the machine got its host. An older node without a provider ID is never taken for ours.
	// Without ClaimedAt, no node is taken for ours by its name alone.
	ClaimedAt time.Time
}

// IdentityOf returns how the node of a machine is recognised, as far as the machine has a host and a claim.
func IdentityOf(v *contract.View) Identity {
	id := Identity{ProviderID: v.ProviderID, Machine: v.Machine.Name, Hostname: v.Machine.Hostname}
	if v.Host != nil {
		id.SystemUUID = v.Host.UUID
	}
	if v.Claim != nil {
		id.ClaimedAt = v.Claim.CreatedAt
	}
	return id
}

// Node is what is kept of a node of a workload cluster.
type Node struct {
	Name, UID  string
	ProviderID string
	SystemUUID string
	Labels     map[string]string // not to be changed
}

func seen(n *corev1.Node) *Node {
	return &Node{n.Name, string(n.UID), n.Spec.ProviderID, n.Status.NodeInfo.SystemUUID, n.Labels}
}

// clockSkew is how far the clock of a cluster may be from ours.
const clockSkew = 5 * time.Minute

// likeness is how a node without a provider id is like a machine; more is better.
type likeness int

const (
	unlike likeness = iota
	likeName
	likeSystem
	likeLabel
)

// like compares all but provider ids.
func (id *Identity) like(n *corev1.Node) likeness {
	switch {
	case id.Machine != "" && n.Labels[metal.LabelMachine] == id.Machine:
		return likeLabel
	case sameSystem(id.SystemUUID, n.Status.NodeInfo.SystemUUID):
		return likeSystem
	case id.Hostname != "" && n.Name == id.Hostname:
		return likeName
	}
	return unlike
}

// isOlder reports whether a node was there before the machine had its host.
func (id *Identity) isOlder(n *corev1.Node) bool {
	return !id.ClaimedAt.IsZero() && n.CreationTimestamp.Add(clockSkew).Before(id.ClaimedAt)
}

// found is what match made of some nodes.
type found struct {
	node    *corev1.Node // ours; nil for none
	twins   []string     // names of several nodes with our provider id
	foreign *corev1.Node // like the machine, and of another provider id
	older   *corev1.Node // like the machine, without a provider id, and older than its claim
}

// match finds the node of a machine: the one with its provider ID. Else, among those without any, it takes the one
// with its label, on its hardware, or with its name. Of two equal candidates it takes neither: deleting the wrong
// node is worse than waiting.
func match(id Identity, nodes []*corev1.Node) found {
	var f found
	var best, foreignBest likeness
	for _, n := range nodes {
		if n.Spec.ProviderID == id.ProviderID && id.ProviderID != "" {
			f.twins = append(f.twins, n.Name)
			// Only this claim has the provider ID: it beats every likeness.
			f.node, best = n, likeLabel+1
			continue
		}
		like := id.like(n)
		switch {
		case like == unlike:
		case n.Spec.ProviderID != "":
			if like > foreignBest {
				f.foreign, foreignBest = n, like
			}
		case id.isOlder(n):
			f.older = n
		// A name alone proves nothing. Without the time of the claim, a node of years ago could have it.
		case like == likeName && id.ClaimedAt.IsZero():
		case like > best:
			f.node, best = n, like
		case like == best:
			f.node = nil // nobody can say which
		}
	}
	if len(f.twins) < 2 {
		f.twins = nil
	} else {
		f.node = nil
	}
	return f
}

// sameSystem compares two system UUIDs. Firmware and kernels disagree about the byte order of the first three fields.
func sameSystem(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return isSystem(a) && (a == b || swapped(a) == b)
}

// isSystem reports whether a UUID tells one system from others: careless vendors fill in one digit, or always the same.
func isSystem(u string) bool {
	if len(u) != 36 || u == "03000200-0400-0500-0006-000700080009" {
		return false
	}
	return strings.Trim(u, "0-") != "" && strings.Trim(u, "f-") != ""
}

// swapped returns a UUID with the first three fields in the other byte order.
func swapped(u string) string {
	if len(u) != 36 {
		return u
	}
	out := []byte(u)
	for _, field := range [][2]int{{0, 8}, {9, 13}, {14, 18}} {
		for i := field[0]; i < field[1]; i += 2 {
			j := field[0] + field[1] - i - 2
			out[j], out[j+1] = u[i], u[i+1]
		}
	}
	return string(out)
}

// isReachable reports whether the control plane hears of a node's kubelet.
func isReachable(n *corev1.Node) bool {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status != corev1.ConditionUnknown
		}
	}
	return true
}

// trim keeps of a node what this package reads, so that watching many costs little. A heartbeat alone then changes
// nothing.
func trim(n *corev1.Node) *corev1.Node {
	out := &corev1.Node{}
	out.Name, out.UID, out.ResourceVersion, out.CreationTimestamp = n.Name, n.UID, n.ResourceVersion, n.CreationTimestamp
	out.Labels, out.Annotations = maps.Clone(n.Labels), maps.Clone(n.Annotations)
	out.DeletionTimestamp = n.DeletionTimestamp
	out.Spec.ProviderID, out.Spec.Unschedulable = n.Spec.ProviderID, n.Spec.Unschedulable
	out.Spec.Taints = n.Spec.Taints
	info := n.Status.NodeInfo
	out.Status.NodeInfo = corev1.NodeSystemInfo{
		SystemUUID: info.SystemUUID, KubeletVersion: info.KubeletVersion,
		ContainerRuntimeVersion: info.ContainerRuntimeVersion, OSImage: info.OSImage,
	}
	out.Status.Addresses = n.Status.Addresses
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			out.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: steady(c.Message)}}
		}
	}
	return out
}

var durations = regexp.MustCompile(`(\d+(\.\d+)?(h|m|s|ms|µs|us|ns))+\b`)

// steady takes out of a kubelet's words what is different each time: how long ago something was.
func steady(text string) string { return durations.ReplaceAllString(text, "some time") }
