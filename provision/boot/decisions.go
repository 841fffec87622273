package boot

import (
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/pxe"
)

// Decisions stores what the Decider decides.
type Decisions struct {
	Frame
	judge      *Judge
	timeline   *Timeline
	configurer *configuration.Configurer
	bootstraps *delivery.Bootstrapper
	signs      *operation.Signs
}

// object changes a host that is not given its image once more: the decision has to be made again.
func (ds *Decisions) object(tx inventory.Tx, q *question, o *objection) error {
	h := &q.host
	// The disk may hold a system by now. An installer that runs again would erase it.
	if o.isLoaded {
		h.IsArmed = false
		if err := ds.Ledger.Edit(tx, h, "disarmed: the installer was loaded in an earlier boot and has not reported; it does not run twice"); err != nil {
			return err
		}
	}
	if o.loop == "" {
		return nil
	}
	hint := "look at its console and at: slipway host events " + h.Name + "; then: slipway host release " + h.Name
	if err := ds.Ledger.OpenIssue(tx, operation.BootLoop(h.ID, o.loop, hint)); err != nil {
		return err
	}
	return ds.Ledger.Move(tx, h, inventory.Fault, q.session.ID, o.loop)
}

// store stores an answer: session, events, the host's new state, and the issues that open or close with it. A machine that
// waits asks every few seconds: the timeline says so once.
func (ds *Decisions) store(tx inventory.Tx, q *question, a *answer) error {
	h, s, isProven := &q.host, &a.session, a.session.Proof != inventory.ProofNone
	// Everything below is in one transaction with the session: after a crash the machine asks again, and finds all or nothing.
	if a.isAsking {
		if err := ds.bootstraps.AskForBootstrap(tx, h); err != nil {
			return err
		}
	}
	if err := ds.signs.TakeTurns(tx, h, s.ID, a.turns); err != nil {
		return err
	}
	// Before the session, which refers to the rendering by its digest.
	if a.Boot == pxe.BootImage {
		if err := ds.configurer.NoteRendering(tx, h, &q.session, a.config); err != nil {
			return err
		}
	}
	if err := tx.SaveSession(*s); err != nil {
		return fmt.Errorf("store boot session: %w", err)
	}
	// A machine that waits gives the same answer every few seconds. The timeline has a line only when that changes.
	if q.before.Boot != s.Boot || q.before.Reason != s.Reason {
		if err := ds.note(tx, h, s, a.Decision); err != nil {
			return err
		}
	}
	// A machine that may be another one must not move the host, nor end its boots.
	if isProven {
		if err := ds.boots(tx, h, s); err != nil {
			return err
		}
	}
	if err := ds.judge.noteProof(tx, h, &q.before, s, a.Decision); err != nil {
		return err
	}
	refused := operation.BootRefused(h.ID, s.Subnet, a.Decision)
	// The issue of an earlier refusal ends with the first decision that is none.
	if a.IsTrap {
		if err := ds.Ledger.OpenIssue(tx, refused); err != nil {
			return err
		}
	} else if err := ds.Ledger.CloseIssue(tx, refused, "the host boots again: "+a.Reason); err != nil {
		return err
	}
	if a.operation.ID == "" {
		return nil
	}
	return ds.signs.BootGiven(tx, h, a.operation, a.Decision, q.base)
}

// boots moves a host that is given its image, and ends its other boots.
func (ds *Decisions) boots(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession) error {
	// The same trigger with the same reason would write the host again with each question.
	if reason := "booting image " + s.Image + " of profile " + s.Profile; s.Boot == string(pxe.BootImage) && !isOn(h, inventory.Boot, reason) {
		if err := ds.Ledger.Move(tx, h, inventory.Boot, s.ID, reason); err != nil {
			return err
		}
	}
	ds.timeline.begins(s)
	return nil
}

// isOn reports whether a trigger leaves a host as it is.
func isOn(h *inventory.Host, on inventory.Trigger, reason string) bool {
	to, err := h.State.Next(on)
	return err == nil && to == h.State && h.StateReason == inventory.Clean(reason, 500)
}

// note adds a decision to the timeline and the log.
func (ds *Decisions) note(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, d pxe.Decision) error {
	events := []*inventory.Event{
		{Kind: inventory.EventScriptAsked, Detail: fmt.Sprintf("%s %s, serial %s", h.Manufacturer, h.Product, h.Serial)},
		{Kind: inventory.EventBootDecided, Detail: decisionLine(d), Refs: inventory.OfMachine(h.Machine, d.Refs...), Data: map[string]any{
			"boot": d.Boot, "reason": d.Reason, "hint": d.Hint, "profile": s.Profile, "image": s.Image,
		}},
	}
	// Both events carry the time of the session, so that they stand together in the timeline.
	for _, ev := range events {
		ev.At, ev.HostID, ev.SessionID, ev.MAC = s.LastAt, h.ID, s.ID, s.MAC
	}
	if err := tx.AddEvent(events...); err != nil {
		return err
	}
	ds.Log.Info("boot decided", "host", h.Name, "mac", s.MAC, "boot", s.ID, "decision", d.Boot, "reason", d.Reason)
	return nil
}
