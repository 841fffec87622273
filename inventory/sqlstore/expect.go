package sqlstore

import "slipway.dev/slipway/inventory"

const recentOperations = 32 // as many as a claim looks at: see MayInstallAgain

// Expect implements inventory.MachineTx.
func (t machineTx) Expect(all ...inventory.Holder) {
	for _, x := range all {
		if x.MachineUID != "" {
			if !machines.places.Is(t.lastMachine, "uid", x.MachineUID) {
				t.Ahead(findMachineByUIDSQL, x.MachineUID)
			}
			t.Ahead(machineAllocationsSQL, x.MachineUID)
			t.Ahead(findHoldingsSQL, string(inventory.HoldsName), x.Machine) // most machines are called so
		} else {
			if !hostPlaces.Is(t.lastHost.row, "id", string(x.HostID)) {
				t.Ahead(findHostSQL, string(x.HostID))
				t.Ahead(hostNICsSQL, string(x.HostID))
				t.Ahead(openOperationSQL, string(x.HostID))
				recent, args := operationsSQL(inventory.OperationFilter{HostID: x.HostID})
				t.Ahead(recent, append(args, limit(0), "", limit(recentOperations))...)
			}
			t.Ahead(hostAllocationsSQL, string(x.HostID))
		}
		t.Ahead(ownerHoldingsSQL, x.Key())
	}
}
