package join

import (
	"bytes"
	"context"
	"net/http"
	"sync/atomic"
	"time"

	authzv1 "k8s.io/api/authorization/v1"
	certsv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/kubernetes/kubeconfig"
)

const callTimeout = 5 * time.Second // of one call to a cluster

// cluster speaks to one API server. The full client of client-go would link every API group; four are enough. Many
// goroutines may use it.
type cluster struct {
	target                   string
	ca                       []byte // that the kubeconfig trusts, PEM
	core, certs, authz, rbac *rest.RESTClient
	params                   runtime.ParameterCodec
	skew                     *atomic.Int64 // its clock minus ours at its latest answer, in nanoseconds
}

// connection is a cluster with the versions of what it was made from.
type connection struct {
	*cluster
	secret  string
	version int64
}

// newCluster reads a kubeconfig and makes the clients.
func newCluster(target *inventory.JoinTarget, text []byte, now func() time.Time, policy *egress.Policy) (*cluster, error) {
	cfg, err := restConfig(target, text)
	if err != nil {
		return nil, err
	}
	// Objects of an attached cluster can bring a kubeconfig here. It must not lead to addresses that only this server reaches.
	cfg.Dial = policy.DialCluster
	c := &cluster{target: target.Name, ca: cfg.CAData, skew: new(atomic.Int64)}
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &clockReader{rt, now, c.skew} })
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, certsv1.AddToScheme, authzv1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, inventory.Errorf(inventory.Internal, "cannot speak Kubernetes: %w", err)
		}
	}
	c.params = runtime.NewParameterCodec(scheme)
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, badKubeconfig(target, err)
	}
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	for gv, to := range map[schema.GroupVersion]**rest.RESTClient{
		corev1.SchemeGroupVersion: &c.core, certsv1.SchemeGroupVersion: &c.certs,
		authzv1.SchemeGroupVersion: &c.authz, rbacv1.SchemeGroupVersion: &c.rbac,
	} {
		group := rest.CopyConfig(cfg)
		group.GroupVersion, group.NegotiatedSerializer, group.APIPath = &gv, codecs, "/apis"
		if gv.Group == "" {
			group.APIPath = "/api"
		}
		if *to, err = rest.RESTClientForConfigAndClient(group, client); err != nil {
			return nil, badKubeconfig(target, err)
		}
	}
	return c, nil
}

// restConfig reads a kubeconfig.
func restConfig(target *inventory.JoinTarget, text []byte) (*rest.Config, error) {
	return kubeconfig.Parse("target "+target.Name+": secret "+target.Kubeconfig, text)
}

// clockReader notes the difference between the clock of a server and ours.
type clockReader struct {
	rt   http.RoundTripper
	now  func() time.Time
	skew *atomic.Int64
}

// RoundTrip sends a request and reads the Date of the answer. HTTP dates have whole seconds, so that half a second is
// added.
func (c *clockReader) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.rt.RoundTrip(r)
	if err == nil {
		if at, e := http.ParseTime(resp.Header.Get("Date")); e == nil {
			c.skew.Store(int64(at.Add(500 * time.Millisecond).Sub(c.now())))
		}
	}
	return resp, err
}

func (c *cluster) createSecret(ctx context.Context, s *corev1.Secret) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.core.Post().Namespace(s.Namespace).Resource("secrets").Body(s).Do(ctx).Error()
}

func (c *cluster) deleteSecret(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.core.Delete().Namespace(metav1.NamespaceSystem).Resource("secrets").Name(name).Do(ctx).Error()
}

func (c *cluster) findNode(ctx context.Context, name string) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n := new(corev1.Node)
	return n, c.core.Get().Resource("nodes").Name(name).Do(ctx).Into(n)
}

const csrResource = "certificatesigningrequests"

func (c *cluster) findRequest(ctx context.Context, name string) (*certsv1.CertificateSigningRequest, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r := new(certsv1.CertificateSigningRequest)
	return r, c.certs.Get().Resource(csrResource).Name(name).Do(ctx).Into(r)
}

func (c *cluster) listRequests(ctx context.Context) (*certsv1.CertificateSigningRequestList, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	l := new(certsv1.CertificateSigningRequestList)
	return l, c.certs.Get().Resource(csrResource).Do(ctx).Into(l)
}

// watchRequests watches for as long as the server lets it; a quiet server ends it after window.
func (c *cluster) watchRequests(ctx context.Context, resourceVersion string, window time.Duration) (watch.Interface, error) {
	// No deadline of ours: the server ends the watch after window, and ctx ends it with the target.
	seconds := int64(window / time.Second)
	return c.certs.Get().Resource(csrResource).VersionedParams(&metav1.ListOptions{
		Watch: true, ResourceVersion: resourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	}, c.params).Watch(ctx)
}

// settle writes a decision on a request. The resource version in r makes it fail with a conflict when somebody else
// has decided meanwhile.
func (c *cluster) settle(ctx context.Context, r *certsv1.CertificateSigningRequest) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.certs.Put().Resource(csrResource).Name(r.Name).SubResource("approval").Body(r).Do(ctx).Error()
}

// mayI asks whether the account may do something.
func (c *cluster) mayI(ctx context.Context, what authzv1.ResourceAttributes) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	review := &authzv1.SelfSubjectAccessReview{Spec: authzv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	err := c.authz.Post().Resource("selfsubjectaccessreviews").Body(review).Do(ctx).Into(review)
	return review.Status.Allowed, err
}

// get reads a path as it is.
func (c *cluster) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.core.Get().AbsPath(path).Do(ctx).Raw()
}

// isSameCA reports whether two PEM texts are the same but for the space around them.
func isSameCA(a, b []byte) bool { return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b)) }
