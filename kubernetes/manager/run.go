package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
)

// Run runs the controllers of one cluster until ctx ends or they cannot continue, which is an error. When it returns,
// its goroutines and connections have ended.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	for {
		// Only new rights start the controllers again at once. After all other ends the caller waits before it tries again.
		err := runOnce(ctx, cfg, o)
		if !errors.Is(err, errReach) || ctx.Err() != nil {
			return err
		}
		o.Log.Info("controllers start again", "why", err)
	}
}

// runOnce runs the controllers as far as the account goes now; it ends with errReach when that changes.
func runOnce(ctx context.Context, cfg *rest.Config, o Options) error {
	cfg, hangUp := ownConnections(cfg)
	defer hangUp() // runs last: until then a Reconcile that is ending may still write its status
	// A client without a cache, because these questions decide how the cache is made.
	p, err := newPeer(o.Cluster, cfg)
	if err != nil {
		return err
	}
	defer p.hangUp()
	if err := p.narrow(ctx, o.Namespaces); err != nil {
		return err
	}
	// Before the manager: one informer that may not read its namespace would keep the whole cache from its first sync.
	reach, err := p.reach(ctx, o.Namespaces)
	if err != nil {
		return err
	}
	if o.LeaseNamespace == "" {
		o.LeaseNamespace = p.leaseIn(o.Namespaces)
	}
	scheme, err := Scheme(o.Sets)
	if err != nil {
		return err
	}
	opts := ManagerOptions(scheme, o)
	only(&opts, reach)
	if o.Identity != "" {
		if err := elect(cfg, o, &opts); err != nil {
			return err
		}
	}
	mgr, err := manager.New(cfg, opts)
	if err != nil {
		return fmt.Errorf("make the manager of cluster %s: %w", o.Cluster, err)
	}
	// Asked again over the connections of this manager: since session asked, another cluster may have taken the address.
	uid, err := uidOf(ctx, mgr.GetAPIReader(), o.Namespaces)
	if err != nil {
		return err
	}
	// Before Setup: no controller may run in a cluster that is not the one that was checked, or that the token is for.
	if err := isSame(o.Cluster, o.UID, uid); err != nil {
		return err
	}
	if err := isBound(o.BoundTo, uid); err != nil {
		return err
	}
	env := controllers.Env{
		Appliance: backend.ForCluster(o.Appliance, uid, namespacesOf(mgr.GetAPIReader(), o.Namespaces)), Cluster: o.Cluster, ClusterUID: uid, Namespaces: o.Namespaces, WatchFilter: o.WatchFilter, Log: o.Log, Egress: o.Egress,
		Reach: reach,
	}
	for _, s := range o.Sets {
		if err := s.Setup(mgr, env); err != nil {
			return fmt.Errorf("set up the %s controllers of cluster %s: %w", s.Mode, o.Cluster, err)
		}
	}
	if o.Health != "" {
		// A pod that waits for the lease is well, and takes over when the other one goes. A probe that asks for more would
		// have it restarted for nothing.
		always := func(*http.Request) error { return nil }
		if err := mgr.AddHealthzCheck("ping", always); err != nil {
			return err
		}
		if err := mgr.AddReadyzCheck("ping", always); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	// In a goroutine of its own: Elected is closed while Start runs, which returns only at the end.
	if o.OnElected != nil {
		wg.Go(func() {
			select {
			case <-ctx.Done():
			case <-mgr.Elected():
				o.OnElected()
			}
		})
	}
	// changed is read after Wait only. follow ends the manager, and Run starts one with a cache that fits the new rights.
	var changed error
	wg.Go(func() {
		if changed = p.follow(ctx, o.Namespaces, reach); changed != nil {
			cancel()
		}
	})
	// Start fails when the lease is lost. Then another process may lead, and nothing here may write any more.
	err = mgr.Start(ctx)
	cancel()
	wg.Wait()
	return cmp.Or(changed, err)
}

// namespacesOf reads the labels of the namespaces that the controllers watch.
func namespacesOf(c client.Reader, names []string) backend.Namespaces {
	kind := corev1.SchemeGroupVersion.WithKind("Namespace")
	return func(ctx context.Context) (all []map[string]string, err error) {
		ctx, cancel := context.WithTimeout(ctx, callFor)
		defer cancel()
		if len(names) == 0 {
			// Asked of the API server, and not of a cache: the answer is used for some seconds, and decides who may use a host.
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
			err := c.List(ctx, list)
			for i := range list.Items {
				all = append(all, list.Items[i].Labels)
			}
			return all, err
		}
		for _, name := range names {
			n := &metav1.PartialObjectMetadata{}
			n.SetGroupVersionKind(kind)
			if err := c.Get(ctx, client.ObjectKey{Name: name}, n); client.IgnoreNotFound(err) != nil {
				return nil, err
			}
			all = append(all, n.Labels)
		}
		return all, nil
	}
}

// isBound refuses the token of another cluster: everything would be refused, object by object.
func isBound(to, uid string) error {
	if to == "" || to == uid {
		return nil
	}
	return inventory.Errorf(inventory.Forbidden, "the token is for the cluster with the UID %s, and this one has the UID %s", inventory.Clean(to, 64), inventory.Clean(uid, 64)).
		WithHint("an admin of Slipway makes one for this cluster: slipway token create NAME --cluster %s", inventory.Clean(uid, 64))
}

// InCluster configures controllers that run in a pod of a cluster, or next to it with a kubeconfig, for an appliance
// elsewhere.
type InCluster struct {
	Appliance   contract.Appliance
	BoundTo     string   // UID of the cluster that the appliance's token is bound to; "" for none
	Kubeconfig  string   // "" is the pod's own account
	Namespaces  []string // all when empty
	WatchFilter string
	Sets        []Set
	Elect       bool   // lead by a lease, so that only one of several pods acts
	Health      string // address of /healthz and /readyz; "" for none
	Log         *slog.Logger
}

// RunInCluster runs the controllers until ctx ends or they cannot continue.
func RunInCluster(ctx context.Context, c InCluster) error {
	cluster, err := c.connection()
	if err != nil {
		return err
	}
	RouteLogs(c.Log)
	o := Options{
		Appliance: c.Appliance, Cluster: "in-cluster", BoundTo: c.BoundTo, Namespaces: c.Namespaces, WatchFilter: c.WatchFilter, Sets: c.Sets, Health: c.Health, Log: c.Log,
		OnElected: func() { c.Log.Info("controllers run", "cluster", cluster.Host) },
	}
	if c.Elect {
		if o.Identity, err = os.Hostname(); err != nil { // in a pod that is its name
			return inventory.Errorf(inventory.Internal, "this machine has no name: %w", err)
		}
	}
	return Run(ctx, cluster, o)
}

func (c *InCluster) connection() (*rest.Config, error) {
	if c.Kubeconfig == "" {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "this is no pod of a cluster: %v", err).WithHint("outside of a cluster give --kubeconfig FILE")
		}
		return cfg, nil
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "cannot use %s: %v", c.Kubeconfig, err)
	}
	return cfg, nil
}
