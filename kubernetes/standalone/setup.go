// Package standalone owns the stand-alone controllers of an attached cluster: MetalHosts show the hosts of the inventory,
// MetalPools make pools, MetalMachines and JoinTargets become machines and targets. They never allocate, power, boot or
// wipe anything themselves: every effect goes through a contract.Appliance.
//
// Start reading at Setup; each kind has its files: host*.go, pool.go, machine*.go, target*.go.
package standalone

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/eventfeed"
	"slipway.dev/slipway/kubernetes/node"
)

// Setup adds the controllers to a manager. They run where it leads.
func Setup(mgr manager.Manager, env contract.Env) error {
	feed, err := eventfeed.Add(mgr, env)
	if err != nil {
		return err
	}
	if env.Reach == nil || !env.Reach.IsNarrow { // else the account may not read kinds without namespaces
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
