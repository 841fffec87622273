// Package hosts takes what people say of hosts: their names, labels, places and switch ports, and whether they are cordoned,
// retained or adopted. Package boot takes what machines say of themselves.
package hosts

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/pxe"
)

// Config is everything that an Editor needs.
type Config struct {
	Now      func() time.Time
	NewID    func() inventory.HostID      // draws host ids
	Vendor   func(m inventory.MAC) string // who made a network card; "" when unknown
	Ledger   *ledger.Ledger
	Operator *operation.Operator
	// JudgePort opens or closes the issue that a host is not on its switch port. HoldOn keeps the addresses that it asks for.
	JudgePort func(inventory.Tx, *inventory.Host, pxe.Client) error
	HoldOn    func(inventory.Tx, *inventory.Host) error
	// MayPlace says that there may be a host now for a machine that waits for one.
	MayPlace func()
}

// Editor edits hosts. Its methods may be called from many goroutines, once it is configured.
type Editor struct{ cfg Config }

// Configure gives an Editor what it needs.
func (e *Editor) Configure(cfg Config) { e.cfg = cfg }

// DeclareHost creates a host that has not been seen yet, from its MACs, or returns the one that has one of them. It is
// discovered until it is accepted.
func (e *Editor) DeclareHost(ctx context.Context, in inventory.Host, who ledger.Asker) (h inventory.Host, err error) {
	if len(in.NICs) == 0 {
		return in, inventory.Errorf(inventory.Invalid, "a host is declared with its MACs").WithHint("name the MAC of the port that it boots from")
	}
	err = e.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		for i, n := range in.NICs {
			mac, err := inventory.ParseMAC(string(n.MAC))
			if err != nil {
				return err
			}
			in.NICs[i].MAC = mac
			switch h, err = tx.FindHostByMAC(mac); {
			case err == nil:
				return nil
			case !inventory.IsKind(err, inventory.NotFound):
				return err
			}
		}
		h = inventory.Host{ID: e.cfg.NewID(), State: inventory.Discovered, StateReason: "declared by " + who.By, StateSinceAt: e.cfg.Now(), Arch: in.Arch}
		e.takeSaid(&h, in)
		h.Name = cmp.Or(h.Name, "host-"+strings.ReplaceAll(string(in.NICs[0].MAC), ":", ""))
		return e.AddHost(tx, &h, who.By)
	})
	return h, err
}

// AddHost stores a host that somebody adds before it is seen.
func (e *Editor) AddHost(tx inventory.Tx, h *inventory.Host, by string) error {
	if err := checkHost(tx, h); err != nil {
		return err
	}
	if err := tx.CreateHost(h, e.cfg.Now()); err != nil {
		return err
	}
	e.cfg.MayPlace()
	return tx.AddEvent(&inventory.Event{At: e.cfg.Now(), Kind: inventory.EventHostChanged, HostID: h.ID, Detail: "host " + h.Name + " added by " + by})
}

// UpdateHost stores what people say of a host: name, labels, place, taints, disks, pins, whether it is cordoned. It is a
// Conflict when h.Version is not the stored one; nothing is written when nothing changes.
func (e *Editor) UpdateHost(ctx context.Context, h inventory.Host, who ledger.Asker) (inventory.Host, error) {
	return e.cfg.Operator.Changed(ctx, who, h.ID, func(tx inventory.Tx, stored *inventory.Host) error {
		if h.Version != stored.Version {
			return inventory.Errorf(inventory.Conflict, "host %s has changed meanwhile: version %d is not %d", stored.Name, h.Version, stored.Version).
				WithHint("read it again")
		}
		old := *stored
		stored.NICs = slices.Clone(old.NICs)
		e.takeSaid(stored, h)
		return e.EditHost(tx, old, stored, who.By)
	})
}

// takeSaid takes over from in what people say of a host. NICs that stay keep what is known of them.
func (e *Editor) takeSaid(h *inventory.Host, in inventory.Host) {
	h.Name, h.Profile, h.ProfileRevision, h.DiskBoot = in.Name, in.Profile, in.ProfileRevision, in.DiskBoot
	h.UUID, h.Serial, h.AssetTag, h.Manufacturer, h.Product = in.UUID, in.Serial, in.AssetTag, in.Manufacturer, in.Product
	h.Place, h.Labels, h.Taints, h.RootDisk, h.KeepDisks, h.IsCordoned = in.Place, maps.Clone(in.Labels), in.Taints, in.RootDisk, in.KeepDisks, in.IsCordoned
	h.IsRetained, h.Port = in.IsRetained, in.Port
	if len(in.NICs) == 0 {
		return
	}
	var nics []inventory.NIC
	for _, n := range in.NICs {
		kept := inventory.NIC{MAC: n.MAC, Name: n.Name, Vendor: e.cfg.Vendor(n.MAC)}
		if i := slices.IndexFunc(h.NICs, func(old inventory.NIC) bool { return old.MAC == n.MAC }); i >= 0 {
			kept = h.NICs[i]
			kept.Name = cmp.Or(n.Name, kept.Name)
		}
		nics = append(nics, kept)
	}
	h.NICs = nics
}

