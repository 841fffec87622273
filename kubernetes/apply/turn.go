package apply

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/machineconfig"
)

// tend lets the machines of a target go that are at the turn, oldest first. It is busy while the cluster has to be asked.
func (k *Keeper) tend(ctx context.Context, name string, members []*contract.View) (isBusy bool, err error) {
	t, err := k.cfg.Appliance.FindTarget(ctx, name)
	if isConflict(err) {
		for _, v := range members {
			if err := k.hold(ctx, v, "join target "+name+" is not there: apply it"); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// The roles are in the configurations of the machines. So after a restart this process still knows which one makes the
	// cluster.
	isFirst := func(v *contract.View) bool { return translate.RoleOf(v.Machine.Config) == machineconfig.Init }
	isReady := func(v *contract.View) bool { return v.Machine.HostID != "" && translate.IsHeld(&v.Machine) }
	isMaking := t.IsInit && t.InitializedAt.IsZero()
	// Nobody waits, and nobody makes the cluster. That is so for most targets most of the time, and then the cluster gets no
	// request.
	if !slices.ContainsFunc(members, isReady) && !slices.ContainsFunc(members, isFirst) {
		return false, nil
	}
	if isMaking && slices.ContainsFunc(members, isFirst) {
		// The note in the target is what ends the making. It is stored before any other machine goes: two machines that both
		// initialise would make two clusters of one name.
		if isMaking, err = k.notice(ctx, &t); err != nil {
			return true, err
		}
		isBusy = isMaking
	}
	// JudgeTurn is pure. It gets what is known of all members, and decides for one of them.
	all := make([]node.Joiner, len(members))
	for i, v := range members {
		all[i] = node.Joiner{Name: v.Machine.Name, IsPlane: isPlane(v), IsFirst: isFirst(v), Stage: stageOf(v, isMaking)}
		if all[i].IsFirst && !isMaking && v.IsUp { // one like the others from now on: installed again, it makes no second cluster
			if err := k.role(ctx, v, machineconfig.ControlPlane); err != nil {
				return isBusy, err
			}
			all[i].IsFirst = false
		}
	}
	rules := node.TurnRules{Workers: t.WorkerParallelism, IsInit: t.IsInit, IsInitialized: !isMaking}
	for i, v := range members {
		if !isReady(v) {
			continue
		}
		if isPlane(v) && t.IsInit && !isMaking { // the account of another cluster need not be allowed to ask
			// A member that joins while another is down can cost etcd its majority, and then nobody can write to the cluster.
			if wait := k.quorum(ctx, name); wait != "" {
				isBusy = true
				if err := k.hold(ctx, v, wait); err != nil {
					return isBusy, err
				}
				continue
			}
		}
		verdict := node.JudgeTurn(all[i], func(yield func(node.Joiner) bool) {
			for j := range all {
				if j != i && !yield(all[j]) {
					return
				}
			}
		}, rules)
		// The reason is stored with the hook. hold writes nothing when it is the same as before.
		if verdict.Wait != "" {
			if err := k.hold(ctx, v, verdict.Wait); err != nil {
				return isBusy, err
			}
			continue
		}
		role := machineconfig.Role("")
		switch {
		case verdict.IsFirst:
			role, isBusy = machineconfig.Init, true
		case isPlane(v):
			role = machineconfig.ControlPlane
		}
		if err := k.let(ctx, v, role); err != nil {
			return isBusy, err
		}
		// The next members of this loop must see it: the views are of before.
		all[i].Stage, all[i].IsFirst = node.StageJoining, verdict.IsFirst
	}
	return isBusy, nil
}

func isPlane(v *contract.View) bool {
	r := translate.RoleOf(v.Machine.Config)
	return r == machineconfig.ControlPlane || r == machineconfig.Init
}

// stageOf is how far a machine is. The one that makes the cluster has joined when that is there.
// JudgeTurn counts those that may boot and have not joined.
func stageOf(v *contract.View, isMaking bool) node.Stage {
	switch {
	case v.Machine.HostID == "" || translate.IsHeld(&v.Machine):
		return node.StageWaiting
	case v.IsUp && !(isMaking && translate.RoleOf(v.Machine.Config) == machineconfig.Init):
		return node.StageDone
	}
	return node.StageJoining
}

// notice asks whether a cluster is there that is being made, and notes it when it is.
func (k *Keeper) notice(ctx context.Context, t *inventory.JoinTarget) (isMaking bool, err error) {
	plane, err := k.cfg.Planes.ControlPlane(ctx, t.Name)
	if err != nil || !plane.IsInitialized {
		return true, nil // it does not answer before it is there
	}
	// If this process dies before the save, the next look asks the cluster again and gets the same answer.
	t.InitializedAt = k.cfg.Now()
	if err := k.cfg.Appliance.SaveTarget(ctx, *t); err != nil {
		return true, fmt.Errorf("note that the cluster of %s is there: %w", t.Name, err)
	}
	k.cfg.Log.Info("cluster made", "target", t.Name)
	return false, nil
}

// quorum says what keeps another control plane from joining: a member of etcd that is not well, or nobody who knows.
func (k *Keeper) quorum(ctx context.Context, target string) (wait string) {
	plane, err := k.cfg.Planes.ControlPlane(ctx, target)
	switch {
	case err != nil:
		var op *net.OpError // whose text has a port that is another each time
		if errors.As(err, &op) {
			err = op.Err
		}
		// A cluster that does not answer is a reason to wait, and no error: nobody knows whether another member would be
		// safe.
		return "the cluster does not answer how its etcd is: " + err.Error()
	case plane.Healthy < plane.Members:
		return fmt.Sprintf("%d of %d members of etcd are well: another control plane joins when all are", plane.Healthy, plane.Members)
	}
	return ""
}
