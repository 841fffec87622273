package claim

import (
	"cmp"
	"context"
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// ForeseeMachine says what a verb would do to a machine and its host, and refuses what the verb refuses. It changes nothing. Verbs
// are delete, force (a deletion), reinstall, and the other steps of a remediation.
func (ms *Machines) ForeseeMachine(ctx context.Context, name, verb string) (f foresight.Ending, err error) {
	return inventory.Read(ctx, ms.cfg.Store, func(tx inventory.Tx) (foresight.Ending, error) { return foreseeMachine(tx, name, verb) })
}

func foreseeMachine(tx inventory.Tx, name, verb string) (f foresight.Ending, err error) {
	m, err := tx.FindMachine(name)
	if err != nil {
		return f, err
	}
	f = foresight.Ending{Verb: verb, Name: m.Name, IsGoing: !m.DeletedAt.IsZero(), KeepN: len(m.KeepDisks)}
	kept, err := address.Whole(tx).ListAllocations(inventory.AddressFilter{Owner: inventory.Holder{MachineUID: m.UID}.Key()})
	if f.AddressN = len(kept); err != nil || m.HostID == "" {
		return f, err
	}
	h, err := address.Whole(tx).FindHost(m.HostID)
	if err != nil {
		return f, fmt.Errorf("read host of machine %s: %w", m.Name, err)
	}
	if f.Host, f.IsAdopted = h.Name, h.IsAdopted; h.IsProtected && !h.IsAdopted && verb != "force" && verb != string(operation.RungPowerCycle) {
		return f, inventory.Errorf(inventory.Forbidden, "host %s of machine %s is protected: it is not wiped", h.Name, m.Name).
			WithHint("lift it: slipway host protect %s --off", h.Name)
	}
	b, err := tx.FindBMC(h.ID)
	if f.Driver = b.Driver; ledger.IgnoreNotFound(err) != nil {
		return f, fmt.Errorf("read controller of %s: %w", h.Name, err)
	}
	if m.Drain.Target != "" {
		f.Node = cmp.Or(m.Drain.Node, m.Hostname, m.Name)
	}
	if verb == string(operation.RungReinstall) {
		i, err := imageOf(tx, &m)
		f.Image = i.Name
		return f, err
	}
	f.Mode, f.StaysDirty, err = endOf(tx, &m, &h)
	return f, err
}
