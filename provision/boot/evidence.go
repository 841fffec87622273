package boot

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/hardware/identity"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

const (
	// ConfirmedFor is how long a person's word counts for the next boot of a host.
	ConfirmedFor = time.Hour

	// startsOverWithin is how long after its last sign a boot that never reported up may be repeated: firmware, installers and
	// first boots fail and begin anew. After that its system counts as running, because not all systems report.
	startsOverWithin = 15 * time.Minute
	// These bound how far back a host's boots, changes of power and orders of it are looked at.
	sessionsLooked = 8
	bootsLooked    = 500
	powersLooked   = 20
	ordersLooked   = 3

	// onsetWithin is how long after a host was seen on again a boot counts as the one that it began.
	onsetWithin = 20 * time.Minute
)

// Judge finds out whether a machine that boots as a host is that host.
type Judge struct {
	Frame
	hasPower   bool // controllers can be asked
	power      *power.Controllers
	configurer *configuration.Configurer
	operator   *operation.Operator
}

// judge says whether a machine that boots under a host's MAC is that host. What it needs is read only for a host whose
// system runs, or that is on another switch port.
func (j *Judge) judge(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, c pxe.Client) (v identity.Verdict, err error) {
	ev := identity.Evidence{
		IsConfirmed: s.Proof == inventory.ProofPerson, IsSettled: isSettled(h), Heard: s.Port,
		Known: identity.Machine{UUID: h.UUID, Serial: h.Serial}, Said: identity.Machine{UUID: c.UUID},
	}
	if c.Identity != nil {
		ev.Said = identity.Machine{UUID: c.Identity.UUID, Serial: c.Identity.Serial}
	}
	for _, n := range h.NICs {
		if n.MAC == c.MAC {
			ev.Learned = n.Port
		}
	}
	// An operation knows more than the host's state: it may have switched the system off itself.
	op, err := tx.FindOpenOperation(h.ID)
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return v, fmt.Errorf("read what is done with %s: %w", h.Name, err)
	}
	if ev.IsRunning, err = j.runsOn(tx, h, s, &op); err != nil {
		return v, err
	}
	// A host without a system may be carried to another place. One with a system stays where its disks are.
	isMoved := identity.HasMoved(ev.Learned, ev.Heard) && ev.IsSettled
	if ev.IsConfirmed || !ev.IsRunning && !isMoved {
		return identity.Judge(ev), nil
	}
	if !isMoved && s.Proof != "" && s.Proof != inventory.ProofNone {
		return identity.Verdict{Proof: s.Proof}, nil // it was proven when this boot began
	}
	if err := j.weigh(tx, h, s, &op, &ev); err != nil {
		return v, err
	}
	v = identity.Judge(ev)
	if v.IsOpen {
		// Slipway asks the controller in the background. The machine waits in its boot loader and asks again.
		j.power.Glances.Want(h.ID, s.ID, j.Now())
	}
	if v.Proof == inventory.ProofNone && v.Doubt == "" {
		if p, problem, err := j.configurer.ProfileOf(tx, h); err != nil || problem == nil && p.Isolated && p.SavedByAdmin {
			return identity.Verdict{}, err // level L0 asks nobody who it is
		}
	}
	return v, nil
}

// isSettled reports whether a host has a system or a machine: then it does not wander to other switch ports.
func isSettled(h *inventory.Host) bool {
	switch h.State {
	case inventory.Installing, inventory.Active, inventory.Releasing, inventory.Cleaning:
		return true
	}
	return h.ClaimID != ""
}

// isRunningAt reports whether the system of a host runs on while an operation is at a step.
func isRunningAt(s inventory.Step) bool {
	switch s {
	case inventory.StepPreDrain, inventory.StepDrain, inventory.StepPreFence, inventory.StepPostJoin:
		return true
	}
	return false
}

