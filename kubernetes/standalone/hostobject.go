package standalone

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

const (
	// The field managers of MetalHosts. Each owns its own fields, so that server-side apply of one never removes a
	// field of another.
	managerHost       = "slipway-host"        // the object: labels, finalizer, what was said elsewhere
	managerHostStatus = "slipway-host-status" // its status
)

// The indexes of MetalHosts in the cache.
const (
	byInventoryID = "spec.inventoryID"
	byCredentials = "spec.power.credentialsRef"
	byBootMAC     = "spec.bootMACs"
)

// hosts reconciles MetalHosts with the rows of the inventory. Up to hostsAtOnce Reconciles run at once; mu guards
// declarers.
type hosts struct {
	env    controllers.Env
	client client.Client
	direct client.Reader // asks the API server, where a cache that is late would do harm
	events events.EventRecorder
	cache  client.Reader // of the metadata of Secrets
	log    *slog.Logger
	now    func() time.Time

	mu        sync.Mutex
	declarers map[v1alpha1.MAC]string // by MAC: the object that declared it first
}

// patch writes the difference of two versions with an optimistic lock: it is a conflict when somebody else wrote
// meanwhile.
func (r *hosts) patch(ctx context.Context, from, to *v1alpha1.MetalHost) error {
	base := client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})
	return r.client.Patch(ctx, to, base, client.FieldOwner(managerHost))
}

// adopt binds an object to a row: it writes spec.inventoryID. The next event of the object calls show.
func (r *hosts) adopt(ctx context.Context, mh *v1alpha1.MetalHost, id inventory.HostID) error {
	to := mh.DeepCopy()
	to.Spec.InventoryID = string(id)
	return r.patch(ctx, mh, to)
}

// release removes the finalizer of this controller.
func (r *hosts) release(ctx context.Context, mh *v1alpha1.MetalHost) error {
	to := mh.DeepCopy()
	if !controllerutil.RemoveFinalizer(to, v1alpha1.FinalizerHost) {
		return nil
	}
	return client.IgnoreNotFound(r.patch(ctx, mh, to))
}

// remove deletes an object that shows no host any more. The UID as precondition spares an object that somebody made
// meanwhile under the same name.
func (r *hosts) remove(ctx context.Context, mh *v1alpha1.MetalHost) error {
	mh = mh.DeepCopy()
	if err := r.release(ctx, mh); err != nil {
		return err
	}
	if !mh.DeletionTimestamp.IsZero() {
		return nil
	}
	// NotFound: somebody else has deleted it.
	return client.IgnoreNotFound(r.client.Delete(ctx, mh, client.Preconditions{UID: &mh.UID}))
}

// retire deletes an object that another one replaces, and writes an event for the people who applied it.
func (r *hosts) retire(ctx context.Context, mh *v1alpha1.MetalHost, why string) error {
	if len(mh.Spec.BootMACs) > 0 && mh.DeletionTimestamp.IsZero() {
		r.log.Info("MetalHost deleted", "object", mh.Name, "why", why)
		r.events.Eventf(mh, nil, corev1.EventTypeNormal, "Renamed", "Reconcile", "%s", inventory.Clean(why, maxNote))
	}
	return r.remove(ctx, mh)
}

// warn writes a Kubernetes event with the reason why an object is no host. It writes none if the condition Ready has the
// same reason and message, because each Reconcile would repeat the event.
func (r *hosts) warn(mh *v1alpha1.MetalHost, reason, text string) {
	if was := apimeta.FindStatusCondition(mh.Status.Conditions, v1alpha1.Ready); was != nil && was.Reason == reason && was.Message == inventory.Clean(text, 1024) {
		return
	}
	// In the log as well: events of a cluster live for an hour.
	r.log.Warn("MetalHost is no host", "object", mh.Name, "reason", reason, "why", text)
	r.events.Eventf(mh, nil, corev1.EventTypeWarning, reason, "Reconcile", "%s", inventory.Clean(text, maxNote))
}

// tell writes a status that differs from the present one. It is no error when the object is gone.
func (r *hosts) tell(ctx context.Context, mh *v1alpha1.MetalHost, s v1alpha1.MetalHostStatus) error {
	if equality.Semantic.DeepEqual(mh.Status, s) {
		return nil
	}
	return client.IgnoreNotFound(controllers.ApplyStatus(ctx, r.client, mh, v1alpha1.GroupVersion.WithKind(v1alpha1.KindMetalHost), managerHostStatus, &s))
}
