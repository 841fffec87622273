package standalone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/eventfeed"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// The field managers of what is written to MetalHosts.
const (
	managerHost       = "slipway-host"        // the object: labels, finalizer, what was said elsewhere
	managerHostStatus = "slipway-host-status" // its status
)

const (
	hostsAtOnce = 4
	// hostAfter gathers the events of a host: a boot has a dozen of them within a second.
	hostAfter = 300 * time.Millisecond
)

// The indexes of MetalHosts in the cache.
const (
	byInventoryID = "spec.inventoryID"
	byCredentials = "spec.power.credentialsRef"
	byBootMAC     = "spec.bootMACs"
)

// hostKey names what is looked at: a row of the inventory, or an object that has none yet.
type hostKey struct {
	id   inventory.HostID
	name string // of the object; "" with an id
}

// hosts reconciles MetalHosts with the rows of the inventory.
type hosts struct {
	env    contract.Env
	client client.Client
	direct client.Reader // asks the API server, where a cache that is late would do harm
	events events.EventRecorder
	cache  client.Reader // of the metadata of Secrets
	log    *slog.Logger
	now    func() time.Time

	mu        sync.Mutex
	declarers map[v1alpha1.MAC]string // by MAC: the object that declared it first
}

// setupHosts adds the controller of MetalHosts to a manager.
func setupHosts(mgr manager.Manager, env contract.Env, feed *eventfeed.Feed) error {
	log := env.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
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
		WatchesRawSource(eventfeed.OnCalm(feed, hostAfter, r.ofEvent)).
		WatchesRawSource(eventfeed.Once(feed, r.all))
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
		err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.MetalHost{}, name, func(o client.Object) []string {
			if mh, ok := o.(*v1alpha1.MetalHost); ok {
				return slices.DeleteFunc(values(mh), func(v string) bool { return v == "" })
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("index MetalHosts by %s: %w", name, err)
		}
	}
	return nil
}

// saidChanged leaves out what we write ourselves, the status: what else changes in an object is somebody's word.
var saidChanged = predicate.Or[client.Object](
	predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}, finalizersChanged{},
)

// finalizersChanged passes changes of finalizers and the beginning of a deletion.
type finalizersChanged struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (finalizersChanged) Update(e updateEvent) bool {
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
		r.log.Warn("hosts of a secret not listed", "err", err)
	}
	for i := range list.Items {
		keys = append(keys, r.ofObject(ctx, &list.Items[i])...)
	}
	return keys
}

// chatter are the parts of kinds of events that change nothing that a MetalHost shows; a boot is full of them.
var chatter = []string{"dhcp.", "loader.", "script.", "artefact.", "config.", "agent.log", "agent.reported", "boot.reported", "session.", "address.", "join."}

func (r *hosts) ofEvent(ev inventory.Event) []hostKey {
	if ev.HostID == "" || slices.ContainsFunc(chatter, func(part string) bool { return strings.HasPrefix(ev.Kind, part) }) {
		return nil
	}
	return []hostKey{{id: ev.HostID}}
}

// all are the rows that there are, and the objects of those that are gone.
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

// undeclaredAgain is how often it is looked whether the name of a declared host has become free.
const undeclaredAgain = time.Minute

// show makes the object of a row what it should be, after taking over what was said in it.
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
	said, problem := r.hear(ctx, mh, &v)
	if problem != nil && !translate.IsInvalid(problem) && !inventory.IsKind(problem, inventory.Invalid) {
		return problem
	}
	agreed := &said
	if problem != nil {
		agreed = nil
	}
	if err := r.write(ctx, mh, &v.Host, agreed); err != nil {
		return err
	}
	return r.tell(ctx, mh, statusOf(&v, mh, problem, r.env.ClusterUID, r.now()))
}

// object finds the object of a row, or makes it. A row that was renamed gets a new one, with all that was said in the
// old. nil: it will be there at the next look.
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

// create makes the object of a row. One of that name without a row was waiting for it.
func (r *hosts) create(ctx context.Context, mh *v1alpha1.MetalHost, h *inventory.Host) error {
	mh.Name, mh.Spec.InventoryID = h.Name, string(h.ID)
	said := translate.Agree(agreed(mh), translate.SaidOf(mh), translate.SaidIn(h, mh.Spec.FailureDomain))
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
	case "":
		return r.adopt(ctx, &there, h.ID)
	}
	// The host that had the name has lost it: its object goes when it is looked at, and this one comes then.
	if err := r.show(ctx, inventory.HostID(there.Spec.InventoryID)); err != nil {
		return err
	}
	return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("metalhosts").GroupResource(), h.Name, errors.New("the name is taken"))
}

