package manager

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/manifests"
)

// Result is the outcome of one check.
type Result struct {
	Name   string
	IsGood bool
	Detail string
	Hint   string
}

// Checked says whether a cluster can be attached.
type Checked struct {
	Cluster    string
	UID        string
	Kubernetes string // version of its API server
	Results    []Result
}

func (k *Checked) good(name, detail string) {
	k.Results = append(k.Results, Result{Name: name, IsGood: true, Detail: detail})
}

func (k *Checked) bad(name string, err error) {
	e := asError(k.Cluster, err)
	k.Results = append(k.Results, Result{Name: name, Detail: e.Msg, Hint: e.Hint})
}

// Check tests whether a cluster can be attached, and changes nothing there. text is its kubeconfig; nil takes the
// stored one. A failure is a result and no error.
func (a *Attacher) Check(ctx context.Context, c inventory.Cluster, text []byte) (k Checked) {
	k.Cluster = c.Name
	if text != nil { // it is not attached: a command that names it would find no cluster
		defer func() {
			for i := range k.Results {
				k.Results[i].Hint = strings.ReplaceAll(k.Results[i].Hint, "slipway cluster check "+c.Name, "slipway cluster check --kubeconfig FILE")
			}
		}()
	}
	var (
		p   *peer
		err error
	)
	if text == nil {
		p, err = a.connect(ctx, c)
	} else {
		p, err = a.open(c.Name, "the kubeconfig of cluster "+c.Name, text)
	}
	if err != nil {
		k.bad("kubeconfig", err)
		return k
	}
	defer p.hangUp()
	k.good("kubeconfig", "holds its credentials, and trusts the server's certificate authority only")
	// In the order of session: the first refusal here is the one that attaching would meet.
	err = p.greet(ctx, c.Namespaces)
	k.UID, k.Kubernetes = p.uid, p.version
	if err != nil {
		k.bad("server", err)
		return k
	}
	k.good("server", p.cfg.Host+" answers, Kubernetes "+p.version)
	if err := cmp.Or(a.isImpostor(ctx, c, p), a.isTwice(ctx, c, p.uid), a.isVouched(ctx, c, p)); err != nil {
		k.bad("cluster", err)
		return k
	}
	modes := modesOf(c)
	k.kinds(ctx, p, modes)
	switch lacking, err := p.lacks(ctx, modes, c.Namespaces); {
	case err != nil:
		k.bad("rights", err)
	case len(lacking) > 0:
		k.bad("rights", missing(c.Name, lacking))
	default:
		k.reach(ctx, p, c.Namespaces)
	}
	if slices.Contains(modes, inventory.ModeCAPI) {
		k.capi(ctx, p)
	}
	opts := Options{Namespaces: c.Namespaces, WatchFilter: c.WatchFilter}
	holder, err := p.holder(ctx, opts)
	switch own := a.cfg.Identity + "/"; {
	case err != nil:
		k.bad("lease", err)
	case holder == "" || strings.HasPrefix(holder, own):
		k.good("lease", "no other process runs the controllers")
	default:
		k.good("lease", "the controllers run at "+inventory.Clean(holder, 200)+"; this server stands by")
	}
	return k
}

// reach says how far the account goes.
func (k *Checked) reach(ctx context.Context, p *peer, namespaces []string) {
	r, err := p.reach(ctx, namespaces)
	switch {
	case err != nil:
		k.bad("rights", err)
	case r.IsNarrow:
		k.good("rights", "the account has rights in "+strings.Join(namespaces, ", ")+" only: MetalHosts and MetalPools are not shown in this cluster")
	case r.IsLimited && len(r.Secrets) == 0:
		k.good("rights", "the account may do all that the controllers do, but reads Secrets of no namespace: bind the ClusterRole slipway-secrets where machines need them")
	case r.IsLimited:
		k.good("rights", "the account may do all that the controllers do, and reads Secrets of "+strings.Join(r.Secrets, ", "))
	default:
		k.good("rights", "the account may do all that the controllers do")
	}
}

// kinds looks whether a cluster has our kinds, or the account may install them.
func (k *Checked) kinds(ctx context.Context, p *peer, modes []inventory.ClusterMode) {
	mayInstall, err := p.may(ctx, authorizationv1.ResourceAttributes{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verb: "patch"})
	if err != nil {
		k.bad("kinds", err)
		return
	}
	absent, err := p.absent(ctx, modes)
	switch {
	case err != nil:
		k.bad("kinds", err)
	case mayInstall && len(absent) > 0:
		k.good("kinds", "will be installed: "+listed(absent))
	case len(absent) > 0:
		k.bad("kinds", inventory.Errorf(inventory.Forbidden, "cluster %s does not have %s, and the account may not install it", p.name, listed(absent)).
			WithHint("%s", grant(p.name)))
	default:
		k.good("kinds", "are installed")
	}
}

