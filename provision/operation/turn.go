package operation

import (
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/provision/configuration"
)

// Control planes of a join target come one at a time, and only one host is ever its first: etcd and kubeadm do not
// survive anything else. A host takes its turn when its boot is decided. It ends when the host reports up, is released
// or deleted; the turn to be the first stays with the host that made the cluster.
func turnsOf(r *configuration.Rendered) (names []string) {
	if r == nil || r.Target == "" {
		return nil
	}
	switch r.Role {
	case machineconfig.Init:
		return []string{initTurn + r.Target, planeTurn + r.Target}
	case machineconfig.ControlPlane:
		return []string{planeTurn + r.Target}
	}
	return nil
}

const (
	initTurn  = "init/"
	planeTurn = "control-plane/"
)

// Turns returns the turns that a host has to take for its configuration and does not have yet, or says whose they are.
func (o *Operator) Turns(tx inventory.Tx, h *inventory.Host, r *configuration.Rendered) (free []string, taken *inventory.Error, err error) {
	names := turnsOf(r)
	for _, name := range names {
		l, err := tx.FindLock(name)
		if inventory.IsKind(err, inventory.NotFound) {
			free = append(free, name)
			continue
		}
		if err == nil && l.HostID == h.ID {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read lock %s: %w", name, err)
		}
		holder := inventory.HostRef(string(l.HostID))
		if other, err := tx.FindHost(l.HostID); err == nil {
			holder.Name = other.Name
		}
		if name == names[0] && len(names) == 2 {
			return nil, inventory.Errorf(inventory.Conflict, "%s is the first control plane of %s already", holder, r.Target).
				WithHint("join it as another with role: control-plane, or release that host"), nil
		}
		return nil, inventory.Errorf(inventory.Unavailable, "%s is joining %s as control plane; they come one at a time", holder, r.Target).
			WithHint("this host follows by itself; if the other is stuck: slipway host release %s", holder), nil
	}
	return free, nil, nil
}

// TakeTurns gives a host turns that are free.
func (o *Operator) TakeTurns(tx inventory.Tx, h *inventory.Host, s inventory.SessionID, free []string) error {
	for _, name := range free {
		if err := tx.SaveLock(inventory.Lock{Name: name, HostID: h.ID, SessionID: s, SinceAt: o.cfg.Now()}); err != nil {
			return fmt.Errorf("store lock %s: %w", name, err)
		}
	}
	return nil
}

// EndTurns ends a host's turns: those that end with success, or all.
func EndTurns(tx inventory.Tx, h inventory.HostID, all bool) error {
	locks, err := tx.ListLocks()
	if err != nil {
		return fmt.Errorf("list locks: %w", err)
	}
	for _, l := range locks {
		isFirst := len(l.Name) > len(initTurn) && l.Name[:len(initTurn)] == initTurn
		if l.HostID != h || isFirst && !all {
			continue
		}
		if err := tx.DeleteLock(l.Name); err != nil {
			return fmt.Errorf("delete lock %s: %w", l.Name, err)
		}
	}
	return nil
}
