package manager

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/kubernetes/controllers"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

const (
	// reachEvery is how often it is looked whether an account that may read Secrets of some namespaces may read others now.
	reachEvery = time.Minute
	// reachSoon is the least pause between two looks, when somebody was refused.
	reachSoon = 5 * time.Second
)

// errReach ends a manager whose account has got or lost rights. Run then starts another one at once, with a cache
// that fits.
var errReach = errors.New("the rights of the account have changed")

// reach finds out in which namespaces an account may read Secrets. It asks for the whole cluster, else for the given
// namespaces, else for those with objects of ours. A watch of a namespace without rights would fail and end the whole
// cache.
func (p *peer) reach(ctx context.Context, namespaces []string) (*controllers.Reach, error) {
	r := &controllers.Reach{IsNarrow: p.isNarrow}
	isEverywhere, err := p.maySecrets(ctx, "")
	if err != nil || isEverywhere {
		return r, err
	}
	// From here on the cache of Secrets is made for single namespaces. follow looks whether there are more of them.
	r.IsLimited = true
	if len(namespaces) == 0 {
		if namespaces, err = p.inhabited(ctx); err != nil {
			return nil, err
		}
	}
	namespaces = slices.Clone(namespaces)
	slices.Sort(namespaces)
	// Each goroutine writes a place of its own. No lock is needed, and the order stays.
	may := make([]bool, len(namespaces))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, ns := range namespaces {
		g.Go(func() (err error) {
			may[i], err = p.maySecrets(gctx, ns)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, ns := range namespaces {
		if may[i] {
			r.Secrets = append(r.Secrets, ns)
		}
	}
	return r, nil
}

// maySecrets asks whether Secrets may be read and watched in a namespace, or in all for "".
func (p *peer) maySecrets(ctx context.Context, namespace string) (bool, error) {
	for _, verb := range []string{"list", "watch", "get"} {
		is, err := p.may(ctx, authorizationv1.ResourceAttributes{Resource: "secrets", Verb: verb, Namespace: namespace})
		if err != nil || !is {
			return false, err
		}
	}
	return true, nil
}

// inhabited are the namespaces in which there are machines and join targets, and those that hosts name.
func (p *peer) inhabited(ctx context.Context) (names []string, err error) {
	for _, kind := range []string{metal.KindMetalMachine, metal.KindJoinTarget, metal.KindMetalHost} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(metal.GroupVersion.WithKind(kind + "List"))
		err := p.client.List(ctx, list)
		// The kind is not installed yet, so that it has no objects.
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			ns := list.Items[i].GetNamespace()
			if ns == "" {
				ns, _, _ = unstructured.NestedString(list.Items[i].Object, "spec", "power", "credentialsRef", "namespace")
			}
			if ns != "" {
				names = append(names, ns)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// follow ends with errReach once an account that may read Secrets of some namespaces may read those of others.
func (p *peer) follow(ctx context.Context, namespaces []string, is *controllers.Reach) error {
	if !is.IsLimited {
		<-ctx.Done()
		return nil
	}
	for {
		t := time.NewTimer(reachEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-is.Asked():
			t.Stop()
		case <-t.C:
		}
		// A question without an answer changes nothing: controllers that run are not ended for it.
		now, err := p.reach(ctx, namespaces)
		if err == nil && !now.Same(is) {
			return errReach
		}
		// Refusals come in crowds, one for each object. One look answers all that came meanwhile.
		_ = sleep.For(ctx, reachSoon)
	}
}
