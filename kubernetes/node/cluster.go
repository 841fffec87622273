package node

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/kubernetes/join"
	"slipway.dev/slipway/kubernetes/kubeconfig"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

const (
	// manager is the name that our writes go under.
	manager = "slipway-node"
	// callTimeout bounds a call to a cluster, and drainTimeout one look at a node that is being emptied.
	callTimeout  = 10 * time.Second
	drainTimeout = 20 * time.Second
	pageSize     = 500
)

// Cluster speaks to one workload cluster. Many goroutines may call it. Only its connections hold credentials.
type Cluster struct {
	name string // for people
	api  kubernetes.Interface
	now  func() time.Time

	watch *watch // nil where nothing is watched

	mu       sync.Mutex
	detached map[types.UID]time.Time // since when the volumes of an empty node are waited for
}

// open makes a cluster from a kubeconfig that holds its credentials itself. It opens no connection. wrap sees every call.
func open(name, what string, text []byte, now func() time.Time, policy *egress.Policy, wrap func(http.RoundTripper) http.RoundTripper) (*Cluster, error) {
	cfg, err := kubeconfig.Parse(what, text)
	if err != nil {
		return nil, err
	}
	cfg.AcceptContentTypes, cfg.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
	cfg.Dial = policy.DialCluster
	if wrap != nil {
		cfg.Wrap(wrap)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "%s is not a kubeconfig that can be used", what).WithHint("it holds a certificate or key that is none")
	}
	api, err := kubernetes.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "%s is not a kubeconfig that can be used", what).WithHint("it holds a certificate or key that is none")
	}
	return &Cluster{name: name, api: api, now: now, detached: map[types.UID]time.Time{}}, nil
}

// failure says what a failed call means for an admin.
func (c *Cluster) failure(action string, err error) error {
	e := join.Failure(c.name, action, err)
	if e.Kind == inventory.Forbidden {
		return e.WithHint("an administrator of the cluster runs: slipway target rbac %s --nodes | kubectl apply --server-side -f -", c.name)
	}
	return e
}

// find asks the cluster for the node of a machine: by its name first, then by its label, then among all.
func (c *Cluster) find(ctx context.Context, id Identity) (*corev1.Node, error) {
	// One request is enough for most nodes: they are named after their machine.
	if id.Hostname != "" {
		n, err := c.api.CoreV1().Nodes().Get(ctx, id.Hostname, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, c.failure("read node "+id.Hostname, err)
		}
		if err == nil {
			if f := match(id, []*corev1.Node{n}); f.node != nil {
				return n, nil
			}
		}
	}
	// Provider IDs cannot be selected by. So the last resort is to read all nodes, page by page.
	selectors := []string{""}
	if id.Machine != "" {
		selectors = []string{metal.LabelMachine + "=" + id.Machine, ""}
	}
	for _, selector := range selectors {
		nodes, err := c.list(ctx, selector)
		if err != nil {
			return nil, err
		}
		if f := match(id, nodes); f.node != nil || len(f.twins) > 0 {
			return f.node, nil
		}
	}
	return nil, nil
}

// list returns the nodes with labels, as trimmed as those that are watched.
func (c *Cluster) list(ctx context.Context, selector string) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	o := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for {
		page, err := c.api.CoreV1().Nodes().List(ctx, o)
		if err != nil {
			return nil, c.failure("list nodes", err)
		}
		nodes = slices.Grow(nodes, len(page.Items))
		for i := range page.Items {
			nodes = append(nodes, trim(&page.Items[i]))
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return nodes, nil
		}
	}
}

// Delete deletes the object of a machine's node. A missing node, or one that is not ours, is no error. The UID as a
// precondition keeps it from deleting a new node of the same name.
func (c *Cluster) Delete(ctx context.Context, id Identity) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, err := c.find(ctx, id)
	if err != nil || n == nil {
		return err
	}
	err = c.api.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &n.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // a conflict: that node is gone, and its name taken again
		return c.failure("delete node "+n.Name, err)
	}
	c.emptied(n.UID, false)
	return nil
}

// Taint sets or removes a taint on a machine's node, and leaves other taints. A missing node is no error. It is for
// taints that no machine asks for, such as node.kubernetes.io/out-of-service while a host is off.
func (c *Cluster) Taint(ctx context.Context, id Identity, t corev1.Taint, on bool) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for try := 1; ; try++ {
		// The list of taints is one field. It is read again for each try, so that a taint of somebody else is not lost.
		n, err := c.find(ctx, id)
		if err != nil || n == nil {
			return err
		}
		kept := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(x corev1.Taint) bool { return x.MatchTaint(&t) })
		isThere := len(kept) < len(n.Spec.Taints)
		if isThere == on {
			return nil
		}
		if on {
			kept = append(kept, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
		if isLate, err := c.write(ctx, n, &change{spec: map[string]any{"taints": kept}}, try); err != nil || !isLate {
			return err
		}
	}
}

// write writes a change of a node. isLate says that somebody else has changed the node meanwhile; the last try returns that as
// an error.
func (c *Cluster) write(ctx context.Context, n *corev1.Node, p *change, try int) (isLate bool, err error) {
	body, err := p.patch(n.ResourceVersion)
	if err != nil {
		return false, inventory.Errorf(inventory.Internal, "cannot write the change of node %s: %w", n.Name, err)
	}
	_, err = c.api.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: manager})
	switch {
	case apierrors.IsConflict(err) && try < 5:
		return true, nil
	case err != nil:
		return false, c.failure("change node "+n.Name, err)
	}
	return false, nil
}

// Check makes one call that needs no rights, and returns what keeps it from working.
func (c *Cluster) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := c.api.CoreV1().RESTClient().Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return c.failure("read its version", err)
	}
	return nil
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
