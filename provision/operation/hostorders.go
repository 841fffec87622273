package operation

import (
	"context"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// Accept makes a discovered host one of ours. by says who did it, for the timeline.
func (o *Orders) Accept(ctx context.Context, id inventory.HostID, who ledger.Asker) (inventory.Host, error) {
	return o.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if err := o.cfg.Ledger.Move(tx, h, inventory.Accept, "", "accepted by "+who.By); err != nil {
			return err
		}
		return o.InspectAccepted(tx, h, who.By)
	})
}

// Install arms a host for a profile whose image may overwrite its disks: its next boots run that image until it
// reports installed. With an empty profile the host keeps the one it has. A discovered host is accepted with it: to
// ask for an installation on that very host is more than to accept it.
func (o *Orders) Install(ctx context.Context, id inventory.HostID, profile string, who ledger.Asker) (inventory.Host, error) {
	return o.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if h.Machine != "" {
			return inventory.Errorf(inventory.Conflict, "host %s belongs to machine %s", h.Name, inventory.MachineRef(h.Machine)).WithHint("slipway machine reinstall %s", h.Machine)
		}
		if op, err := tx.FindOpenOperation(h.ID); err == nil {
			return inventory.Errorf(inventory.Conflict, "host %s is busy: %s", h.Name, Describe(&op)).
				Naming(op.Refs...).WithHint("slipway operation cancel %s ends that", op.ID)
		}
		if h.IsProtected {
			return inventory.Errorf(inventory.Forbidden, "host %s is protected", h.Name).WithHint("lift it first: slipway host protect %s --off", h.Name)
		}
		if h.IsAdopted {
			return inventory.Errorf(inventory.Forbidden, "host %s is adopted: its system is not ours", h.Name).WithHint("end that first: slipway host adopt %s --off", h.Name)
		}
		if h.State == inventory.Failed {
			return inventory.Errorf(inventory.Conflict, "host %s is %s: %s", h.Name, h.State, h.StateReason).Naming(h.Refs...).
				WithHint("release it first: slipway host release %s", h.Name)
		}
		if profile != "" {
			if _, err := tx.Profiles().Find(profile); err != nil {
				return err
			}
			if h.Profile != profile {
				h.Profile, h.ProfileRevision = profile, 0
			}
		}
		p, err := o.cfg.Plan(tx, h, "")
		if err != nil {
			return err
		}
		if p, _, err = o.cfg.Configurer.WithConfig(tx, h, p, configuration.BootMAC(h)); err != nil {
			return err
		}
		if p.Problem != nil {
			return p.Problem
		}
		if no := p.Image.TooOld(h.Facts[inventory.FactCPULevel]); no != nil {
			return no
		}
		h.IsArmed = p.Image.IsInstaller
		if h.State == inventory.Installing { // whatever was under way is over: the installer may run once more
			if err := o.cfg.Ledger.Move(tx, h, inventory.Release, "", "installation asked for again by "+who.By); err != nil {
				return err
			}
		}
		if h.State == inventory.Discovered {
			if err := o.cfg.Ledger.Move(tx, h, inventory.Accept, "", "accepted by "+who.By+" with an install"); err != nil {
				return err
			}
		}
		if p.Image.IsDisk() {
			return o.installHost(tx, h, p, who.By)
		}
		return o.cfg.Ledger.Edit(tx, h, "install of profile "+p.Profile.Name+" asked for by "+who.By)
	})
}

// installHost begins to write a disk image to a host that no machine has claimed.
func (o *Orders) installHost(tx inventory.Tx, h *inventory.Host, p pxe.Plan, by string) error {
	if _, err := tx.Images().Find(inventory.AgentImage(p.Image.Arch)); inventory.IsKind(err, inventory.NotFound) {
		return inventory.Errorf(inventory.Conflict, "image %s is written by our agent, and there is no agent image for %s", p.Image.Name, p.Image.Arch).
			WithHint("make it with: slipway agent-image build")
	}
	if err := o.MayInstallAgain(tx, h); err != nil {
		return err
	}
	if err := o.cfg.Ledger.Move(tx, h, inventory.Install, "", "install of profile "+p.Profile.Name+" asked for by "+by); err != nil {
		return err
	}
	_, err := o.Start(tx, h, inventory.Operation{Kind: inventory.OpInstall, By: by, Pool: inventory.DefaultPool}, Params{
		Road: RoadDisk, Profile: p.Profile.Name, Image: p.Image.Name, MayRestart: true,
	})
	return err
}

