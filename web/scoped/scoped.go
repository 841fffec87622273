// Package scoped shows each caller its part of the inventory. Its transaction finds only hosts and machines in pools where
// the caller has a role, and what belongs to them.
//
// Start reading at Show, then reach.go (how far the roles of a caller go) and found.go (what the caller gets). A Tx embeds no
// interface of package inventory. Each method is here, with a limit or passed on unchanged. A new method of inventory.Tx does therefore not compile until somebody has decided about it.
package scoped

import "slipway.dev/slipway/inventory"

// Show returns what of a transaction the caller may see and change. Met may be nil: nothing is remembered then.
func Show(tx inventory.Tx, c Caller, met *Met) (inventory.Tx, error) {
	r, err := reachOf(tx, c, met)
	if err != nil {
		return nil, err
	}
	s := &sight{all: tx, reach: r}
	// The embedded interfaces pass everything on, which is what this caller may do. Tx below has no such field.
	if r.everywhere.Allows(r.needed) && r.everywhere.Allows(inventory.Viewer) {
		return everywhereTx{
			tx, tx, tx, tx, tx, tx, tx, tx, tx, tx, tx, tx, tx, tx, tx, accessTx{s},
		}, nil
	}
	return &Tx{
		s,
		hostTx{s},
		networkTx{s},
		addressTx{s},
		imageTx{s},
		configTx{s},
		secretTx{s},
		machineTx{s},
		operationTx{s},
		hardwareTx{s},
		historyTx{s},
		clusterTx{s},
		auditTx{s},
		recordTx{s},
		viewTx{s},
		accessTx{s},
		instanceTx{s},
	}, nil
}

// Tx is a transaction for a caller whose role is not enough everywhere. It shows hosts, machines and what belongs to them
// only in pools where the caller has the role. Find answers NotFound for things out of reach, and Forbidden for things that
// the caller may see and not change.
type Tx struct {
	*sight
	hostTx
	networkTx
	addressTx
	imageTx
	configTx
	secretTx
	machineTx
	operationTx
	hardwareTx
	historyTx
	clusterTx
	auditTx
	recordTx
	viewTx
	accessTx
	instanceTx
}

var _ inventory.Tx = (*Tx)(nil)

// Whole is the transaction without the caller's limits: whether an address is free does not depend on who asks. Nothing of
// it may be shown to the caller.
func (t *Tx) Whole() inventory.Tx { return t.all }

// MayPlace refuses a machine in a pool, or on a host, where the caller's role is not enough.
func (t *Tx) MayPlace(m *inventory.Machine) error { return t.mayPlace(m) }

// RoleOnHost returns the caller's role on a host that was found in tx.
func RoleOnHost(tx inventory.Tx, c Caller, h *inventory.Host) (inventory.UserRole, error) {
	if t, isScoped := tx.(*Tx); isScoped {
		return t.reach.onHost(t.all, h)
	}
	r, err := reachOf(tx, c, nil)
	if err != nil {
		return "", err
	}
	return r.onHost(tx, h)
}

// everywhereTx is a transaction as a caller sees it whose role is enough everywhere: all but the tokens of others.
type everywhereTx struct {
	inventory.HostTx
	inventory.NetworkTx
	inventory.AddressTx
	inventory.ImageTx
	inventory.ConfigTx
	inventory.SecretTx
	inventory.MachineTx
	inventory.OperationTx
	inventory.HardwareTx
	inventory.HistoryTx
	inventory.ClusterTx
	inventory.AuditTx
	inventory.RecordTx
	inventory.ViewTx
	inventory.InstanceTx
	accessTx
}