// adopt binds an object to a row.
func (r *hosts) adopt(ctx context.Context, mh *v1alpha1.MetalHost, id inventory.HostID) error {
	to := mh.DeepCopy()
	to.Spec.InventoryID = string(id)
	return r.patch(ctx, mh, to)
}

// declare makes a row of an object that has none, or finds the one that it means by its MACs.
func (r *hosts) declare(ctx context.Context, name string) (again time.Duration, _ error) {
	var mh v1alpha1.MetalHost
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, &mh); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if mh.Spec.InventoryID != "" {
		return 0, nil
	}
	if !mh.DeletionTimestamp.IsZero() {
		return 0, r.release(ctx, &mh)
	}
	h, err := r.declared(ctx, &mh)
	switch {
	case inventory.IsKind(err, inventory.Conflict), inventory.IsKind(err, inventory.Invalid), inventory.IsKind(err, inventory.Forbidden),
		translate.IsInvalid(err):
		r.warn(&mh, string(v1alpha1.FailureInvalidConfiguration), messageWithHint(err))
		return undeclaredAgain, r.tell(ctx, &mh, undeclared(&mh, err, r.now())) // what is in the way may go
	case err != nil:
		return 0, fmt.Errorf("declare host %s: %w", name, err)
	}
	return 0, r.adopt(ctx, &mh, h.ID)
}

func (r *hosts) declared(ctx context.Context, mh *v1alpha1.MetalHost) (inventory.Host, error) {
	if err := inventory.CheckName("host", mh.Name); err != nil {
		return inventory.Host{}, err
	}
	in := translate.Host(mh, inventory.Host{Name: mh.Name})
	for _, mac := range mh.Spec.BootMACs {
		in.NICs = append(in.NICs, inventory.NIC{MAC: inventory.MAC(mac)})
	}
	if len(in.NICs) == 0 {
		return in, &translate.Invalid{Field: "spec.bootMACs", Msg: "no host has this name: name the MAC that it boots from"}
	}
	if other, err := r.other(ctx, mh); err != nil || other != "" {
		return in, cmp.Or(err, alike(other))
	}
	h, err := r.env.Appliance.DeclareHost(ctx, in)
	if err != nil || h.Name == mh.Name {
		return h, err
	}
	var bound v1alpha1.MetalHostList
	if err := r.client.List(ctx, &bound, client.MatchingFields{byInventoryID: string(h.ID)}); err != nil {
		return h, fmt.Errorf("list MetalHosts of host %s: %w", h.Name, err)
	}
	for i := range bound.Items {
		if o := &bound.Items[i]; o.Name != mh.Name && (len(o.Spec.BootMACs) > 0 || h.ClaimID != "") {
			return h, alike(o.Name)
		}
	}
	h.Name = mh.Name // it was discovered before it was declared, and has a name that nobody gave it
	return r.env.Appliance.UpdateHost(ctx, h)
}

func alike(other string) error {
	if other == "" {
		return nil
	}
	return &translate.Invalid{Field: "spec.bootMACs", Msg: "MetalHost " + other + " declares one of these MACs, and is this host: two objects cannot be one host; take the MAC out of one, or delete one"}
}