// capi says whether a cluster has the Cluster API. That it has not is no failure: its controllers wait for it.
func (k *Checked) capi(ctx context.Context, p *peer) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	_, err := p.disco.RESTClient().Get().AbsPath("/apis/cluster.x-k8s.io/v1beta2").Do(ctx).Raw()
	switch {
	case err == nil:
		k.good("cluster-api", "is there")
	case apierrors.IsNotFound(err):
		k.good("cluster-api", "is not there, or older than 1.11; its controllers start when it comes")
	default:
		k.bad("cluster-api", err)
	}
}

// right is something that an account may do.
type right struct{ group, resource, sub, verb, namespace string }

func (r right) String() string {
	what := r.resource
	if r.group != "" {
		what += "." + r.group
	}
	if r.sub != "" {
		what += "/" + r.sub
	}
	return what
}

// rights returns the rights that the controllers of some modes need, read from the roles that Install applies. There
// is no second list that could differ. namespaces is for an account with rights in those namespaces only.
func rights(modes []inventory.ClusterMode, namespaces []string) (all []right, err error) {
	objects, err := manifests.Objects(profileOf(modes))
	if len(namespaces) > 0 {
		objects, err = manifests.Namespaced(profileOf(modes), namespaces)
	}
	if err != nil {
		return nil, err
	}
	seen := map[right]bool{}
	for _, o := range objects {
		if k := o.GetKind(); k != "ClusterRole" && k != "Role" || isForOthers(o) {
			continue
		}
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return nil, err
		}
		for _, rule := range role.Rules {
			if len(rule.ResourceNames) > 0 {
				continue // asked about as a whole it would be refused
			}
			for _, g := range rule.APIGroups {
				for _, res := range rule.Resources {
					for _, v := range rule.Verbs {
						name, sub, _ := strings.Cut(res, "/")
						if r := (right{g, name, sub, v, o.GetNamespace()}); !seen[r] {
							seen[r] = true
							all = append(all, r)
						}
					}
				}
			}
		}
	}
	return all, nil
}

// isForOthers reports whether a role is added to roles of people or of other controllers, or is bound namespace by namespace.
func isForOthers(role *unstructured.Unstructured) bool {
	for label := range role.GetLabels() {
		if strings.Contains(label, "/aggregate-to-") || label == manifests.LabelPerNamespace {
			return true
		}
	}
	return false
}

// lacks returns the rights that an account does not have.
func (p *peer) lacks(ctx context.Context, modes []inventory.ClusterMode, namespaces []string) ([]right, error) {
	if !p.isNarrow {
		namespaces = nil
	}
	all, err := rights(modes, namespaces)
	if err != nil {
		return nil, err
	}
	// Each right is a request of its own; side by side a check takes a second and not a minute.
	has := make([]bool, len(all))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, r := range all {
		g.Go(func() (err error) {
			has[i], err = p.may(gctx, authorizationv1.ResourceAttributes{
				Group: r.group, Resource: r.resource, Subresource: r.sub, Verb: r.verb, Namespace: r.namespace,
			})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var lacking []right
	for i, r := range all {
		if !has[i] {
			lacking = append(lacking, r)
		}
	}
	return lacking, nil
}

// missing says which rights an account lacks, by what they are about.
func missing(cluster string, lacking []right) *inventory.Error {
	var about []string
	verbs := map[string][]string{}
	for _, r := range lacking {
		if verbs[r.String()] == nil {
			about = append(about, r.String())
		}
		if !slices.Contains(verbs[r.String()], r.verb) {
			verbs[r.String()] = append(verbs[r.String()], r.verb)
		}
	}
	slices.Sort(about)
	var parts []string
	for _, what := range about {
		slices.Sort(verbs[what])
		parts = append(parts, strings.Join(verbs[what], ",")+" "+what)
	}
	more := ""
	if len(parts) > 6 {
		parts, more = parts[:6], fmt.Sprintf("; and %d more", len(parts)-6)
	}
	return inventory.Errorf(inventory.Forbidden, "in cluster %s the account of the kubeconfig may not: %s%s", cluster, strings.Join(parts, "; "), more).
		WithHint("%s", grant(cluster))
}
