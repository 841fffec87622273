package standalone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

const (
	hostsAtOnce = 4
	// hostAfter collects the events of a host before one Reconcile: a boot has a dozen of them within a second.
	hostAfter = 300 * time.Millisecond
)

// hostKey names the subject of a Reconcile: a row of the inventory, or an object without a row.
// Reconciles of one row never run at once, because the queue compares keys.
type hostKey struct {
	id   inventory.HostID
	name string // of the object; "" with an id
}

// setupHosts adds the controller of MetalHosts to a manager.
func setupHosts(mgr manager.Manager, env controllers.Env, feed *controllers.Feed) error {
	log := cmp.Or(env.Log, slog.New(slog.DiscardHandler))
	r := &hosts{env: env, client: mgr.GetClient(), direct: mgr.GetAPIReader(), events: mgr.GetEventRecorder("slipway"), cache: mgr.GetCache(), log: log.With("cluster", env.Cluster), now: time.Now, declarers: map[v1alpha1.MAC]string{}}
	if err := indexHosts(mgr); err != nil {
		return err
	}
	secrets := &metav1.PartialObjectMetadata{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	b := builder.TypedControllerManagedBy[hostKey](mgr).Named("metalhost").
		WithOptions(controller.TypedOptions[hostKey]{MaxConcurrentReconciles: hostsAtOnce}).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), client.Object(&v1alpha1.MetalHost{}),
			handler.TypedEnqueueRequestsFromMapFunc(r.ofObject), saidChanged)).
		WatchesRawSource(controllers.OnCalm(feed, hostAfter, r.ofEvent)).
		WatchesRawSource(controllers.Once(feed, r.all))
	if env.Reach.HasSecrets() {
		b = b.WatchesRawSource(source.TypedKind(mgr.GetCache(), client.Object(secrets), handler.TypedEnqueueRequestsFromMapFunc(r.ofSecret)))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("set up the controller of MetalHosts: %w", err)
	}
	return nil
}

func indexHosts(mgr manager.Manager) error {
	for name, values := range map[string]func(*v1alpha1.MetalHost) []string{
		byInventoryID: func(mh *v1alpha1.MetalHost) []string { return []string{mh.Spec.InventoryID} },
		byCredentials: func(mh *v1alpha1.MetalHost) []string {
			if mh.Spec.Power == nil || mh.Spec.Power.CredentialsRef == nil {
				return nil
			}
			return []string{mh.Spec.Power.CredentialsRef.Namespace + "/" + mh.Spec.Power.CredentialsRef.Name}
		},
		byBootMAC: func(mh *v1alpha1.MetalHost) (macs []string) {
			for _, mac := range mh.Spec.BootMACs {
				macs = append(macs, string(mac))
			}
			return macs
		},
	} {
		if err := controllers.Index(mgr, &v1alpha1.MetalHost{}, name, values); err != nil {
			return err
		}
	}
	return nil
}

// saidChanged passes changes that other people or programs make. It drops changes of the status: only this controller
// writes it, and would wake itself.
var saidChanged = predicate.Or[client.Object](
	predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}, finalizersChanged{},
)

// finalizersChanged passes changes of finalizers and the beginning of a deletion.
type finalizersChanged struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (finalizersChanged) Update(e event.UpdateEvent) bool {
	return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) ||
		e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
}

func (r *hosts) ofObject(_ context.Context, o client.Object) []hostKey {
	mh, ok := o.(*v1alpha1.MetalHost)
	switch {
	case !ok:
		return nil
	case mh.Spec.InventoryID != "":
		return []hostKey{{id: inventory.HostID(mh.Spec.InventoryID)}}
	}
	return []hostKey{{name: mh.Name}}
}

func (r *hosts) ofSecret(ctx context.Context, o client.Object) (keys []hostKey) {
	var list v1alpha1.MetalHostList
	if err := r.client.List(ctx, &list, client.MatchingFields{byCredentials: o.GetNamespace() + "/" + o.GetName()}); err != nil {
		// The cache fails only when the manager ends. A list that is lost comes back with the next version of the Secret.
		r.log.Warn("hosts of a secret not listed", "err", err)
	}
	for i := range list.Items {
		keys = append(keys, r.ofObject(ctx, &list.Items[i])...)
	}
	return keys
}

