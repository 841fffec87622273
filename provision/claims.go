package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/provision/operation"

	"slipway.dev/slipway/hardware/placement"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

const (
	// placeEvery is how often machines without a host are looked at again while nothing changes.
	placeEvery = 15 * time.Second
	// placeAtOnce bounds one round.
	placeAtOnce = 1000
	// placeLong is how long a round takes that reads very many hosts. It is followed by as long a pause, so that machines
	// that come one by one are placed together, and half of a processor stays free.
	placeLong = 250 * time.Millisecond
	// claimsPerWrite bounds a transaction, so that no lease waits long behind it.
	claimsPerWrite = 50
)

// place finds hosts for the machines that wait for one. Choosing is pure, on a snapshot; each claim is then one
// transaction that fails when the host was taken meanwhile, and the machine tries again.
func (e *Engine) place(ctx context.Context) error {
	var (
		due     []inventory.Machine
		choices []placement.Choice
	)
	began := time.Now()
	if began.Before(e.placeAfter) {
		return nil // the driver comes back by itself
	}
	defer func() {
		if took := time.Since(began); took > placeLong {
			e.placeAfter = time.Now().Add(took)
		}
	}()
	err := e.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		now := e.cfg.Now()
		if e.hasFreed.Swap(false) { // a host has become available: everybody who waits has a chance
			e.forecast.of = nil
			due, err = tx.ListMachines(inventory.MachineFilter{Phase: inventory.MachinePending}, inventory.Page{Limit: placeAtOnce})
			slices.SortStableFunc(due, func(a, b inventory.Machine) int { return a.CreatedAt.Compare(b.CreatedAt) })
		} else {
			due, err = tx.ListDueMachines(now, placeAtOnce)
		}
		if err != nil || len(due) == 0 {
			return err
		}
		demands, err := demandsOf(tx, due, now)
		if err != nil {
			return err
		}
		candidates, err := e.candidates(tx)
		if err != nil {
			return err
		}
		choices = placement.Allocate(demands, candidates)
		return e.outlook(tx, demands, choices, now)
	})
	if err != nil {
		return err
	}
	for first := 0; first < len(due); first += claimsPerWrite {
		end := min(first+claimsPerWrite, len(due))
		err := e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
			for i := first; i < end; i++ {
				if err := e.claim(tx, due[i], choices[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil { // one that cannot be claimed must not keep the others from it
			for i := first; i < end; i++ {
				if one := e.cfg.Store.Write(ctx, func(tx inventory.Tx) error { return e.claim(tx, due[i], choices[i]) }); one != nil {
					err = errors.Join(err, one)
				}
			}
			e.cfg.Log.Warn("machines not placed together", "err", err)
		}
	}
	if len(due) > 0 {
		e.Poke()
	}
	return nil
}

// demandsOf is what the machines want. What is wrong with one of them is found out when it is claimed.
func demandsOf(tx inventory.Tx, due []inventory.Machine, now time.Time) ([]placement.Demand, error) {
	pools, images, agents := map[string]inventory.Pool{}, map[string]inventory.Image{}, map[inventory.Arch]bool{}
	var all []placement.Demand
	for _, m := range due {
		name := operation.PoolName(m.Pool)
		if _, ok := pools[name]; !ok {
			p, err := poolOf(tx, name)
			if err != nil {
				return nil, fmt.Errorf("read pool %s: %w", name, err)
			}
			pools[name] = p
		}
		kind := m.Profile + "\x00" + m.Image
		if _, ok := images[kind]; !ok {
			i, err := imageOf(tx, &m)
			if err != nil {
				return nil, err
			}
			images[kind] = i
		}
		image := images[kind]
		if _, ok := agents[image.Arch]; !ok {
			_, err := tx.FindImage(inventory.AgentImage(image.Arch))
			agents[image.Arch] = err == nil
		}
		barred, err := existing(tx, m.Placement.NotPools) // one that is gone bars nothing
		if err != nil {
			return nil, err
		}
		walls, err := existing(tx, m.Placement.OnlyPools)
		if err != nil {
			return nil, err
		}
		all = append(all, placement.Demand{
			Machine: m, Pool: pools[name], Image: image, Now: now, Barred: barred, Walls: walls, IsWalled: len(m.Placement.OnlyPools) > 0,
			IsInspectionNeeded: agents[image.Arch],
		})
	}
	return all, nil
}

// existing reads the pools that there are of some.
func existing(tx inventory.Tx, names []string) (all []inventory.Pool, err error) {
	for _, name := range names {
		if p, err := tx.Pools().Find(name); err == nil {
			all = append(all, p)
		} else if !inventory.IsKind(err, inventory.NotFound) {
			return nil, fmt.Errorf("read pool %s: %w", name, err)
		}
	}
	return all, nil
}

// candidates are the hosts that may be claimed, with what they are made of. Inspections never change, so they are
// remembered.
func (e *Engine) candidates(tx inventory.Tx) ([]placement.Candidate, error) {
	hosts, err := tx.ListClaimable()
	if err != nil {
		return nil, fmt.Errorf("list claimable hosts: %w", err)
	}
	goldens, err := tx.Goldens().List(inventory.Page{})
	if err != nil {
		return nil, fmt.Errorf("read golden hardware: %w", err)
	}
	strict := map[string]bool{}
	for _, g := range goldens {
		strict[g.Name] = g.IsStrict
	}
	controllers, err := tx.ListBMCs(inventory.Page{})
	if err != nil {
		return nil, fmt.Errorf("list controllers: %w", err)
	}
	powered := map[inventory.HostID]bool{}
	for _, b := range controllers {
		powered[b.HostID] = b.Driver != inventory.Manual
	}
	var all []placement.Candidate
	for _, h := range hosts {
		c, i, err := e.candidate(tx, h.Host, h.InspectionN)
		if err != nil {
			return nil, err
		}
		c.HasPower = powered[h.ID]
		if strict[i.Golden] {
			c.Faults = i.Faults
		}
		all = append(all, c)
	}
	return all, nil
}

// candidate is a host with what its n-th inspection found; 0 is none.
func (e *Engine) candidate(tx inventory.Tx, h inventory.Host, n int) (c placement.Candidate, i inventory.Inspection, err error) {
	c.Host = h
	if n == 0 {
		return c, i, nil
	}
	if i, err = e.inspections.find(tx, h.ID, n); err != nil {
		return c, i, fmt.Errorf("read inspection of %s: %w", h.Name, err)
	}
	c.Hardware = &i.Hardware
	return c, i, nil
}

// claim binds a machine to the host that was chosen and begins its installation, or notes why there is none.
func (e *Engine) claim(tx inventory.Tx, due inventory.Machine, choice placement.Choice) error {
	m, err := tx.FindMachineByUID(due.UID)
	if err != nil || m.HostID != "" || m.Phase != inventory.MachinePending {
		return ledger.IgnoreNotFound(err)
	}
	now := e.cfg.Now()
	for _, h := range m.Hooks {
		if h.Step == inventory.PreClaim && h.AckedAt.IsZero() {
			m.NextAt = now.Add(placeEvery)
			reason, hint := operation.HookWait(&m, h)
			return e.waits(tx, &m, reason, hint)
		}
	}
	switch o := &choice.Outlook; {
	case o.IsHopeless: // its reason says it all
		choice.Code, choice.Rejected = o.Code, nil
	case choice.Host == nil && !o.IsKnown && choice.Code != placement.InvalidConfiguration && placement.CodeOf(m.Reason) != "": // nobody had the time to look again
		m.NextAt = now.Add(placeEvery)
		return tx.UpdateMachine(&m, now)
	}
	e.rejections.put(m.UID, choice)
	if choice.Host == nil {
		m.NextAt = now.Add(placeEvery)
		if choice.AgainAt.After(now) && choice.AgainAt.Before(m.NextAt) {
			m.NextAt = choice.AgainAt
		}
		reason, hint, err := whyNot(tx, &m, choice)
		if err != nil {
			return err
		}
		return e.waits(tx, &m, reason, hint, refsOf(&m, &choice)...)
	}
	h, err := tx.FindHost(choice.Host.ID)
	if err != nil {
		return fmt.Errorf("read host %s: %w", choice.Host.Name, err)
	}
	if h.State != inventory.Available || h.ClaimID != "" || h.IsProtected || h.InMaintenance || h.IsAdopted || h.IsCordoned {
		m.NextAt = now
		return tx.UpdateMachine(&m, now) // it was taken meanwhile
	}
	if err := e.MayInstallAgain(tx, &h); inventory.IsKind(err, inventory.Conflict) {
		return e.breakInstallLoop(tx, &m, &h, err)
	} else if err != nil {
		return err
	}
	if clash, err := e.MayHoldOn(tx, &m, &h); err != nil {
		return err
	} else if clash != nil {
		m.NextAt = now.Add(placeEvery)
		return e.waits(tx, &m, "it would not get host "+h.Name+": "+clash.Msg, clash.Hint, append(inventory.RefsOf(clash), inventory.HostRef(h.Name))...)
	}
	return e.bind(tx, &m, &h)
}

// refsOf returns what the reason of a choice may name: the pools and the host of the machine's placement, and the hosts that are
// examples.
func refsOf(m *inventory.Machine, choice *placement.Choice) (refs []inventory.Ref) {
	for _, name := range slices.Concat(m.Placement.NotPools, m.Placement.OnlyPools, []string{m.Pool}) {
		refs = append(refs, inventory.PoolRef(name))
	}
	if m.Placement.Host != "" {
		refs = append(refs, inventory.HostRef(m.Placement.Host))
	}
	for _, r := range choice.Rejected {
		refs = append(refs, inventory.HostRef(r.Example))
	}
	return refs
}

// whyNot says why there is no host for a machine. Placement knows the hosts that are free; here are the others.
func whyNot(tx inventory.Tx, m *inventory.Machine, choice placement.Choice) (reason, hint string, err error) {
	if o := &choice.Outlook; o.IsHopeless {
		return o.Reason, o.Hint, nil
	}
	if m.Placement.Host != "" {
		h, err := tx.FindHostByName(m.Placement.Host)
		if err != nil {
			return choice.Reason, choice.Hint, ledger.IgnoreNotFound(err)
		}
		if h.State != inventory.Available {
			reason = fmt.Sprintf("host %s is %s", h.Name, h.State)
			if h.Machine != "" {
				reason += " for machine " + h.Machine
			}
			return ledger.Because(reason, h.StateReason), "slipway host show " + h.Name, nil
		}
		for _, f := range []struct {
			is         bool
			what, hint string
		}{
			{h.InMaintenance, "is in maintenance", "slipway host maintain " + h.Name + " --off"},
			{h.IsProtected, "is protected", "slipway host protect " + h.Name + " --off"},
		} {
			if f.is {
				return "host " + h.Name + " " + f.what, f.hint, nil
			}
		}
		if op, err := tx.FindOpenOperation(h.ID); err == nil {
			return fmt.Sprintf("host %s is busy: %s", h.Name, operation.Describe(&op)), "slipway operation show " + op.ID, nil
		}
		return choice.Reason, choice.Hint, nil
	}
	var all, others []string // placement has counted some of the available ones; the rest is busy, protected or in maintenance
	for _, s := range inventory.States() {
		n, err := tx.CountHosts(inventory.HostFilter{State: s})
		if err != nil {
			return "", "", fmt.Errorf("count hosts: %w", err)
		}
		if n == 0 {
			continue
		}
		all = append(all, fmt.Sprintf("%d %s", n, s))
		if s != inventory.Available {
			others = append(others, all[len(all)-1])
		}
	}
	if len(others) == 0 {
		return choice.Reason, choice.Hint, nil
	}
	if choice.Code == placement.InsufficientResources && len(choice.Rejected) == 0 { // placement has seen none at all
		return "no host is free: " + strings.Join(others, ", "), "slipway host list", nil
	}
	reason = choice.Reason + "; the inventory has " + strings.Join(all, ", ")
	if n := choice.Outlook.Fit; n > 0 {
		reason += fmt.Sprintf("; of all hosts %d would do", n)
	}
	return reason, cmp.Or(choice.Hint, "slipway host list"), nil
}

// breakInstallLoop quarantines a host that is installed again and again, and lets the machine look for another.
func (e *Engine) breakInstallLoop(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, why error) error {
	if err := e.SetAside(tx, *h, inventory.IssueInstallLoop, ledger.PublicMessage(why), inventory.HintOf(why)); err != nil {
		return err
	}
	m.NextAt = e.cfg.Now()
	return e.waits(tx, m, ledger.PublicMessage(why), inventory.HintOf(why))
}

// waits notes why a machine has no host yet, once.
func (e *Engine) waits(tx inventory.Tx, m *inventory.Machine, reason, hint string, refs ...inventory.Ref) error {
	if m.Reason == reason && m.Hint == hint {
		return tx.UpdateMachine(m, e.cfg.Now())
	}
	m.Reason, m.Hint = reason, hint
	return e.ledger.SaveMachine(tx, m, reason, refs...)
}

// bind gives a host to a machine and begins the installation, in one transaction.
func (e *Engine) bind(tx inventory.Tx, m *inventory.Machine, h *inventory.Host) error {
	now := e.cfg.Now()
	c := inventory.Claim{ID: inventory.ClaimID(e.cfg.NewULID()), MachineUID: m.UID, Machine: m.Name, HostID: h.ID}
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
	if err := tx.UpdateMachine(m, now); err != nil {
		return err
	}
	if *h, err = tx.FindHost(h.ID); err != nil {
		return err
	}
	if err := e.FreeLeft(tx, h); err != nil {
		return err
	}
	if err := e.Hold(tx, m, h); err != nil {
		return err
	}
	if err := tx.AddEvent(&inventory.Event{
		At: now, Kind: inventory.EventClaimed, HostID: h.ID, Subject: "machine/" + m.Name, Detail: "claimed by machine " + m.Name,
		Data: ledger.MachineData(m, map[string]any{"claim": c.ID}),
	}); err != nil {
		return err
	}
	if err := e.ledger.NoteMachine(tx, m, m.Reason); err != nil {
		return err
	}
	return e.installMachine(tx, m, h, inventory.OpInstall, "", nil, "machine "+m.Name)
}

// installMachine begins an installation on a host that the machine has claimed; whoever calls it has asked mayInstallAgain.
// old is the claim that a reinstallation ended.
func (e *Engine) installMachine(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, kind inventory.OperationKind, old inventory.ClaimID, ladder []operation.Rung, by string) error {
	image, err := imageOf(tx, m)
	if err != nil {
		return err
	}
	if err := e.ledger.Move(tx, h, inventory.Install, "", "machine "+m.Name+" is installed with profile "+m.Profile); err != nil {
		return err
	}
	root := m.RootDisk
	if kind == inventory.OpReinstall && root.IsZero() {
		root = operation.LastRoot(tx, h.ID)
	}
	_, err = e.Start(tx, h, inventory.Operation{
		Kind: kind, Machine: m.Name, MachineUID: m.UID, ClaimID: m.ClaimID, Pool: operation.PoolName(m.Pool), By: by,
	}, operation.Params{
		Road: operation.RoadOf(&image), Profile: m.Profile, Revision: m.ProfileRevision, Image: image.Name, Root: root, Keep: m.KeepDisks,
		MayRestart: true, Ladder: ladder, OldClaimID: old, HasNode: e.HasNodes() && m.Drain.Target != "",
	})
	return err
}