// runsOn reports whether a system of the host runs as far as is known: it reported up, or, outside of an operation, it was
// given its secrets in an earlier boot, a while ago.
func (j *Judge) runsOn(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, op *inventory.Operation) (bool, error) {
	switch {
	case h.State == inventory.Active:
		return true, nil
	case op.ID != "":
		return isRunningAt(op.Step), nil
	case h.State != inventory.Installing:
		return false, nil
	}
	latest, err := tx.ListSessions(h.ID, inventory.Page{Limit: sessionsLooked})
	if err != nil {
		return false, fmt.Errorf("read boots of %s: %w", h.Name, err)
	}
	for _, old := range latest {
		// Only boots of the present state count, and only after a while: an installer restarts soon.
		isPast := old.ID != s.ID && !old.LastAt.Before(h.StateSinceAt) && s.StartedAt.Sub(old.LastAt) > startsOverWithin
		isGiven := isPast && old.Config != "" && session.StepIndex(old.Step) >= session.StepIndex(inventory.EventConfigSent)
		if !isGiven {
			continue
		}
		r, err := tx.FindRendering(old.Config)
		if err != nil && !inventory.IsKind(err, inventory.NotFound) {
			return false, fmt.Errorf("read rendering of boot session %s: %w", old.ID, err)
		}
		// A configuration without secrets is given to anybody. That it was given shows nothing.
		if slices.ContainsFunc(r.Documents, func(d inventory.RenderedDocument) bool { return d.IsSecret }) {
			return true, nil
		}
	}
	return false, nil
}

// weigh adds to what is known of a boot all that may prove it.
func (j *Judge) weigh(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, op *inventory.Operation, ev *identity.Evidence) (err error) {
	if ev.IsConfirmed, err = j.isConfirmed(tx, h, s); err != nil {
		return err
	}
	if ev.IsOrdered, err = j.isOrdered(tx, h, s, op); err != nil {
		return err
	}
	if ev.Heard != "" {
		// Two hosts at one port: a switch in between, or a virtual machine. The port then proves nothing.
		if ev.IsShared, err = tx.IsPortShared(ev.Heard, h.ID); err != nil {
			return fmt.Errorf("find who is on port %s: %w", ev.Heard, err)
		}
		last, err := tx.FindInspection(h.ID, 0)
		if err != nil && !inventory.IsKind(err, inventory.NotFound) {
			return fmt.Errorf("read inspection of %s: %w", h.Name, err)
		}
		for _, p := range last.Hardware.Ports {
			if p.MAC == s.MAC {
				ev.Neighbour = p.Neighbour
			}
		}
	}
	b, err := tx.FindBMC(h.ID)
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return fmt.Errorf("read controller of %s: %w", h.Name, err)
	}
	// A person's word about power, or a magic packet, is no evidence of a controller.
	ev.HasController = err == nil && j.hasPower && b.Driver != inventory.Manual && b.Driver != inventory.WoL
	seen := j.power.Glances.Of(h.ID, s.ID, j.Now())
	ev.Power = seen.Power
	// A restart that the controller saw is evidence only for the boot that followed at once.
	if seen.RestartedAt.After(h.StateSinceAt) && identity.IsRestartOf(s.StartedAt, seen.RestartedAt) {
		if ev.IsRestarted, err = operation.Follows(tx, h.ID, s.StartedAt, seen.RestartedAt, startsOverWithin); err != nil {
			return err
		}
	}
	ev.WasOff, err = wasOff(tx, h, s, &b)
	return err
}

// expect calls what judge reads of a host; see package ahead.
func (j *Judge) expect(tx inventory.Tx, h inventory.HostID, port string) {
	_, _ = tx.FindOpenOperation(h)
	_, _ = tx.ListEvents(confirmations(h), 0, 1)
	_, _ = tx.ListOperations(powerOperations(h), inventory.Page{Limit: ordersLooked})
	if port != "" {
		_, _ = tx.IsPortShared(port, h)
		_, _ = tx.FindInspection(h, 0)
	}
	_, _ = tx.FindBMC(h)
	_, _ = tx.ListEvents(powerChanges(h), 0, powersLooked)
}

// The filters of what proves a boot.
func confirmations(h inventory.HostID) inventory.EventFilter {
	return inventory.EventFilter{HostID: h, Kind: inventory.EventHostConfirmed, Before: math.MaxInt64}
}

func powerChanges(h inventory.HostID) inventory.EventFilter {
	return inventory.EventFilter{HostID: h, Kind: inventory.EventPower, Before: math.MaxInt64}
}

func powerOperations(h inventory.HostID) inventory.OperationFilter {
	return inventory.OperationFilter{HostID: h, Kind: inventory.OpPower}
}