// other names another object that declares a MAC of this one, "" for none. The first that was looked at has it: that is
// remembered here, because a cache does not have yet what was applied in the same instant. Whether the other is still
// there, and still says so, is asked of the API server.
func (r *hosts) other(ctx context.Context, mh *v1alpha1.MetalHost) (string, error) {
	for _, mac := range mh.Spec.BootMACs {
		r.mu.Lock()
		first := r.declarers[mac]
		r.mu.Unlock()
		candidates := []string{first}
		var known v1alpha1.MetalHostList
		if err := r.client.List(ctx, &known, client.MatchingFields{byBootMAC: string(mac)}); err != nil {
			return "", fmt.Errorf("list MetalHosts with MAC %s: %w", mac, err)
		}
		for i := range known.Items {
			if known.Items[i].Spec.InventoryID != "" {
				candidates = append(candidates, known.Items[i].Name)
			}
		}
		for _, name := range candidates {
			if name == "" || name == mh.Name {
				continue
			}
			var o v1alpha1.MetalHost
			err := r.direct.Get(ctx, client.ObjectKey{Name: name}, &o)
			if err == nil && o.DeletionTimestamp.IsZero() && slices.Contains(o.Spec.BootMACs, mac) {
				return name, nil
			}
			if client.IgnoreNotFound(err) != nil {
				return "", fmt.Errorf("read MetalHost %s: %w", name, err)
			}
		}
		r.mu.Lock()
		isFirst := r.declarers[mac] == first // nobody was faster
		if isFirst {
			r.declarers[mac] = mh.Name
		}
		first = r.declarers[mac]
		r.mu.Unlock()
		if !isFirst && first != mh.Name {
			return first, nil
		}
	}
	return "", nil
}

// drop ends the objects of a row that is gone, or that this cluster may not see. One that somebody has applied stays, and
// says why it shows nothing.
func (r *hosts) drop(ctx context.Context, id inventory.HostID, why error) error {
	var list v1alpha1.MetalHostList
	if err := r.client.List(ctx, &list, client.MatchingFields{byInventoryID: string(id)}); err != nil {
		return fmt.Errorf("list MetalHosts of host %s: %w", id, err)
	}
	for i := range list.Items {
		o := list.Items[i].DeepCopy()
		if len(o.Spec.BootMACs) == 0 || !o.DeletionTimestamp.IsZero() {
			if err := r.remove(ctx, o); err != nil {
				return err
			}
			continue
		}
		text := "the host is not in Slipway any more; delete this object, and apply it again without spec.inventoryID to declare a new host"
		if inventory.IsKind(why, inventory.Forbidden) {
			text = messageWithHint(why)
		}
		if err := r.tellGone(ctx, o, text); err != nil {
			return err
		}
	}
	return nil
}

// tellGone says in an object that it shows no host, once.
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

// warn puts what keeps an object from being a host into an event, when its condition does not say it yet.
func (r *hosts) warn(mh *v1alpha1.MetalHost, reason, text string) {
	if was := apimeta.FindStatusCondition(mh.Status.Conditions, v1alpha1.Ready); was != nil && was.Reason == reason && was.Message == inventory.Clean(text, 1024) {
		return
	}
	r.log.Warn("MetalHost is no host", "object", mh.Name, "reason", reason, "why", text)
	r.events.Eventf(mh, nil, corev1.EventTypeWarning, reason, "Reconcile", "%s", inventory.Clean(text, maxNote))
}

// retire deletes an object that another one has taken the place of, and says so where people look.
func (r *hosts) retire(ctx context.Context, mh *v1alpha1.MetalHost, why string) error {
	if len(mh.Spec.BootMACs) > 0 && mh.DeletionTimestamp.IsZero() {
		r.log.Info("MetalHost deleted", "object", mh.Name, "why", why)
		r.events.Eventf(mh, nil, corev1.EventTypeNormal, "Renamed", "Reconcile", "%s", inventory.Clean(why, maxNote))
	}
	return r.remove(ctx, mh)
}

// remove deletes an object that shows nothing any more.
func (r *hosts) remove(ctx context.Context, mh *v1alpha1.MetalHost) error {
	mh = mh.DeepCopy()
	if err := r.release(ctx, mh); err != nil {
		return err
	}
	if !mh.DeletionTimestamp.IsZero() {
		return nil
	}
	return client.IgnoreNotFound(r.client.Delete(ctx, mh, client.Preconditions{UID: &mh.UID}))
}

// release takes our finalizer away.
func (r *hosts) release(ctx context.Context, mh *v1alpha1.MetalHost) error {
	to := mh.DeepCopy()
	if !controllerutil.RemoveFinalizer(to, v1alpha1.FinalizerHost) {
		return nil
	}
	return client.IgnoreNotFound(r.patch(ctx, mh, to))
}

// patch writes what differs, unless somebody else has written meanwhile.
func (r *hosts) patch(ctx context.Context, from, to *v1alpha1.MetalHost) error {
	base := client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})
	return r.client.Patch(ctx, to, base, client.FieldOwner(managerHost))
}
