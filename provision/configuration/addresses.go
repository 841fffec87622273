package configuration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ahead"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// standIn stands for the host of a machine that has none yet: the one that it names, or one that is like any.
func standIn(tx inventory.Tx, m *inventory.Machine) (*inventory.Host, bool, error) {
	h := inventory.Host{
		ID: "00000000-0000-0000-0000-000000000000", Name: "any", State: inventory.Installing, Arch: inventory.X8664,
		NICs: []inventory.NIC{{MAC: "02:00:00:00:00:01", IsBoot: true}},
	}
	isKnown := false
	if name := m.Placement.Host; name != "" {
		named, err := tx.FindHostByName(name)
		switch {
		case err == nil && named.Machine == "":
			h, isKnown = named, true
		case err != nil && !inventory.IsKind(err, inventory.NotFound):
			return nil, false, err
		}
	}
	h.Machine = m.Name
	return &h, isKnown, nil
}

// heldBy is what a machine or host would hold.
type heldBy struct {
	address.Subject
	in  *render.Input // nil when nothing is rendered
	all []inventory.Holding
	err error // no address could be given: an *inventory.Error
}

// holds finds out what a machine holds on a host, nil for one that nobody knows yet, or a host without a machine.
func (c *Configurer) holds(tx inventory.Tx, b *address.Book, m *inventory.Machine, h *inventory.Host) (x heldBy, err error) {
	x.Subject = subject(m, h)
	tx.Expect(x.Holder)
	on := h
	if m != nil && h == nil {
		var isKnown bool
		if on, isKnown, err = standIn(tx, m); err != nil {
			return x, err
		}
		if isKnown {
			x.On = on
		}
	} else if m != nil {
		named := *h
		named.Machine = m.Name
		on = &named
	}
	config, err := c.said(tx, b, on, &x)
	if err != nil {
		return x, err
	}
	x.all = unlessIdle(x.Subject, address.Of(config, x.Subject))
	return x, b.Mark(x.Subject, x.all)
}

// said is the configuration of a host, or one with nothing but its name when nothing is rendered for it.
func (c *Configurer) said(tx inventory.Tx, b *address.Book, on *inventory.Host, x *heldBy) (*machineconfig.Config, error) {
	named, _, err := c.namedFor(tx, on)
	if err != nil {
		return nil, err
	}
	bare := &machineconfig.Config{
		Host: machineconfig.HostIdentity{Hostname: named.Name}, Provenance: map[string]string{"/host/hostname": "inventory"},
	}
	if on.Machine != "" {
		m, err := tx.FindMachine(on.Machine)
		if err != nil {
			return nil, fmt.Errorf("read machine of %s: %w", on.Name, err)
		}
		_, bare.Host.Domain, _ = strings.Cut(m.Hostname, ".")
	}
	if on.IsAdopted || on.State == inventory.Discovered || c.cfg.Renderer == nil {
		return bare, nil
	}
	profile, problem, err := c.ProfileOf(tx, on)
	if err != nil || problem != nil {
		return bare, err
	}
	image, err := tx.Images().Find(profile.Image)
	if err != nil {
		return bare, ledger.IgnoreNotFound(err)
	}
	in, err := c.Inputs(tx, on, pxe.Plan{Profile: &profile, Image: &image}, BootMAC(on))
	if err != nil || !in.IsWanted() || len(image.Configs) == 0 {
		return bare, ledger.IgnoreNotFound(err)
	}
	give := b.Give(x.Subject)
	in.Address = func(subnet string) (netip.Prefix, error) {
		p, err := give(subnet)
		if err != nil && x.err == nil {
			x.err = err
		}
		return p, err
	}
	x.in = &in
	if config, _ := c.cfg.Renderer.Config(in); config != nil {
		return config, nil
	}
	return bare, nil
}