// isConfirmed reports whether a person said beforehand that the next boot of a host is its own. The word counts once.
func (j *Judge) isConfirmed(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession) (bool, error) {
	if s.Proof == inventory.ProofPerson {
		return true, nil
	}
	words, err := tx.ListEvents(confirmations(h.ID), 0, 1)
	// A word for one boot is used up by it. One that is older than an hour, or younger than this boot, counts for none.
	if err != nil || len(words) == 0 || words[0].SessionID != "" || j.Now().Sub(words[0].At) > ConfirmedFor || s.StartedAt.Before(words[0].At) {
		return false, err
	}
	latest, err := tx.ListSessions(h.ID, inventory.Page{Limit: sessionsLooked})
	if err != nil {
		return false, fmt.Errorf("read boots of %s: %w", h.Name, err)
	}
	isUsed := slices.ContainsFunc(latest, func(o inventory.BootSession) bool {
		return o.ID != s.ID && o.Proof == inventory.ProofPerson && !o.StartedAt.Before(words[0].At)
	})
	return !isUsed, nil
}

// isOrdered reports whether somebody has the host boot: an operation, a restart a moment ago, or an installer that may run.
// An order of power counts for the boot that it began.
func (j *Judge) isOrdered(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, op *inventory.Operation) (bool, error) {
	if h.IsArmed || op.ID != "" && op.Kind != inventory.OpRotate && !isRunningAt(op.Step) {
		return true, nil
	}
	ops, err := tx.ListOperations(powerOperations(h.ID), inventory.Page{Limit: ordersLooked})
	if err != nil {
		return false, fmt.Errorf("read operations of %s: %w", h.Name, err)
	}
	for _, o := range ops {
		a := operation.ParamsOf(&o).Action
		// Switching on a machine that was on already began no boot.
		isStart := (a == bmc.On || a == bmc.Cycle || a == bmc.Reset) && !operation.ParamsOf(&o).WasSo
		if !isStart || o.State != inventory.OpDone || o.EndedAt.Before(h.StateSinceAt) || j.Now().Sub(o.EndedAt) >= operation.RestartedFor {
			continue
		}
		if is, err := operation.Follows(tx, h.ID, s.StartedAt, o.StartedAt, startsOverWithin); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// wasOff reports whether the host was seen off, by its controller or by a person, since its state began, and this boot is the
// one that followed.
func wasOff(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, b *inventory.BMC) (bool, error) {
	// The controller's last answer may be newer than any event of a change.
	if b.Power == inventory.PowerOff && b.PowerAt.After(h.StateSinceAt) {
		return operation.Follows(tx, h.ID, s.StartedAt, b.PowerAt, startsOverWithin)
	}
	changes, err := tx.ListEvents(powerChanges(h.ID), 0, powersLooked)
	if err != nil {
		return false, fmt.Errorf("read power of %s: %w", h.Name, err)
	}
	var on time.Time // when it was first seen on after it was off
	for _, x := range changes {
		fields, _ := x.Data.(map[string]any)
		switch to := fmt.Sprint(fields["to"]); {
		case !x.At.After(h.StateSinceAt):
			return false, nil
		case to == string(inventory.PowerOn):
			on = x.At
		case to == string(inventory.PowerOff) && !on.IsZero() && s.StartedAt.Sub(on) > onsetWithin:
			return false, nil // it has run since: this boot is another one
		case to == string(inventory.PowerOff):
			return operation.Follows(tx, h.ID, s.StartedAt, x.At, startsOverWithin)
		}
	}
	return false, nil
}

// isHeld reports whether a boot that nothing proves waits. One that would be given no secrets goes on.
func isHeld(v identity.Verdict, config *configuration.Rendered) bool {
	return v.Proof == inventory.ProofNone && (v.Doubt != "" || config != nil && config.HasSecret)
}

// held is the decision for such a boot: it waits in its boot loader, and asks again.
func held(h *inventory.Host, v identity.Verdict) pxe.Decision {
	return pxe.Decision{Boot: pxe.BootWait, Again: pxe.AskAgain, Reason: unproven(h, v), Hint: confirmHint(h)}
}

// unproven says why a boot does not count as one of the host.
func unproven(h *inventory.Host, v identity.Verdict) string {
	why := "nothing shows that this machine is " + h.Name
	switch {
	case v.Doubt != "":
		why = "this machine may not be " + h.Name + ": " + v.Doubt
	case v.IsOpen:
		why = "the controller of " + h.Name + " is asked whether it was restarted"
	}
	if h.State == inventory.Active {
		return fmt.Sprintf("%s runs, nobody ordered this boot, and %s", h.Name, why)
	}
	return why
}

func confirmHint(h *inventory.Host) string {
	return "if it is " + h.Name + ": slipway host confirm " + h.Name
}

// noteProof opens the issue about a boot that nothing proves, and closes it when the same boot is proven after all.
func (j *Judge) noteProof(tx inventory.Tx, h *inventory.Host, before, s *inventory.BootSession, d pxe.Decision) error {
	// The key is that of the host, so that each host has one such issue, however many machines pretend to be it.
	issue := unconfirmed(h)
	switch {
	case s.Proof != inventory.ProofNone && before.Proof == inventory.ProofNone:
		return j.Ledger.CloseIssue(tx, issue, "the boot is one of the host: "+string(s.Proof))
	case s.Proof != inventory.ProofNone || d.Boot == pxe.BootDisk || d.Boot == pxe.BootIgnore:
		return nil
	}
	issue.Cause = inventory.Clean(fmt.Sprintf("a machine boots as %s, and nothing shows that it is %s: it is given no secrets", h.Name, h.Name), 500)
	if d.Boot == pxe.BootWait {
		issue.Severity, issue.Cause, issue.Refs = inventory.SeverityError, inventory.Clean(d.Reason, 500), d.Refs
	}
	// The port tells an admin where to look for the other machine.
	if s.Port != "" {
		issue.Cause += "; it is on switch port " + inventory.Clean(s.Port, 200)
	}
	return j.Ledger.OpenIssue(tx, issue)
}

// unconfirmed is the issue that nothing shows that a machine that boots as a host is that host.
func unconfirmed(h *inventory.Host) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueUnconfirmed + "/" + string(h.ID), Type: inventory.IssueUnconfirmed, Severity: inventory.SeverityWarning,
		HostIDs: []inventory.HostID{h.ID}, Hint: confirmHint(h) + "; else find the other machine: it has the MAC of " + h.Name,
	}
}