// Release takes a host back: it ends a running operation, clears a failure, and makes the host available again.
func (o *Orders) Release(ctx context.Context, id inventory.HostID, who ledger.Asker) (inventory.Host, error) {
	if o.cfg.Join != nil && !who.DryRun {
		if err := o.cfg.Join.RevokeHost(ctx, id); err != nil {
			o.cfg.Log.Warn("join tokens not revoked", "host", id, "err", err) // they end by themselves
		}
	}
	return o.change(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if h.Machine != "" {
			return inventory.Errorf(inventory.Conflict, "host %s belongs to machine %s", h.Name, inventory.MachineRef(h.Machine)).WithHint("slipway machine delete %s releases it", h.Machine)
		}
		if h.IsAdopted {
			return inventory.Errorf(inventory.Conflict, "host %s is adopted: its system is not ours", h.Name).WithHint("end that first: slipway host adopt %s --off", h.Name)
		}
		if h.State == inventory.Releasing || h.State == inventory.Cleaning {
			return inventory.Errorf(inventory.Conflict, "host %s is %s: until it is wiped it is nobody's", h.Name, h.State).
				WithHint("slipway operation list --host %s names what is being done; cancelling that quarantines the host", h.Name)
		}
		if op, err := tx.FindOpenOperation(h.ID); err == nil {
			j, err := o.JobOf(tx, op)
			if err != nil {
				return err
			}
			if err := j.Cancel("the host was released by " + who.By); err != nil {
				return err
			}
			*h = j.Host
		}
		h.IsArmed = false
		if err := o.cfg.Ledger.Move(tx, h, inventory.Release, "", "released by "+who.By); err != nil {
			return err
		}
		if err := EndTurns(tx, h.ID, true); err != nil {
			return err
		}
		if err := o.cfg.Ledger.CloseIssue(tx, delivery.SecretRefused(h.ID, "", ""), "released by "+who.By); err != nil {
			return err
		}
		for _, kind := range []string{inventory.IssueInstall, inventory.IssueInspection, inventory.IssueBurnIn, inventory.IssueWipe, inventory.IssueManual, inventory.IssueInstallLoop} {
			if err := o.cfg.Ledger.CloseIssue(tx, inventory.Issue{Key: kind + "/" + string(h.ID), Type: kind, HostIDs: []inventory.HostID{h.ID}}, "released by "+who.By); err != nil {
				return err
			}
		}
		return o.cfg.Ledger.CloseIssue(tx, BootLoop(h.ID, "", ""), "released by "+who.By)
	})
}

// CleanHost wipes a host that no machine has claimed.
func (o *Orders) CleanHost(ctx context.Context, id inventory.HostID, mode inventory.CleanMode, who ledger.Asker) (inventory.Host, error) {
	if mode == "" {
		mode = inventory.CleanQuick
	}
	if !slices.Contains(inventory.CleanModes(), mode) {
		return inventory.Host{}, inventory.Errorf(inventory.Invalid, "%q is not a way to clean", inventory.Clean(string(mode), 40)).
			WithHint("use one of %v", inventory.CleanModes())
	}
	return o.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		switch {
		case h.IsProtected:
			return inventory.Errorf(inventory.Forbidden, "host %s is protected", h.Name).WithHint("lift it first: slipway host protect %s --off", h.Name)
		case h.IsAdopted:
			return inventory.Errorf(inventory.Forbidden, "host %s is adopted: its system is not ours", h.Name).WithHint("end that first: slipway host adopt %s --off", h.Name)
		case h.ClaimID != "":
			return inventory.Errorf(inventory.Conflict, "host %s belongs to machine %s", h.Name, inventory.MachineRef(h.Machine)).WithHint("slipway machine delete %s wipes it", h.Machine)
		}
		if mode != inventory.CleanNone {
			if _, err := tx.Images().Find(inventory.AgentImage(h.Arch)); inventory.IsKind(err, inventory.NotFound) {
				return inventory.Errorf(inventory.Conflict, "there is no agent image that could wipe %s", h.Name).WithHint("make it with: slipway agent-image build")
			}
		}
		if err := o.cfg.Ledger.Move(tx, h, inventory.Wipe, "", "wipe ("+string(mode)+") asked for by "+who.By); err != nil {
			return err
		}
		_, err := o.Start(tx, h, inventory.Operation{Kind: inventory.OpClean, By: who.By, Pool: inventory.DefaultPool}, Params{Clean: mode, MayRestart: true})
		return err
	})
}

// CancelOperation ends what is being done with a host. The host stays in its state, quarantined where that would not be
// safe to go on from.
func (o *Orders) CancelOperation(ctx context.Context, id string, who ledger.Asker) (op inventory.Operation, err error) {
	err = o.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if op, err = tx.FindOperation(id); err != nil {
			return err
		}
		if !op.IsOpen() {
			return inventory.Errorf(inventory.Conflict, "operation %s is %s already", op.ID, op.State)
		}
		j, err := o.JobOf(tx, op)
		if err != nil {
			return err
		}
		if err := j.Cancel("by " + who.By); err != nil {
			return err
		}
		op = j.op
		switch op.Kind {
		case inventory.OpPower, inventory.OpRotate:
			return nil
		case inventory.OpInspect:
			return j.moveIf(inventory.Release, "inspection cancelled by "+who.By)
		}
		if err := j.moveIf(inventory.Fault, Describe(&op)+" was cancelled by "+who.By); err != nil {
			return err
		}
		return j.tellMachine(inventory.MachineFailed, Describe(&op)+" was cancelled by "+who.By, "slipway machine delete "+op.Machine+", or: slipway machine reinstall "+op.Machine)
	})
	o.Poke()
	return op, err
}

// Maintain cordons a host, or ends that: in maintenance it boots its own disk and nothing new starts on it.
func (o *Orders) Maintain(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error) {
	return o.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if !on {
			if err := o.Wake(tx, h.ID); err != nil {
				return err
			}
		}
		h.InMaintenance = on
		o.cfg.MayPlace() // machines that wait may have it now
		return o.cfg.Ledger.Edit(tx, h, OnOff("maintenance", on)+" by "+who.By)
	})
}

// Protect keeps everything destructive away from a host, or ends that; it disarms the host as well.
func (o *Orders) Protect(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error) {
	return o.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if !on {
			if err := o.Wake(tx, h.ID); err != nil {
				return err
			}
		}
		h.IsProtected = on
		o.cfg.MayPlace()
		h.IsArmed = h.IsArmed && !on
		return o.cfg.Ledger.Edit(tx, h, OnOff("protection", on)+" by "+who.By)
	})
}

// OnOff says in words that something was switched on or off.
func OnOff(what string, on bool) string {
	if on {
		return what + " switched on"
	}
	return what + " switched off"
}
