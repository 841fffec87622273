package manager

import (
	"context"
	"log/slog"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

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