// Confirm takes a person's word that the machine that boots as a host is that host. With no such boot under way the word
// counts for the next one, for an hour.
func (j *Judge) Confirm(ctx context.Context, id inventory.HostID, who ledger.Asker) (inventory.Host, error) {
	var proven inventory.BootSession
	h, err := j.operator.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if h.State == inventory.Discovered {
			return inventory.Errorf(inventory.Conflict, "host %s is not accepted", h.Name).WithHint("slipway host accept %s", h.Name)
		}
		ev := inventory.Event{At: j.Now(), Kind: inventory.EventHostConfirmed, HostID: h.ID, Detail: who.By + " says that the next machine that boots as " + h.Name + " is " + h.Name, Data: map[string]any{"by": who.By}}
		latest, err := tx.ListSessions(h.ID, inventory.Page{Limit: 1})
		if err != nil {
			return fmt.Errorf("read boots of %s: %w", h.Name, err)
		}
		// A boot that waits now gets the word itself. Otherwise the word waits for the next boot.
		if len(latest) == 1 && latest[0].EndedAt.IsZero() && latest[0].Proof == inventory.ProofNone {
			proven = latest[0]
			proven.Proof = inventory.ProofPerson
			if err := tx.SaveSession(proven); err != nil {
				return fmt.Errorf("store boot session: %w", err)
			}
			ev.SessionID, ev.MAC, ev.Detail = proven.ID, proven.MAC, who.By+" says that the machine that boots as "+h.Name+" is "+h.Name
		}
		if err := tx.AddEvent(&ev); err != nil {
			return err
		}
		// Both issues ask who that machine is. The person has just answered.
		for _, i := range []inventory.Issue{unconfirmed(h), delivery.SessionRefused(h.ID)} {
			if err := j.Ledger.CloseIssue(tx, i, "confirmed by "+who.By); err != nil {
				return err
			}
		}
		return nil
	})
	// After the commit: the memory must not have a proof that the store has not.
	if err == nil && proven.ID != "" && !who.DryRun {
		j.Sessions.Prove(proven.MAC, proven.ID)
	}
	return h, err
}
