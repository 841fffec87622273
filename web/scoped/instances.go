package scoped

import (
	"time"

	"slipway.dev/slipway/inventory"
)

// instanceTx shows nothing. Servers and their duties are for callers with a role everywhere: names and addresses of servers help nobody
// who has a pool only, and what drains a server concerns all pools.
type instanceTx struct{ *sight }

func (t instanceTx) refused() error {
	return t.reach.caller.Refused(t.reach.needed, " everywhere", t.reach.everywhere)
}

// DatabaseTime implements inventory.InstanceTx.
func (t instanceTx) DatabaseTime() (time.Time, error) { return time.Time{}, t.refused() }

// FindInstance implements inventory.InstanceTx.
func (t instanceTx) FindInstance(string) (inventory.Instance, error) {
	return inventory.Instance{}, t.refused()
}

// FindInstanceByName implements inventory.InstanceTx.
func (t instanceTx) FindInstanceByName(string) (inventory.Instance, error) {
	return inventory.Instance{}, t.refused()
}

// ListInstances implements inventory.InstanceTx.
func (t instanceTx) ListInstances() ([]inventory.Instance, error) { return nil, t.refused() }

// SaveInstance implements inventory.InstanceTx.
func (t instanceTx) SaveInstance(inventory.Instance) error { return t.refused() }

// Heartbeat implements inventory.InstanceTx.
func (t instanceTx) Heartbeat(string, string, time.Time) error { return t.refused() }

// DeleteInstance implements inventory.InstanceTx.
func (t instanceTx) DeleteInstance(string) error { return t.refused() }

// FindDuty implements inventory.InstanceTx.
func (t instanceTx) FindDuty(string) (inventory.Duty, error) { return inventory.Duty{}, t.refused() }

// ListDuties implements inventory.InstanceTx.
func (t instanceTx) ListDuties() ([]inventory.Duty, error) { return nil, t.refused() }

// SaveDuty implements inventory.InstanceTx.
func (t instanceTx) SaveDuty(inventory.Duty) error { return t.refused() }