// EditHost stores h, which was made of old in this transaction, with the event that says what changed. Nothing is written
// when nothing did.
func (e *Editor) EditHost(tx inventory.Tx, old inventory.Host, h *inventory.Host, by string) error {
	if h.IsAdopted != old.IsAdopted && h.ClaimID != "" {
		return inventory.Errorf(inventory.Conflict, "host %s belongs to machine %s", h.Name, inventory.MachineRef(h.Machine)).WithHint("slipway machine delete %s lets it go", h.Machine)
	}
	if err := checkHost(tx, h); err != nil {
		return err
	}
	changes := ledger.ChangedFields(old, *h)
	if len(changes) == 0 {
		*h = old
		return nil
	}
	if old.Port != h.Port {
		if err := e.cfg.JudgePort(tx, h, pxe.Client{}); err != nil {
			return err
		}
	}
	e.cfg.MayPlace() // machines that wait may have it now
	if err := e.cfg.Ledger.Edit(tx, h, "host "+h.Name+" changed ("+strings.Join(changes, ", ")+") by "+by); err != nil {
		return err
	}
	return e.cfg.HoldOn(tx, h)
}

// checkHost checks a host and what it refers to.
func checkHost(tx inventory.Tx, h *inventory.Host) error {
	if err := h.Validate(); err != nil {
		return err
	}
	if h.Profile == "" {
		return nil
	}
	_, err := tx.Profiles().Find(h.Profile)
	return err
}

// Cordon keeps machines from claiming a host, or ends that; all else goes on.
func (e *Editor) Cordon(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error) {
	return e.flag(ctx, who, id, func(h *inventory.Host) *bool { return &h.IsCordoned }, on, "cordon")
}

// Retain leaves the disks of a host as they are when its machine goes, or ends that: the host waits for a person then.
func (e *Editor) Retain(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error) {
	return e.flag(ctx, who, id, func(h *inventory.Host) *bool { return &h.IsRetained }, on, "retention")
}

// flag switches what people say of a host.
func (e *Editor) flag(ctx context.Context, who ledger.Asker, id inventory.HostID, of func(*inventory.Host) *bool, on bool, what string) (inventory.Host, error) {
	return e.cfg.Operator.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if *of(h) == on {
			return nil
		}
		*of(h) = on
		e.cfg.MayPlace() // machines that wait may have it now
		return e.cfg.Ledger.Edit(tx, h, operation.OnOff(what, on)+" by "+who.By)
	})
}

// Adopt says that a server runs already: nothing is ever started on it, and machines can be made of it. Ending it makes
// it an ordinary host again, whose disks are taken as dirty.
func (e *Editor) Adopt(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error) {
	return e.cfg.Operator.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if op, err := tx.FindOpenOperation(h.ID); err == nil {
			return inventory.Errorf(inventory.Conflict, "host %s is busy: %s", h.Name, operation.Describe(&op)).Naming(op.Refs...)
		}
		if h.ClaimID != "" {
			return inventory.Errorf(inventory.Conflict, "host %s belongs to machine %s", h.Name, inventory.MachineRef(h.Machine)).WithHint("slipway machine delete %s lets it go", h.Machine)
		}
		if !on && !h.IsAdopted {
			return inventory.Errorf(inventory.Conflict, "host %s is not adopted", h.Name).WithHint("slipway host show %s says what it is", h.Name)
		}
		if !on {
			h.IsAdopted, h.IsDirty = false, true
			if h.State != inventory.Active {
				return e.cfg.Ledger.Edit(tx, h, "no longer adopted, by "+who.By)
			}
			return e.cfg.Ledger.Move(tx, h, inventory.Release, "", "no longer adopted, by "+who.By)
		}
		h.IsAdopted, h.IsArmed = true, false
		if h.State == inventory.Discovered {
			if err := e.cfg.Ledger.Move(tx, h, inventory.Accept, "", "accepted by "+who.By+" as a server that runs already"); err != nil {
				return err
			}
		}
		if h.State == inventory.Active {
			return e.cfg.Ledger.Edit(tx, h, "adopted by "+who.By)
		}
		return e.cfg.Ledger.Move(tx, h, inventory.Adopt, "", "adopted by "+who.By+": it runs already")
	})
}
