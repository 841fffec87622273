package operation

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/pxe"
)

// OrdersConfig is what Orders need besides their Operator.
type OrdersConfig struct {
	*ledger.Ledger // with the store, the time and the log
	Configurer     *configuration.Configurer
	Power          *power.Controllers
	Join           delivery.Minter // ends the tokens of those that join a cluster; nil: there are none
	// Plan is what a host in a subnet would boot.
	Plan func(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error)
	// MayPlace says that machines that wait may find a host now.
	MayPlace func()
}

// Orders are what people ask for on hosts.
type Orders struct {
	*Operator
	cfg OrdersConfig
}

// NewOrders returns the Orders that an Operator carries out.
func NewOrders(o *Operator, cfg OrdersConfig) *Orders { return &Orders{o, cfg} }

// Changed is change for a write that begins or moves an operation: it wakes the goroutine that drives it.
func (o *Operator) Changed(ctx context.Context, who ledger.Asker, id inventory.HostID, fn func(inventory.Tx, *inventory.Host) error) (inventory.Host, error) {
	h, err := o.change(ctx, who, id, fn)
	o.Poke()
	return h, err
}

// change runs fn on a host in one transaction and returns the host as stored, or as it would be stored after a dry run.
func (o *Operator) change(ctx context.Context, who ledger.Asker, id inventory.HostID, fn func(inventory.Tx, *inventory.Host) error) (h inventory.Host, err error) {
	err = o.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if h, err = tx.FindHost(id); err != nil {
			return err
		}
		if err = fn(tx, &h); err == nil && who.Foresee != nil {
			err = o.foresee(tx, &h, who.Foresee)
		}
		return err
	})
	return h, err
}

// isDryRun reports whether the transaction of the job is undone at its end: what is kept outside of the database stays as it is.
func (j *Job) isDryRun() bool {
	return j.o.cfg.Ledger.IsDryRun(j.Tx)
}

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
