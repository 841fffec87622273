package clusterapi

import (
	"log/slog"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/kubernetes/translate"
)

// The field managers of the objects: one for each concern, so that apply of one leaves the fields of the others.
const (
	ManagerMachine     = "slipway-capi-machine"
	ManagerClaim       = "slipway-capi-claim"
	ManagerCluster     = "slipway-capi-cluster"
	ManagerTemplate    = "slipway-capi-template"
	ManagerRemediation = "slipway-capi-remediation"
)

// kit is what all controllers of one cluster share. Its fields do not change after start, so every goroutine may read
// them.
type kit struct {
	env    controllers.Env
	client client.Client
	direct client.Reader // one GET at the API server, for Secrets
	feed   *controllers.Feed
	events clientevents.EventRecorder
	log    *slog.Logger
	yard   *yard
	nodes  *node.Set
}

// options returns the options of all controllers. Names may repeat, because each attached cluster has one set. A
// retry comes after 30 s at the latest.
func options(workers int) controller.Options {
	skip := true
	return controller.Options{
		SkipNameValidation: &skip, MaxConcurrentReconciles: workers,
		// The usual limit is 1000 s. After an outage of minutes that would be too long for a person who waits.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, 30*time.Second),
	}
}

// request asks for a Reconcile of one object.
func request(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// defaultPort is where API servers listen.
const defaultPort = 6443

// isTrue reports whether a condition is True.
func isTrue(cs []metav1.Condition, kind string) bool {
	return slices.ContainsFunc(cs, func(c metav1.Condition) bool { return c.Type == kind && c.Status == metav1.ConditionTrue })
}

// isLasting reports whether an error stays until somebody changes something.
func isLasting(err error) bool {
	return translate.IsInvalid(err) || inventory.IsKind(err, inventory.Invalid) || inventory.IsKind(err, inventory.NotFound) ||
		inventory.IsKind(err, inventory.Forbidden)
}