// Hold stores what a machine holds on its host, or a host without a machine, and refuses what somebody or something has
// already. Earlier holdings of the subject stay, even if another one has them, too: that is an issue.
func (c *Configurer) Hold(tx inventory.Tx, m *inventory.Machine, h *inventory.Host) error {
	tx = address.Whole(tx)
	b, err := c.book(tx, false)
	if err != nil {
		return err
	}
	x, err := c.holds(tx, b, m, h)
	if err != nil {
		return err
	}
	return c.take(tx, b, &x)
}

// take stores what a subject holds, unless it has something new that is somebody else's. A host that no machine has may be
// without an address: its rendering says so when it boots.
func (c *Configurer) take(tx inventory.Tx, b *address.Book, x *heldBy) error {
	if x.err != nil && x.MachineUID != "" {
		return x.err
	}
	if no, err := cannotHold(tx, b, x); err != nil {
		return err
	} else if no != nil {
		return no
	}
	return c.saveHeld(tx, x.Holder, x.all)
}

// cannotHold says why a subject may not hold what is new to it, nil when it may.
func cannotHold(tx inventory.Tx, b *address.Book, x *heldBy) (*inventory.Error, error) {
	fresh, err := newOnly(tx, x.Subject, x.all)
	if err != nil {
		return nil, err
	}
	if no, err := b.TooMany(x.Subject, x.all, fresh); no != nil || err != nil {
		return no, err
	}
	clashes, err := b.Clashes(x.Subject, fresh, nil)
	if err != nil || len(clashes) == 0 {
		return nil, err
	}
	return clashes[0].Err(), nil
}

// newOnly returns those holdings that a subject has not had before.
func newOnly(tx inventory.Tx, s address.Subject, all []inventory.Holding) ([]inventory.Holding, error) {
	old, err := tx.ListHoldings(inventory.AddressFilter{Owner: s.Key()})
	if err != nil {
		return nil, fmt.Errorf("read what %s holds: %w", s.Holder, err)
	}
	had := map[string][]inventory.Holding{}
	for _, o := range old {
		key := string(o.Kind) + "/" + o.Value
		had[key] = append(had[key], o)
	}
	return slices.DeleteFunc(slices.Clone(all), func(h inventory.Holding) bool {
		return slices.ContainsFunc(had[string(h.Kind)+"/"+h.Value], func(o inventory.Holding) bool { return o.IsSame(&h) })
	}), nil
}

// noteHeld stores what is held, without a word about others.
func (c *Configurer) noteHeld(tx inventory.Tx, b *address.Book, m *inventory.Machine, h *inventory.Host) error {
	x, err := c.holds(tx, b, m, h)
	if err != nil {
		return err
	}
	return c.saveHeld(tx, x.Holder, x.all)
}

// HoldOn stores the addresses and names that a host holds, or that its machine holds if it has one.
func (c *Configurer) HoldOn(tx inventory.Tx, h *inventory.Host) error {
	tx = address.Whole(tx)
	switch {
	case h.Machine == "" && h.State == inventory.Failed: // what its machine has left behind stays
		return nil
	case h.Machine == "":
		return c.Hold(tx, nil, h)
	}
	m, err := tx.FindMachine(h.Machine)
	if err != nil {
		return fmt.Errorf("read machine of %s: %w", h.Name, err)
	}
	return c.Hold(tx, &m, h)
}

// HoldHost is hold for a host that was changed in this transaction, or its machine.
func (c *Configurer) HoldHost(tx inventory.Tx, id inventory.HostID) error {
	h, err := address.Whole(tx).FindHost(id)
	if err != nil {
		return ledger.IgnoreNotFound(err)
	}
	return c.HoldOn(tx, &h)
}

