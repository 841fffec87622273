// Package standalone holds the stand-alone controllers of an attached cluster. MetalHosts show the hosts of the
// inventory, MetalPools make pools, and MetalMachines and JoinTargets become machines and join targets. The
// controllers never allocate, power, boot or wipe anything: every effect goes through a contract.Appliance.
//
// The lasting state is in the object, in the inventory, or in both; memory holds caches. Each Reconcile compares the
// two, and so finishes what a process that died had begun.
//
// Start reading at Setup; each kind has its files: host*.go, pool.go, machine*.go, target*.go. The file that is called like
// the kind has Reconcile with the order of its steps, and the others have the steps. hostobject.go, machineinput.go and
// targetmirror.go hold the type of the reconciler.
package standalone

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/node"
)

// Setup adds the controllers to a manager, which runs them while it is the leader. MetalHosts and MetalPools are
// cluster-scoped. So Setup leaves them out where the account of env may read namespaces only. It returns an error
// when the manager refuses a controller or an index.
func Setup(mgr manager.Manager, env controllers.Env) error {
	feed, err := controllers.NewFeed(mgr, env)
	if err != nil {
		return err
	}
	if !env.Reach.Narrow() { // else the account may not read kinds without namespaces
		if err := setupHosts(mgr, env, feed); err != nil {
			return err
		}
		if err := setupPools(mgr, env, feed); err != nil {
			return err
		}
	}
	nodes := node.NewSet(env.Log, env.Egress)
	if err := mgr.Add(nodes); err != nil {
		return err
	}
	if err := setupTargets(mgr, env, nodes); err != nil {
		return err
	}
	return setupMachines(mgr, env, feed, nodes)
}
