package operation

import (
	"context"
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// InspectRequest is an inspection that a person orders.
type InspectRequest struct {
	MayRestart bool               `json:"mayRestart,omitempty"` // a machine that runs is restarted; else it is inspected at its next boot
	BurnInFor  inventory.Duration `json:"burnInFor,omitempty"`
	MayWrite   bool               `json:"mayWrite,omitempty"` // the burn-in may overwrite disks
	// BMCUser makes an account of that name on the machine's controller, from the machine itself, with a password that
	// nobody sees; from then on the host is powered by it, over IPMI.
	BMCUser string `json:"bmcUser,omitempty" maxLength:"16" pattern:"^[a-z][a-z0-9-]*$"`
	// BMCNetwork is where that controller must be: an address, or a network such as 10.1.0.0/16. Without it, the address that the
	// agent names must be one that was known before this inspection.
	BMCNetwork string `json:"bmcNetwork,omitempty" maxLength:"64"`
}

// Inspect looks at a host's hardware with our agent. Of a host whose machine was replaced it accepts the new one.
func (o *Orders) Inspect(ctx context.Context, id inventory.HostID, r InspectRequest, who ledger.Asker) (inventory.Host, error) {
	if time.Duration(r.BurnInFor) < 0 || time.Duration(r.BurnInFor) > 7*24*time.Hour {
		return inventory.Host{}, inventory.Errorf(inventory.Invalid, "a burn-in of %s is not between 0 and a week", r.BurnInFor)
	}
	if r.BMCUser != "" && (len(r.BMCUser) > 16 || inventory.CheckName("account", r.BMCUser) != nil) {
		return inventory.Host{}, inventory.Errorf(inventory.Invalid, "%q is not a name for an account of a controller", inventory.Clean(r.BMCUser, 40)).
			WithHint("use at most 16 of a-z, 0-9 and -")
	}
	network, err := ParseBMCNetwork(r.BMCNetwork)
	if err != nil {
		return inventory.Host{}, err
	}
	return o.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if wasReplaced, err := o.acceptReplacement(tx, h, who.By); err != nil {
			return err
		} else if _, err := tx.FindOpenOperation(h.ID); wasReplaced && err == nil {
			return nil // what waited for this goes on
		}
		if h.State == inventory.Active || h.ClaimID != "" || h.IsAdopted {
			return inventory.Errorf(inventory.Conflict, "host %s is %s, claimed or adopted: an inspection would end what runs on it", h.Name, h.State).
				WithHint("release it first")
		}
		if r.MayWrite && (h.IsProtected || h.ClaimID != "") {
			return inventory.Errorf(inventory.Forbidden, "host %s is protected or claimed: nothing on its disks is overwritten", h.Name)
		}
		return o.startInspection(tx, h, Params{MayRestart: r.MayRestart, BurnInFor: r.BurnInFor, MayWrite: r.MayWrite, BMCUser: r.BMCUser, BMCNetwork: network}, who.By)
	})
}

// acceptReplacement forgets by what a host was known, if another machine has taken its place.
func (o *Orders) acceptReplacement(tx inventory.Tx, h *inventory.Host, by string) (bool, error) {
	closed, err := tx.CloseIssue(replaced(h, "").Key, o.cfg.Now())
	if err != nil || !closed {
		return false, err
	}
	last, err := tx.FindInspection(h.ID, 0)
	if err != nil {
		return false, fmt.Errorf("read inspection of %s: %w", h.Name, err)
	}
	last = inventory.Inspection{HostID: h.ID, At: o.cfg.Now(), Hardware: inventory.Hardware{Source: SourceReplaced}}
	if err := tx.SaveInspection(&last); err != nil {
		return false, err
	}
	op, err := tx.FindOpenOperation(h.ID)
	if err == nil {
		err = o.goOnReplaced(tx, op)
	}
	if err = ledger.IgnoreNotFound(err); err != nil {
		return false, err
	}
	return true, o.cfg.Ledger.Edit(tx, h, "the machine in its place is accepted by "+by)
}

// goOnReplaced goes on with what waited for a person to accept another machine. A wipe looks first which disks that one has.
func (o *Orders) goOnReplaced(tx inventory.Tx, op inventory.Operation) error {
	j, err := o.JobOf(tx, op)
	if err != nil {
		return err
	}
	if op.Kind == inventory.OpRelease || op.Kind == inventory.OpClean {
		j.P.MustInspect = true
		j.op.Params = j.P.Encode()
		if op.Step == inventory.StepWipe {
			j.op.Step = inventory.StepNetboot
			return j.forward()
		}
	}
	j.op.NextAt = o.cfg.Now()
	return tx.UpdateOperation(&j.op, o.cfg.Now())
}

// startInspection begins to look at a host's hardware.
func (o *Operator) startInspection(tx inventory.Tx, h *inventory.Host, p Params, by string) error {
	if p.BurnInFor == 0 {
		burn, err := o.burnInOf(tx, h)
		if err != nil {
			return err
		}
		if _, err := tx.FindInspection(h.ID, 0); inventory.IsKind(err, inventory.NotFound) {
			p.BurnInFor = burn // of new hosts
		}
	}
	if err := o.cfg.Ledger.Move(tx, h, inventory.Inspect, "", "inspection asked for by "+by); err != nil {
		return err
	}
	_, err := o.Start(tx, h, inventory.Operation{Kind: inventory.OpInspect, By: by}, p)
	return err
}

// burnInOf is how long the pools that a host is in want new hosts to be loaded.
func (o *Operator) burnInOf(tx inventory.Tx, h *inventory.Host) (inventory.Duration, error) {
	pools, err := tx.Pools().List(inventory.Page{})
	if err != nil {
		return 0, fmt.Errorf("read pools: %w", err)
	}
	var longest inventory.Duration
	for _, p := range pools {
		if sel, err := inventory.ParseSelector(p.Selector); err == nil && (len(sel) == 0 || sel.Matches(h)) {
			longest = max(longest, p.BurnInFor)
		}
	}
	return longest, nil
}

// InspectAccepted begins the inspection of a host that was just accepted, if there is an agent to do it.
func (o *Operator) InspectAccepted(tx inventory.Tx, h *inventory.Host, by string) error {
	if h.State != inventory.Available || h.IsAdopted || h.InMaintenance {
		return nil
	}
	if _, err := tx.Images().Find(inventory.AgentImage(h.Arch)); err != nil {
		return ledger.IgnoreNotFound(err)
	}
	if _, err := tx.FindOpenOperation(h.ID); err == nil {
		return nil
	}
	return o.startInspection(tx, h, Params{}, by)
}
