// Package metal owns the stand-alone controllers of an attached cluster: MetalHosts show the hosts of the inventory,
// MetalPools make pools, MetalMachines and JoinTargets become machines and targets. They never allocate, power, boot or
// wipe anything themselves: every effect goes through a machine.Appliance.
//
// Start reading at Setup; each kind has its files: host*.go, pool.go, machine*.go, target*.go.
package metal

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"slipway.dev/slipway/machine"
	"slipway.dev/slipway/machine/node"
	"slipway.dev/slipway/machine/wake"
)

// Setup adds the controllers to a manager. They run where it leads.
func Setup(mgr manager.Manager, env machine.Env) error {
	feed, err := wake.Add(mgr, env)
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
