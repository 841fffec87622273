package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/hardware/placement"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

const (
	// placeEvery is how often Slipway places machines without a host again while nothing changes.
	placeEvery = 15 * time.Second
	// placeAtOnce bounds one round.
	placeAtOnce = 1000
	// placeLong is how long a round takes that reads very many hosts. It is followed by as long a pause, so that machines
	// that come one by one are placed together, and half of a processor stays free.
	placeLong = 250 * time.Millisecond
	// claimsPerWrite bounds a transaction, so that no lease waits long behind it.
	claimsPerWrite = 50
)

// Placer finds hosts for the machines that wait for one.
type Placer struct {
	cfg        *Config
	rejections rejections
	stock      stock       // the driver's own
	forecast   forecast    // the driver's own
	placeAfter time.Time   // the driver's own
	hasFreed   atomic.Bool // a host has become available since machines were placed
}

// MayPlace lets every machine that waits look for a host in the next round, because one may have become available.
func (p *Placer) MayPlace() { p.hasFreed.Store(true) }

// Place finds hosts for the machines that wait for one. Choosing is pure, on a snapshot; each claim is then one
// transaction that fails when the host was taken meanwhile, and the machine tries again.
func (p *Placer) Place(ctx context.Context) error {
	var (
		due     []inventory.Machine
		choices []placement.Choice
	)
	began := time.Now()
	if began.Before(p.placeAfter) {
		return nil // the driver comes back by itself
	}
	defer func() {
		if took := time.Since(began); took > placeLong {
			p.placeAfter = time.Now().Add(took)
		}
	}()
	err := p.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		now := p.cfg.Now()
		if p.hasFreed.Swap(false) { // a host has become available: everybody who waits has a chance
			p.forecast.of = nil
			due, err = tx.ListMachines(inventory.MachineFilter{Phase: inventory.MachinePending}, inventory.Page{Limit: placeAtOnce})
			slices.SortStableFunc(due, func(a, b inventory.Machine) int { return a.CreatedAt.Compare(b.CreatedAt) })
		} else {
			due, err = tx.ListDueMachines(now, placeAtOnce)
		}
		if err != nil || len(due) == 0 {
			p.stock.free.forget(now)
			return err
		}
		demands, err := demandsOf(tx, due, now)
		if err != nil {
			return err
		}
		candidates, err := p.stock.candidates(tx, now)
		if err != nil {
			return err
		}
		choices = placement.Allocate(demands, candidates)
		return p.forecast.outlook(tx, &p.stock.inspections, demands, choices, now)
	})
	if err != nil {
		return err
	}
	for first := 0; first < len(due); first += claimsPerWrite {
		end := min(first+claimsPerWrite, len(due))
		err := p.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
			for i := first; i < end; i++ {
				if err := p.claim(tx, due[i], choices[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil { // one that cannot be claimed must not keep the others from it
			for i := first; i < end; i++ {
				if one := p.cfg.Store.Write(ctx, func(tx inventory.Tx) error { return p.claim(tx, due[i], choices[i]) }); one != nil {
					err = errors.Join(err, one)
				}
			}
			p.cfg.Log.Warn("machines not placed together", "err", err)
		}
	}
	if len(due) > 0 {
		p.cfg.Operator.Poke()
	}
	return nil
}

// claim binds a machine to the host that was chosen and begins its installation, or notes why there is none.
func (p *Placer) claim(tx inventory.Tx, due inventory.Machine, choice placement.Choice) error {
	if choice.Host != nil {
		expect(tx, &due, choice.Host.ID)
	}
	m, err := tx.FindMachineByUID(due.UID)
	if err != nil || m.HostID != "" || m.Phase != inventory.MachinePending {
		return ledger.IgnoreNotFound(err)
	}
	now := p.cfg.Now()
	for _, h := range m.Hooks {
		if h.Step == inventory.PreClaim && h.AckedAt.IsZero() {
			m.NextAt = now.Add(placeEvery)
			reason, hint := operation.HookWait(&m, h)
			return p.waits(tx, &m, reason, hint)
		}
	}
	switch o := &choice.Outlook; {
	case o.IsHopeless: // its reason says it all
		choice.Code, choice.Rejected = o.Code, nil
	case choice.Host == nil && !o.IsKnown && choice.Code != placement.InvalidConfiguration && placement.CodeOf(m.Reason) != "": // nobody had the time to look again
		m.NextAt = now.Add(placeEvery)
		return tx.UpdateMachine(&m, now)
	}
	p.rejections.put(m.UID, choice)
	if choice.Host == nil {
		m.NextAt = now.Add(placeEvery)
		if choice.AgainAt.After(now) && choice.AgainAt.Before(m.NextAt) {
			m.NextAt = choice.AgainAt
		}
		reason, hint, err := whyNot(tx, &m, choice)
		if err != nil {
			return err
		}
		return p.waits(tx, &m, reason, hint, refsOf(tx, &m, &choice)...)
	}
	h, err := tx.FindHost(choice.Host.ID)
	if err != nil {
		return fmt.Errorf("read host %s: %w", choice.Host.Name, err)
	}
	if h.State != inventory.Available || h.ClaimID != "" || h.IsProtected || h.InMaintenance || h.IsAdopted || h.IsCordoned {
		m.NextAt = now
		return tx.UpdateMachine(&m, now) // it was taken meanwhile
	}
	if err := p.cfg.Operator.MayInstallAgain(tx, &h); inventory.IsKind(err, inventory.Conflict) {
		return p.breakInstallLoop(tx, &m, &h, err)
	} else if err != nil {
		return err
	}
	if clash, err := p.cfg.Configurer.MayHoldOn(tx, &m, &h); err != nil {
		return err
	} else if clash != nil {
		m.NextAt = now.Add(placeEvery)
		return p.waits(tx, &m, "it would not get host "+h.Name+": "+clash.Msg, clash.Hint, append(inventory.RefsOf(clash), inventory.HostRef(h.Name))...)
	}
	return p.bind(tx, &m, &h)
}

// expect asks for what a claim reads of a machine and a host.
func expect(tx inventory.Tx, m *inventory.Machine, id inventory.HostID) {
	tx.Expect(inventory.Holder{MachineUID: m.UID, Machine: m.Name}, inventory.Holder{HostID: id})
}

// breakInstallLoop quarantines a host that is installed again and again, and lets the machine look for another.
func (p *Placer) breakInstallLoop(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, why error) error {
	if err := p.cfg.Operator.SetAside(tx, *h, inventory.IssueInstallLoop, ledger.PublicMessage(why), inventory.HintOf(why)); err != nil {
		return err
	}
	m.NextAt = p.cfg.Now()
	return p.waits(tx, m, ledger.PublicMessage(why), inventory.HintOf(why), inventory.HostRef(h.Name))
}

// waits notes why a machine has no host yet, once.
func (p *Placer) waits(tx inventory.Tx, m *inventory.Machine, reason, hint string, refs ...inventory.Ref) error {
	if m.Reason == reason && m.Hint == hint {
		return tx.UpdateMachine(m, p.cfg.Now())
	}
	m.Reason, m.Hint = reason, hint
	return p.cfg.Ledger.SaveMachine(tx, m, reason, refs...)
}

// bind gives a host to a machine and begins the installation, in one transaction.
func (p *Placer) bind(tx inventory.Tx, m *inventory.Machine, h *inventory.Host) error {
	now := p.cfg.Now()
	c := inventory.Claim{ID: inventory.ClaimID(p.cfg.NewULID()), MachineUID: m.UID, Machine: m.Name, HostID: h.ID}
	if err := tx.CreateClaim(&c, now); err != nil {
		if inventory.IsKind(err, inventory.Conflict) {
			m.NextAt = now
			return tx.UpdateMachine(m, now)
		}
		return err
	}
	fresh, err := tx.FindMachineByUID(m.UID)
	if err != nil {
		return err
	}
	*m = fresh
	m.NextAt, m.Phase, m.Reason, m.Hint = time.Time{}, inventory.MachineProvisioning, "claimed host "+h.Name, ""
	m.Refs = []inventory.Ref{inventory.HostRef(h.Name)}
	if err := tx.UpdateMachine(m, now); err != nil {
		return err
	}
	expect(tx, m, h.ID)
	if *h, err = tx.FindHost(h.ID); err != nil {
		return err
	}
	if err := p.cfg.Configurer.FreeLeft(tx, h); err != nil {
		return err
	}
	if err := p.cfg.Configurer.Hold(tx, m, h); err != nil {
		return err
	}
	if err := tx.AddEvent(&inventory.Event{
		At: now, Kind: inventory.EventClaimed, HostID: h.ID, Subject: "machine/" + m.Name, Detail: "claimed by machine " + m.Name,
		Data: ledger.MachineData(m, map[string]any{"claim": c.ID}),
	}); err != nil {
		return err
	}
	if err := p.cfg.Ledger.NoteMachine(tx, m, m.Reason); err != nil {
		return err
	}
	return p.install(tx, m, h, inventory.OpInstall, "", nil, "machine "+m.Name)
}

// install begins an installation on a host that the machine has claimed. Its callers have called MayInstallAgain. old is the
// claim that a reinstallation ended.
func (p *Placer) install(
	tx inventory.Tx, m *inventory.Machine, h *inventory.Host, kind inventory.OperationKind, old inventory.ClaimID, ladder []operation.Rung, by string,
) error {
	image, err := imageOf(tx, m)
	if err != nil {
		return err
	}
	if err := p.cfg.Ledger.Move(tx, h, inventory.Install, "", "machine "+m.Name+" is installed with profile "+m.Profile); err != nil {
		return err
	}
	root := m.RootDisk
	if kind == inventory.OpReinstall && root.IsZero() {
		root = operation.LastRoot(tx, h.ID)
	}
	_, err = p.cfg.Operator.Start(tx, h, operationOf(kind, m, by), operation.Params{
		Road: operation.RoadOf(&image), Profile: m.Profile, Revision: m.ProfileRevision, Image: image.Name, Root: root, Keep: m.KeepDisks,
		MayRestart: true, Ladder: ladder, OldClaimID: old, HasNode: p.cfg.Operator.HasNodes() && m.Drain.Target != "",
	})
	return err
}
