package standalone

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// machines reconciles MetalMachines. Reconciles of different objects run at once, of one object never. mu guards sealed.
// A restart empties what is in memory: it fills again from events and Reconciles, and at worst an event is written twice.
type machines struct {
	*reporter
	env     controllers.Env
	feed    *controllers.Feed
	client  client.Client // reads from the cache, but for Secrets
	direct  client.Reader // asks the API server, where a cache that is late would do harm
	log     *slog.Logger
	nodes   *node.Set
	turns   *turns
	objects *objects
	boots   *controllers.Bootstraps
	orphans *controllers.Orphans
	now     func() time.Time

	mu     sync.Mutex
	sealed map[string]string // by name of a secret in the inventory: version that was sealed
}

func (r *machines) ownerOf(mm *v1alpha1.MetalMachine) contract.Owner {
	return contract.Owner{ClusterUID: r.env.ClusterUID, Namespace: mm.Namespace, Kind: v1alpha1.KindMetalMachine, Name: mm.Name, UID: string(mm.UID)}
}

// look reads from the inventory the machine of an object. No machine is no error: then p.view is nil.
func (r *machines) look(ctx context.Context, p *pass) error {
	v, err := r.env.Appliance.FindMachine(ctx, p.owner.String())
	switch {
	case inventory.IsKind(err, inventory.NotFound):
		p.view, p.facts.View = nil, nil
		return nil
	case err != nil:
		return fmt.Errorf("read the machine of %s: %w", p.owner, err)
	}
	r.see(p, &v)
	return nil
}

// see stores the machine of the pass, and remembers its name and host, so that events find the object.
func (r *machines) see(p *pass, v *contract.View) {
	p.view, p.facts.View = v, v
	r.objects.remember(client.ObjectKeyFromObject(p.mm), v)
}

// findTarget reads the join target that a machine names. It returns false, and records the reason, while nothing can
// be asked of the inventory without the target.
func (r *machines) findTarget(ctx context.Context, p *pass) (isReady bool, err error) {
	if !translate.IsNode(p.mm) {
		return true, nil
	}
	p.facts.Bootstrap.IsWanted = true
	name := p.mm.Spec.Bootstrap.Join.TargetRef.Name
	var jt v1alpha1.JoinTarget
	err = r.client.Get(ctx, types.NamespacedName{Namespace: p.mm.Namespace, Name: name}, &jt)
	switch {
	case apierrors.IsNotFound(err):
		p.facts.Bootstrap.Reason = v1alpha1.ReasonWaitingForBootstrapData
		p.facts.Bootstrap.Message = fmt.Sprintf("there is no JoinTarget %s in this namespace", name)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read JoinTarget %s: %w", name, err)
	}
	p.target = &jt
	p.facts.Node.IsWanted = translate.CanLookInto(&jt)
	if c := apimeta.FindStatusCondition(jt.Status.Conditions, conditionMirrored); c == nil || c.Status != metav1.ConditionTrue {
		p.facts.Bootstrap.Reason = v1alpha1.ReasonWaitingForBootstrapData
		p.facts.Bootstrap.Message = "JoinTarget " + name + " is not ready"
		if c != nil && c.Message != "" {
			p.facts.Bootstrap.Message += ": " + strings.TrimPrefix(c.Message, "JoinTarget "+name+": ")
		}
		// A machine that is there already goes on without the target: its deletion and its updates must not wait for a
		// Secret.
		return p.view != nil, nil
	}
	return true, nil
}

// options returns the parts of a machine that its object does not contain.
func (r *machines) options(p *pass) translate.Options {
	o := translate.Options{Owner: p.owner, Target: p.target, IsHeld: needsHold(p.mm), ReuseKey: reuseKey(p.mm)}
	if b := p.mm.Spec.Bootstrap; b != nil && b.DataSecretName != "" {
		o.BootstrapFrom = r.env.Cluster + "/" + p.mm.Namespace + "/" + b.DataSecretName
	}
	return o
}

// reuseKey names the group that prefers its own hosts again: the template of the object, its controller, or the
// object itself.
func reuseKey(mm *v1alpha1.MetalMachine) string {
	name := mm.Name
	if from := mm.Annotations[v1alpha1.CAPIClonedFromName]; from != "" {
		name = mm.Annotations[v1alpha1.CAPIClonedFromGroupKind] + "/" + from
	} else if o := metav1.GetControllerOf(mm); o != nil {
		name = o.Kind + "/" + o.Name
	}
	return mm.Namespace + "/" + name
}

// seal encrypts the values of the Secrets that files and users name, and stores them in the inventory. It reads a
// Secret again only when its version changed. After the machine has its configuration, nothing calls seal any more.
func (r *machines) seal(ctx context.Context, p *pass) error {
	for _, u := range translate.MachineSecrets(p.mm, p.owner) {
		key := types.NamespacedName{Namespace: u.Namespace, Name: u.Secret}
		version, err := secretVersion(ctx, r.client, r.env.Reach, key)
		if inventory.IsKind(err, inventory.Forbidden) {
			// No event says that somebody has granted the right.
			p.again = unreachableAgain
			p.wait(v1alpha1.ReasonWaitingForBootstrapData, "%s: %s", u.Field, controllers.Explain(err))
			return nil
		}
		if err != nil {
			return err
		}
		if version == "" {
			p.wait(v1alpha1.ReasonWaitingForBootstrapData, "%s: there is no Secret %s", u.Field, u.Secret)
			return nil
		}
		r.mu.Lock()
		// The lock covers the map only. Two passes of different machines may seal different secrets at once.
		isSealed := r.sealed[u.Name] == version
		r.mu.Unlock()
		if isSealed {
			continue
		}
		value, s, err := readSecret(ctx, r.client, key, u.Key)
		if err != nil {
			return err
		}
		if s == nil || value == nil {
			p.wait(v1alpha1.ReasonWaitingForBootstrapData, "%s: Secret %s has no key %s", u.Field, u.Secret, u.Key)
			return nil
		}
		plain, err := u.Value(value)
		if translate.IsInvalid(err) {
			p.facts.Invalid = err
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.env.Appliance.SaveSecret(ctx, u.Name, p.owner.String(), plain); err != nil {
			return fmt.Errorf("seal Secret %s: %w", u.Secret, err)
		}
		// After the save. If the process dies in between, the same value is saved again.
		r.mu.Lock()
		r.sealed[u.Name] = version
		r.mu.Unlock()
	}
	return nil
}