// chatter are prefixes of event kinds that change nothing in a MetalHost. A boot has many of them.
var chatter = []string{"dhcp.", "loader.", "script.", "artefact.", "config.", "agent.log", "agent.reported", "boot.reported", "session.", "address.", "join."}

func (r *hosts) ofEvent(ev inventory.Event) []hostKey {
	if ev.HostID == "" || slices.ContainsFunc(chatter, func(part string) bool { return strings.HasPrefix(ev.Kind, part) }) {
		return nil
	}
	return []hostKey{{id: ev.HostID}}
}

// all returns the keys of all rows, and of objects whose rows are gone. It runs once after the start, because events
// of the time before are lost.
func (r *hosts) all(ctx context.Context) (keys []hostKey, err error) {
	err = r.env.Appliance.EachHost(ctx, func(v contract.HostView) error {
		keys = append(keys, hostKey{id: v.Host.ID})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	var list v1alpha1.MetalHostList
	if err := r.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list MetalHosts: %w", err)
	}
	for i := range list.Items {
		keys = append(keys, r.ofObject(ctx, &list.Items[i])...)
	}
	return keys, nil
}

// Reconcile implements reconcile.TypedReconciler.
func (r *hosts) Reconcile(ctx context.Context, key hostKey) (reconcile.Result, error) {
	var err error
	again := time.Duration(0)
	// With a row, the row is the subject: several objects may point to it, and one pass cleans that up.
	if key.id != "" {
		err = r.show(ctx, key.id)
	} else {
		again, err = r.declare(ctx, key.name)
	}
	if apierrors.IsConflict(err) || inventory.IsKind(err, inventory.Conflict) { // somebody was quicker: look again
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// show brings the object of a row up to date, after it has taken over into the inventory what people changed in the
// object.
//
// The order is: inventory, object, status. If the process dies after the first, the next Reconcile finds both sides
// equal and writes only the object.
func (r *hosts) show(ctx context.Context, id inventory.HostID) error {
	v, err := r.env.Appliance.FindHost(ctx, id)
	if inventory.IsKind(err, inventory.NotFound) || inventory.IsKind(err, inventory.Forbidden) { // it is gone, or not this cluster's to see
		return r.drop(ctx, id, err)
	}
	if err != nil {
		return fmt.Errorf("read host %s: %w", id, err)
	}
	mh, err := r.object(ctx, &v.Host)
	if err != nil || mh == nil {
		return err
	}
	if !mh.DeletionTimestamp.IsZero() && v.Host.ClaimID == "" {
		return r.release(ctx, mh) // it comes back when it is gone: its host is still there
	}
	// A refusal by the inventory goes into the status, because people have to correct the object. All other errors are tried
	// again.
	said, problem := r.hear(ctx, mh, &v)
	if problem != nil && !translate.IsInvalid(problem) && !inventory.IsKind(problem, inventory.Invalid) {
		return problem
	}
	agreed := &said
	if problem != nil {
		agreed = nil
	}
	// After a refusal the values of people stay in the object as they are, so that they can see and correct them.
	if err := r.write(ctx, mh, &v.Host, agreed); err != nil {
		return err
	}
	return r.tell(ctx, mh, statusOf(&v, mh, problem, r.env.ClusterUID, r.now()))
}

// object returns the object of a row, or makes it. A renamed row gets a new object with the spec of the old one,
// since Kubernetes cannot rename. It returns nil after a create: the new object is in the cache at the next
// Reconcile.
func (r *hosts) object(ctx context.Context, h *inventory.Host) (*v1alpha1.MetalHost, error) {
	var list v1alpha1.MetalHostList
	if err := r.client.List(ctx, &list, client.MatchingFields{byInventoryID: string(h.ID)}); err != nil {
		return nil, fmt.Errorf("list MetalHosts of host %s: %w", h.Name, err)
	}
	var mine *v1alpha1.MetalHost
	for i := range list.Items {
		if list.Items[i].Name == h.Name {
			mine = &list.Items[i]
		}
	}
	if mine == nil {
		fresh := &v1alpha1.MetalHost{}
		if len(list.Items) > 0 { // renamed
			old := &list.Items[0]
			fresh.Labels, fresh.Annotations, fresh.Spec = old.Labels, old.Annotations, *old.Spec.DeepCopy()
		}
		// The old object stays until the next pass finds the new one. So a crash in between loses nothing that people said.
		return nil, r.create(ctx, fresh, h)
	}
	for i := range list.Items {
		if o := &list.Items[i]; o.Name != h.Name {
			if err := r.retire(ctx, o, "the host is called "+h.Name+" in Slipway now, and MetalHost "+h.Name+" says what this one said"); err != nil {
				return nil, err
			}
		}
	}
	return mine.DeepCopy(), nil
}

// create makes the object of a row. If an object of that name exists without a row, create binds it: somebody
// declared the host before it was found.
func (r *hosts) create(ctx context.Context, mh *v1alpha1.MetalHost, h *inventory.Host) error {
	mh.Name, mh.Spec.InventoryID = h.Name, string(h.ID)
	said := translate.Agree(agreed(mh), translate.SaidOf(mh), translate.SaidIn(h, mh.Spec.FailureDomain))
	// The object is complete from its first version. Everybody who watches it sees labels and facts at once.
	r.dress(mh, h, &said)
	err := r.client.Create(ctx, mh, client.FieldOwner(managerHost))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	var there v1alpha1.MetalHost
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(mh), &there); err != nil {
		return client.IgnoreNotFound(err)
	}
	switch there.Spec.InventoryID {
	case string(h.ID):
		return nil
	// Bound by a patch with an optimistic lock. If somebody else binds it at the same time, one of the two gets a conflict.
	case "":
		return r.adopt(ctx, &there, h.ID)
	}
	// The host that had the name has lost it: its object goes when it is looked at, and this one comes then.
	if err := r.show(ctx, inventory.HostID(there.Spec.InventoryID)); err != nil {
		return err
	}
	return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("metalhosts").GroupResource(), h.Name, errors.New("the name is taken"))
}

// drop deletes the objects of a row that is gone, or that this cluster may not see. It keeps an object that somebody
// applied (it has bootMACs), and says in its status why it shows no host.
func (r *hosts) drop(ctx context.Context, id inventory.HostID, why error) error {
	var list v1alpha1.MetalHostList
	if err := r.client.List(ctx, &list, client.MatchingFields{byInventoryID: string(id)}); err != nil {
		return fmt.Errorf("list MetalHosts of host %s: %w", id, err)
	}
	for i := range list.Items {
		o := list.Items[i].DeepCopy()
		// An object without MACs shows a row that this controller found. Without the row it says nothing.
		if len(o.Spec.BootMACs) == 0 || !o.DeletionTimestamp.IsZero() {
			if err := r.remove(ctx, o); err != nil {
				return err
			}
			continue
		}
		text := "the host is not in Slipway any more; delete this object, and apply it again without spec.inventoryID to declare a new host"
		if inventory.IsKind(why, inventory.Forbidden) {
			text = controllers.Explain(why)
		}
		if err := r.tellGone(ctx, o, text); err != nil {
			return err
		}
	}
	return nil
}

// tellGone says in the status of an object that it shows no host. It writes an event only when the condition changes.
func (r *hosts) tellGone(ctx context.Context, mh *v1alpha1.MetalHost, text string) error {
	if err := r.release(ctx, mh); err != nil {
		return err
	}
	s := v1alpha1.MetalHostStatus{Conditions: slices.Clone(mh.Status.Conditions), ObservedGeneration: mh.Generation}
	setCondition(&s.Conditions, mh.Generation, r.now(), v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonHostMissing, text)
	setCondition(&s.Conditions, mh.Generation, r.now(), v1alpha1.Available, metav1.ConditionFalse, v1alpha1.ReasonHostMissing, "")
	r.warn(mh, v1alpha1.ReasonHostMissing, text)
	return r.tell(ctx, mh, s)
}
