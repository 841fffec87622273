package manager

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

const (
	callFor = 10 * time.Second // for one question to an API server
	// minVersion is the oldest API server: admission policies are there by default since then.
	minVersion = "1.30.0"
)

// peer is a cluster that this process speaks to. Its clients have connections of their own, which hangUp closes.
type peer struct {
	name    string
	cfg     *rest.Config
	client  client.Client // untyped and without a cache
	disco   *discovery.DiscoveryClient
	hangUp  func()
	version string
	uid     string
	// isNarrow says that the account has rights in the namespaces of its cluster only.
	isNarrow bool
}

func newPeer(name string, cfg *rest.Config) (*peer, error) {
	p := &peer{name: name, cfg: cfg}
	own, hangUp := ownConnections(cfg)
	p.hangUp = hangUp
	hc, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "cluster %s: its kubeconfig cannot be used", name).WithHint("it holds a certificate or key that is none")
	}
	if p.disco, err = discovery.NewDiscoveryClientForConfigAndClient(own, hc); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	p.client, err = client.New(own, client.Options{HTTPClient: hc, Scheme: scheme})
	return p, err
}

// ownConnections returns a copy of a configuration whose connections are closed by hangUp. client-go shares them between
// all clients with the same credentials, and would keep them open.
func ownConnections(cfg *rest.Config) (own *rest.Config, hangUp func()) {
	own = rest.CopyConfig(cfg)
	if own.QPS == 0 { // client-go would let five requests a second through; the server has its own limits
		own.QPS, own.Burst = 500, 1000
	}
	if own.Proxy == nil {
		own.Proxy = http.ProxyFromEnvironment // one that says its proxy is not shared
	}
	if own.UserAgent == "" || strings.HasPrefix(own.UserAgent, "slipway") {
		own.UserAgent = "slipway"
	}
	var (
		mu  sync.Mutex
		all []http.RoundTripper
	)
	own.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		mu.Lock()
		defer mu.Unlock()
		// Each client wraps its own transport, also those that controller-runtime makes later: so the lock.
		all = append(all, rt)
		return rt
	})
	return own, func() {
		mu.Lock()
		defer mu.Unlock()
		for _, rt := range all {
			utilnet.CloseIdleConnectionsFor(rt)
		}
	}
}

// greet asks a cluster who it is. namespaces are those that the controllers watch, none for all.
func (p *peer) greet(ctx context.Context, namespaces []string) error {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	v, err := p.askVersion(ctx)
	if err != nil {
		return err
	}
	// Kept before it is judged, because Check shows the version of a cluster that is too old.
	p.version = v
	if is, err := version.ParseGeneric(v); err == nil && is.LessThan(version.MustParseGeneric(minVersion)) {
		return inventory.Errorf(inventory.Invalid, "cluster %s runs Kubernetes %s; 1.30 or newer is needed", p.name, inventory.Clean(v, 64)).
			WithHint("upgrade its control plane: admission policies are checked by the API server itself since 1.30")
	}
	if err := p.narrow(ctx, namespaces); err != nil {
		return err
	}
	if p.uid, err = uidOf(ctx, p.client, namespaces); apierrors.IsForbidden(err) {
		return nil // Slipway checks its rights as a whole
	}
	return err
}

// askVersion asks for the version of the API server, which needs no rights.
func (p *peer) askVersion(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	raw, err := p.disco.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(raw, &v); err != nil || v.GitVersion == "" {
		return "", inventory.Errorf(inventory.Invalid, "cluster %s: there is nothing of Kubernetes where the kubeconfig points", p.name).
			WithHint("check the server address in the kubeconfig")
	}
	return v.GitVersion, nil
}

// narrow finds out whether an account has rights in its namespaces only. Without a list of namespaces it needs rights
// in the whole cluster.
func (p *peer) narrow(ctx context.Context, namespaces []string) error {
	if len(namespaces) == 0 {
		return nil
	}
	// MetalHosts have no namespace: an account that lists them has rights in the whole cluster.
	isWide, err := p.may(ctx, authorizationv1.ResourceAttributes{Group: metal.Group, Resource: "metalhosts", Verb: "list"})
	p.isNarrow = err == nil && !isWide
	return err
}

// uidOf returns what a cluster is known by: the UID of its namespace kube-system; where the account may not read that, the
// UID of the first of the namespaces that the controllers watch.
func uidOf(ctx context.Context, c client.Reader, namespaces []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	// No field of a cluster says who it is. This namespace exists as long as the cluster, and cannot be deleted.
	err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, n)
	if apierrors.IsForbidden(err) && len(namespaces) > 0 {
		return uidOfNamespace(ctx, c, first(namespaces))
	}
	return string(n.UID), err
}

// uidOfNamespace is what a cluster is known by whose account reads its own namespaces only.
func uidOfNamespace(ctx context.Context, c client.Reader, name string) (string, error) {
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	err := c.Get(ctx, client.ObjectKey{Name: name}, n)
	return string(n.UID), err
}

// isSame compares the UID that a cluster reports with the one of before, "" for the first time. A server behind the
// same address may be another cluster after a rebuild.
func isSame(name, before, uid string) error {
	if !inventory.IsClusterUID(uid) {
		return inventory.Errorf(inventory.Invalid, "cluster %s does not say who it is: %q is no UID", name, inventory.Clean(uid, 64)).
			WithHint("a cluster is known by the UID of its namespace kube-system: kubectl get namespace kube-system -o jsonpath={.metadata.uid}")
	}
	if before != "" && before != uid {
		return inventory.Errorf(inventory.Conflict, "cluster %s says now that it is another one: its UID was %s and is %s", name, inventory.Clean(before, 64), inventory.Clean(uid, 64)).
			WithHint("if it is a new cluster: slipway cluster detach %s, then attach it again, and name its pools again", name)
	}
	return nil
}

// may asks whether the account may do something.
func (p *peer) may(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	// Untyped, because the scheme of a peer knows the core group only: that keeps many attached clusters cheap.
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
	})
	if err != nil {
		return false, err
	}
	review := &unstructured.Unstructured{Object: content}
	review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
	if err := p.client.Create(ctx, review); err != nil {
		return false, err
	}
	allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed")
	return allowed, nil
}

// holder returns the holder of a manager's lease, "" for none. A lease that was not renewed for twice its duration
// has no holder.
func (p *peer) holder(ctx context.Context, o Options) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: coordinationv1.GroupName, Version: "v1", Kind: "Lease"})
	err := p.client.Get(ctx, client.ObjectKey{Namespace: p.leaseIn(o.Namespaces), Name: o.LeaseName()}, u)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var l coordinationv1.Lease
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &l); err != nil {
		return "", err
	}
	// Twice the duration, because the holder wrote the time by its own clock.
	if l.Spec.HolderIdentity == nil || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil ||
		l.Spec.RenewTime.Add(2*time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second).Before(time.Now()) {
		return "", nil
	}
	return *l.Spec.HolderIdentity, nil
}

// leaseIn is the namespace of a manager's lease: an account with rights in its namespaces only has it in the first of them.
func (p *peer) leaseIn(namespaces []string) string {
	if p.isNarrow {
		return first(namespaces)
	}
	return LeaseNamespace
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}
