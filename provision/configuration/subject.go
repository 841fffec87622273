package configuration

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/provision/ledger"
)

// book opens the addresses of a transaction; a trial stores nothing.
func (c *Configurer) book(tx inventory.Tx, isTrial bool) (*address.Book, error) {
	var ours []netip.Addr
	if c.cfg.Ours != nil {
		ours = c.cfg.Ours()
	}
	b, err := address.Open(tx, ours, c.cfg.Now(), isTrial)
	if err != nil {
		return nil, err
	}
	b.Awaited = c.held.awaited
	return b, nil
}

// subject is a machine, or a host that no machine has. The host of a machine is nil while nobody knows it.
func subject(m *inventory.Machine, h *inventory.Host) address.Subject {
	s := address.Subject{On: h}
	if m != nil {
		s.MachineUID, s.Machine, s.Object = m.UID, m.Name, objectOf(m)
	}
	if h != nil {
		s.HostID, s.Host = h.ID, h.Name
	}
	return s
}

// objectOf is the object that a machine is called after, "" for a machine whose name somebody has chosen. Tenants of two
// namespaces know nothing of each other, and each may have a machine web. A name that somebody has chosen is nobody else's.
// A SlipwayMachine is always called after its Machine of Cluster API.
func objectOf(m *inventory.Machine) string {
	owner := strings.Split(m.Owner, "/") // cluster, namespace, kind, name, UID
	if len(owner) != 5 || owner[3] != m.Hostname && owner[2] != "SlipwayMachine" {
		return ""
	}
	return m.Owner
}

// subjectOn returns the subject of the addresses on a host: its machine, or the host itself.
func subjectOn(tx inventory.Tx, h *inventory.Host) (address.Subject, error) {
	if h.Machine == "" {
		return subject(nil, h), nil
	}
	m, err := address.Whole(tx).FindMachine(h.Machine)
	if err != nil {
		return address.Subject{}, fmt.Errorf("read machine of %s: %w", h.Name, err)
	}
	return subject(&m, h), nil
}

// isHolder reports whether a host has names and addresses of its own: no machine has it, and somebody has accepted it.
func isHolder(h *inventory.Host) bool {
	return h.Machine == "" && h.State != inventory.Discovered && h.State != inventory.Failed
}

// unlessIdle leaves out the name of a host that waits for a machine: nothing runs under it.
func unlessIdle(s address.Subject, all []inventory.Holding) []inventory.Holding {
	if s.MachineUID != "" || s.On == nil || s.On.State == inventory.Active || s.On.State == inventory.Installing || s.On.IsAdopted {
		return all
	}
	if !isHolder(s.On) {
		return nil
	}
	return slices.DeleteFunc(all, func(g inventory.Holding) bool { return g.Kind == inventory.HoldsName && g.Source == "inventory" })
}

// holderOf finds a machine with its host, or a host that no machine has; both are nil for one that is gone.
func holderOf(tx inventory.Tx, key string) (m *inventory.Machine, h *inventory.Host, err error) {
	kind, id, _ := strings.Cut(key, "/")
	if kind == "machine" {
		found, err := tx.FindMachineByUID(id)
		if err != nil {
			return nil, nil, ledger.IgnoreNotFound(err)
		}
		m, id = &found, string(found.HostID)
	}
	if id == "" {
		return m, nil, nil
	}
	on, err := tx.FindHost(inventory.HostID(id))
	if err != nil {
		return nil, nil, ledger.IgnoreNotFound(err)
	}
	if m == nil && !isHolder(&on) {
		return nil, nil, nil
	}
	return m, &on, nil
}