// MayReserve refuses to reserve an address for one machine that the configuration of another names, or that is kept for
// another.
func (c *Configurer) MayReserve(tx inventory.Tx, r *inventory.Reservation) error {
	defer c.held.changed("")
	tx = address.Whole(tx)
	held, err := tx.FindHoldings(inventory.HoldsAddress, r.Address.String())
	if err != nil {
		return fmt.Errorf("read who holds %s: %w", r.Address, err)
	}
	kept, err := tx.FindAllocation(r.Address)
	switch {
	case err == nil:
		held = append(held, inventory.Holding{Holder: kept.Holder})
	case !inventory.IsKind(err, inventory.NotFound):
		return err
	}
	for _, x := range held {
		if x.HostID != "" {
			h, err := tx.FindHost(x.HostID)
			if err != nil {
				return fmt.Errorf("read host of %s: %w", x.Holder, err)
			}
			if address.IsReservedFor(*r, &h) {
				continue
			}
		}
		return inventory.Errorf(inventory.Conflict, "%s is the address of %s%s", r.Address, x.Holder, address.From(x.Source)).
			WithHint("reserve another address, or take it out of that configuration")
	}
	return nil
}

// MayHoldOn says why a machine may not have a host: another one has what it would hold there. It returns nil when it may.
func (c *Configurer) MayHoldOn(tx inventory.Tx, m *inventory.Machine, h *inventory.Host) (*inventory.Error, error) {
	b, err := c.book(tx, true)
	if err != nil {
		return nil, err
	}
	x, err := c.holds(tx, b, m, h)
	if err != nil {
		return nil, err
	}
	if err := saidError(x.err); err != nil {
		return err, nil
	}
	return cannotHold(tx, b, &x)
}

// Leave keeps what a machine holds for the host that it leaves behind, whose system may run on.
func (c *Configurer) Leave(tx inventory.Tx, m *inventory.Machine, h *inventory.Host) error {
	note := inventory.LeftBy(m.Name)
	if err := tx.LeaveAllocations(m.UID, h.ID, note); err != nil {
		return fmt.Errorf("keep addresses of %s: %w", m.Name, err)
	}
	all, err := tx.ListHoldings(inventory.AddressFilter{Owner: inventory.Holder{MachineUID: m.UID}.Key()})
	if err != nil {
		return fmt.Errorf("read what %s holds: %w", m.Name, err)
	}
	for i := range all {
		all[i].Source = note
	}
	if err := c.saveHeld(tx, inventory.Holder{MachineUID: m.UID}, nil); err != nil {
		return err
	}
	return c.saveHeld(tx, inventory.Holder{HostID: h.ID}, all)
}

// FreeLeft frees what a machine has left behind on a host, which is clean or was given away now. A machine that has it brings
// addresses of its own.
func (c *Configurer) FreeLeft(tx inventory.Tx, h *inventory.Host) error {
	kept, err := tx.ListAllocations(inventory.AddressFilter{Owner: inventory.Holder{HostID: h.ID}.Key()})
	if err != nil {
		return fmt.Errorf("read addresses of %s: %w", h.Name, err)
	}
	for _, a := range kept {
		if a.Note == "" && h.Machine == "" {
			continue
		}
		if err := tx.DeleteAllocation(a.Address); err != nil {
			return err
		}
	}
	if err := c.saveHeld(tx, inventory.Holder{HostID: h.ID}, nil); err != nil || h.Machine != "" {
		return err
	}
	b, err := c.book(tx, false)
	if err != nil {
		return err
	}
	return c.noteHeld(tx, b, nil, h)
}

// HeldElsewhere asks for a new check of what machines hold, because something that they were made of was deleted.
func (c *Configurer) HeldElsewhere() {
	c.held.changed("")
	c.isHeldStale.Store(true)
}

// NetworkSaved says that an address of the network was saved, which machines may not have.
func (c *Configurer) NetworkSaved() {
	c.held.changed("")
	c.hasHeld.Store(true)
}

// saveHeld stores what a holder holds.
func (c *Configurer) saveHeld(tx inventory.Tx, x inventory.Holder, all []inventory.Holding) error {
	c.held.changed(x.Key())
	c.hasHeld.Store(true)
	return tx.SaveHoldings(x, all)
}

