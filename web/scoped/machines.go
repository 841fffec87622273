package scoped

import (
	"time"

	"slipway.dev/slipway/inventory"
)

// machineTx shows the machines, claims and pools in reach.
type machineTx struct{ *sight }

// claim answers with a claim whose host is within reach.
func (t machineTx) claim(c inventory.Claim, err error) (inventory.Claim, error) {
	return seen(t.sight, c, err, func(c inventory.Claim) (bool, error) { return t.seesHost(c.HostID) }, "claim", string(c.ID))
}

// FindMachine implements inventory.MachineTx.
func (t machineTx) FindMachine(name string) (inventory.Machine, error) {
	return t.machine(t.all.FindMachine(name))
}

// FindMachineByUID implements inventory.MachineTx.
func (t machineTx) FindMachineByUID(uid string) (inventory.Machine, error) {
	return t.machine(t.all.FindMachineByUID(uid))
}

// FindMachineByOwner implements inventory.MachineTx.
func (t machineTx) FindMachineByOwner(owner string) (inventory.Machine, error) {
	return t.machine(t.all.FindMachineByOwner(owner))
}

// ListMachines implements inventory.MachineTx.
func (t machineTx) ListMachines(f inventory.MachineFilter, p inventory.Page) ([]inventory.Machine, error) {
	return keptPages(p, func(p inventory.Page) ([]inventory.Machine, error) { return t.all.ListMachines(f, p) },
		func(m inventory.Machine) string { return m.Name },
		func(m *inventory.Machine) (bool, error) {
			t.tellMachine(m)
			return t.reach.onMachine(m).Allows(t.reach.needed), nil
		})
}

// CreateMachine implements inventory.MachineTx.
func (t machineTx) CreateMachine(m *inventory.Machine, now time.Time) error {
	if err := t.mayPlace(m); err != nil {
		return err
	}
	return t.all.CreateMachine(m, now)
}

// UpdateMachine implements inventory.MachineTx: its pool must be the caller's, before and after.
func (t machineTx) UpdateMachine(m *inventory.Machine, now time.Time) error {
	if _, err := t.FindMachineByUID(m.UID); err != nil {
		return err
	}
	if err := t.mayPlace(m); err != nil {
		return err
	}
	old, err := t.all.FindMachineByUID(m.UID)
	if err != nil {
		return err
	}
	if isUnknown(old.Refs) && len(m.Refs) == 0 { // the caller was not shown the texts, and they stay
		m.Reason, m.Hint, m.Refs = old.Reason, old.Hint, old.Refs
	}
	return t.all.UpdateMachine(m, now)
}

// DeleteMachine implements inventory.MachineTx.
func (t machineTx) DeleteMachine(name string) error {
	if _, err := t.FindMachine(name); err != nil {
		return err
	}
	return t.all.DeleteMachine(name)
}

// Expect implements inventory.MachineTx. It shows nothing.
func (t machineTx) Expect(all ...inventory.Holder) { t.all.Expect(all...) }

// FindClaim implements inventory.MachineTx.
func (t machineTx) FindClaim(id inventory.ClaimID) (inventory.Claim, error) {
	return t.claim(t.all.FindClaim(id))
}

// FindClaimOfHost implements inventory.MachineTx.
func (t machineTx) FindClaimOfHost(id inventory.HostID) (inventory.Claim, error) {
	return t.claim(t.all.FindClaimOfHost(id))
}

// FindClaimOfMachine implements inventory.MachineTx.
func (t machineTx) FindClaimOfMachine(uid string) (inventory.Claim, error) {
	return t.claim(t.all.FindClaimOfMachine(uid))
}

// The rest is of the engine, for things that were found.

func (t machineTx) ListDueMachines(now time.Time, limit int) ([]inventory.Machine, error) {
	return t.all.ListDueMachines(now, limit)
}

func (t machineTx) CreateClaim(c *inventory.Claim, now time.Time) error {
	return t.all.CreateClaim(c, now)
}
func (t machineTx) DeleteClaim(id inventory.ClaimID) error { return t.all.DeleteClaim(id) }

// mayPlace refuses a machine in a pool, or on a host, where the caller's role is not enough.
func (t *sight) mayPlace(m *inventory.Machine) error {
	if !t.reach.onMachine(m).Allows(t.reach.needed) {
		return outside(t.reach, "machine "+inventory.Clean(m.Name, 80))
	}
	if m.Owner != "" {
		return inventory.Errorf(inventory.Forbidden, "only who has role %s everywhere names the owner of a machine", t.reach.needed).WithHint("leave out owner")
	}
	if m.Placement.Host == "" {
		return nil
	}
	_, err := FindHost(hostTx{t}, m.Placement.Host) // a host by name may be outside of the pool
	return err
}

// operationTx shows operations on hosts in reach.
type operationTx struct{ *sight }

// FindOperation implements inventory.OperationTx.
func (t operationTx) FindOperation(id string) (inventory.Operation, error) {
	o, err := t.all.FindOperation(id)
	if err != nil {
		return o, err
	}
	if err := t.needHost(o.HostID); err != nil {
		if inventory.IsKind(err, inventory.NotFound) {
			err = t.gone("operation", id)
		}
		return inventory.Operation{}, err
	}
	t.tellOperation(&o)
	return o, nil
}

// FindOpenOperation implements inventory.OperationTx.
func (t operationTx) FindOpenOperation(h inventory.HostID) (inventory.Operation, error) {
	o, err := ofHost(t.sight, h, func() (inventory.Operation, error) { return t.all.FindOpenOperation(h) })
	t.tellOperation(&o)
	return o, err
}

// ListOperations implements inventory.OperationTx.
func (t operationTx) ListOperations(f inventory.OperationFilter, p inventory.Page) ([]inventory.Operation, error) {
	return keptPages(p, func(p inventory.Page) ([]inventory.Operation, error) { return t.all.ListOperations(f, p) },
		func(o inventory.Operation) string { return o.ID },
		func(o *inventory.Operation) (bool, error) {
			t.tellOperation(o)
			return t.seesHost(o.HostID)
		})
}

// What drives operations is of the engine, for hosts that were found.

func (t operationTx) ListDueOperations(now time.Time, limit int) ([]inventory.Operation, error) {
	return t.all.ListDueOperations(now, limit)
}
func (t operationTx) NextDueAt() (time.Time, error) { return t.all.NextDueAt() }
func (t operationTx) CountOpenOperations(pool string, kinds ...inventory.OperationKind) (int, time.Time, error) {
	return t.all.CountOpenOperations(pool, kinds...)
}

func (t operationTx) CreateOperation(o *inventory.Operation, now time.Time) error {
	return t.all.CreateOperation(o, now)
}

func (t operationTx) UpdateOperation(o *inventory.Operation, now time.Time) error {
	return t.all.UpdateOperation(o, now)
}