// eachHolder calls fn with every machine, on its host, and every host without one that somebody has accepted.
func (c *Configurer) eachHolder(tx inventory.Tx, fn func(m *inventory.Machine, h *inventory.Host) error) error {
	machines, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
	if err != nil {
		return fmt.Errorf("list machines: %w", err)
	}
	hosts, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
	if err != nil {
		return fmt.Errorf("list hosts: %w", err)
	}
	on := map[inventory.HostID]*inventory.Host{}
	for i := range hosts {
		on[hosts[i].ID] = &hosts[i]
	}
	for i := range machines {
		if err := fn(&machines[i], on[machines[i].HostID]); err != nil {
			return err
		}
	}
	for i := range hosts {
		if h := &hosts[i]; isHolder(h) {
			if err := fn(nil, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdersAtOnce bounds a transaction of noteAll.
const holdersAtOnce = 50

// noteAll stores what machines and hosts hold, by the keys of the holders, a few in each transaction. Those that are gone are
// left out.
func (c *Configurer) noteAll(ctx context.Context, keys []string) error {
	for some := range slices.Chunk(keys, holdersAtOnce) {
		err := ahead.Write(ctx, c.cfg.Store, expectHolders(some), func(tx inventory.Tx) error {
			b, err := c.book(tx, false)
			if err != nil {
				return err
			}
			for _, key := range some {
				m, h, err := holderOf(tx, key)
				if err != nil {
					return err
				}
				if m == nil && h == nil {
					continue
				}
				if err := c.noteHeld(tx, b, m, h); ledger.IgnoreNotFound(err) != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// expectHolders calls what noteAll reads of holders; see package ahead. A start does so for each host of the site.
func expectHolders(keys []string) func(inventory.Tx) {
	return func(tx inventory.Tx) {
		for _, key := range keys {
			switch kind, id, _ := strings.Cut(key, "/"); kind {
			case "machine":
				_, _ = tx.FindMachineByUID(id)
			default:
				_, _ = tx.FindHost(inventory.HostID(id))
			}
			owner := inventory.AddressFilter{Owner: key}
			_, _ = tx.ListAllocations(owner)
			_, _ = tx.ListHoldings(owner)
		}
	}
}

// FixAddress keeps an address that a person has chosen for a machine or a host without one.
func (c *Configurer) FixAddress(
	tx inventory.Tx, m *inventory.Machine, h *inventory.Host, a netip.Addr,
) (kept inventory.Allocation, err error) {
	tx = address.Whole(tx)
	b, err := c.book(tx, false)
	if err != nil {
		return kept, err
	}
	if kept, err = b.Fix(subject(m, h), a); err != nil {
		return kept, err
	}
	return kept, c.noteHeld(tx, b, m, h)
}

// FreeAddress ends that an address is kept. It is a Conflict while the configuration of its holder asks for one of its subnet.
func (c *Configurer) FreeAddress(tx inventory.Tx, a netip.Addr) error {
	kept, err := tx.FindAllocation(a)
	if err != nil {
		return err
	}
	tx = address.Whole(tx)
	all, err := tx.ListHoldings(inventory.AddressFilter{Owner: kept.Key()})
	if err != nil {
		return fmt.Errorf("read what %s holds: %w", kept.Holder, err)
	}
	isUsed := slices.ContainsFunc(all, func(h inventory.Holding) bool { return h.Subnet == kept.Subnet && h.Value == a.String() })
	if isUsed && kept.Note == "" {
		return inventory.Errorf(inventory.Conflict, "%s is the address of %s", a, kept.Holder).
			WithHint("give it another one: slipway address set ADDRESS --machine NAME; or take fromSubnets out of its configuration")
	}
	c.held.changed(kept.Key())
	return tx.DeleteAllocation(a)
}

// KeepAddress stores the addresses of a host that boots and has none yet.
func (c *Configurer) KeepAddress(ctx context.Context, id inventory.HostID) error {
	return c.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		h, err := tx.FindHost(id)
		if err != nil {
			return err
		}
		return c.HoldOn(tx, &h)
	})
}

// saidError is an error with words for people, nil for none.
func saidError(err error) *inventory.Error {
	if said, ok := errors.AsType[*inventory.Error](err); ok {
		return said
	}
	return nil
}
