package provision

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/pxe"
)

// Report takes what a boot script or a booted system says of itself and moves session and host accordingly. It believes a
// report from the address that our DHCP gave the machine in that session. With the session's key it believes one from any
// address, because the installed system may have its own.
func (e *Engine) Report(ctx context.Context, id inventory.SessionID, source netip.Addr, key string, r pxe.Report) error {
	var after, told inventory.BootSession
	data, err := e.takeLog(ctx, id, source, key, &r)
	if err != nil {
		return err
	}
	err = e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		s, err := e.Admitted(tx, id, source, key, "report")
		if err != nil {
			return err
		}
		told = s
		now := e.cfg.Now()
		s.LastAt, s.Step = now, inventory.EventReported
		ev := inventory.Event{
			At: now, Kind: inventory.EventReported, HostID: s.HostID, SessionID: s.ID, MAC: s.MAC,
			Detail: inventory.Clean(ledger.Because(string(r.Step), r.Detail), 500), Data: data,
		}
		if err := tx.AddEvent(&ev); err != nil {
			return err
		}
		after, err = e.reported(tx, s, r)
		return err
	})
	if inventory.IsKind(err, inventory.Forbidden) && told.ID != "" && e.ledger.Refusals.First("report "+string(told.ID)+string(r.Step), e.cfg.Now()) {
		e.recorder.Take(recorder.Note{Session: told, Event: inventory.Event{
			At: e.cfg.Now(), Kind: inventory.EventReportRefused, HostID: told.HostID, SessionID: told.ID, MAC: told.MAC, Detail: ledger.PublicMessage(err), Data: map[string]any{"step": r.Step},
		}})
	}
	if err == nil {
		e.sessions.Put(after)
		e.Poke()
	}
	return err
}

// takeLog checks that a machine may report, takes that from its budget, and keeps its log. It returns what the event says.
func (e *Engine) takeLog(ctx context.Context, id inventory.SessionID, source netip.Addr, key string, r *pxe.Report) (map[string]any, error) {
	r.Log = hideTokens(operation.CleanLog(r.Log))
	var s inventory.BootSession
	err := e.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		s, err = e.Admitted(tx, id, source, key, "report")
		return err
	})
	if err != nil {
		return nil, err
	}
	if !e.Pays(s.ID, s.MAC, "", 2, len(r.Detail)) {
		return nil, strangers.OverBudget()
	}
	return e.KeptLog(map[string]any{"step": r.Step}, s.HostID, s.MAC, r.Log), nil
}

// reported applies a report to its session and host.
func (e *Engine) reported(tx inventory.Tx, s inventory.BootSession, r pxe.Report) (inventory.BootSession, error) {
	h, err := tx.FindHost(s.HostID)
	if err != nil {
		return s, fmt.Errorf("read host of boot session %s: %w", s.ID, err)
	}
	if s.Proof == inventory.ProofNone { // it stands in the timeline, and changes nothing: the host itself may run on
		return e.closeReported(tx, s, r)
	}
	if err := takesReport(tx, &h, &s, r.Step); err != nil {
		return s, err
	}
	if taken, err := e.TakeReport(tx, &h, s, r); err != nil {
		return s, err
	} else if taken {
		return e.closeReported(tx, s, r)
	}
	detail := inventory.Clean(r.Detail, 400)
	outcome, on, why := inventory.Outcome(""), inventory.Trigger(""), ""
	switch r.Step {
	case pxe.ReportProgress:
		return s, tx.SaveSession(s)
	case pxe.ReportDisk:
		outcome = inventory.OutcomeDisk
	case pxe.ReportUp:
		outcome, on, why = inventory.OutcomeArrived, inventory.Arrive, ledger.Because("reported up", detail)
	case pxe.ReportInstalled:
		outcome, on, why = inventory.OutcomeArrived, inventory.Arrive, ledger.Because("reported installed", detail)
		h.IsArmed = false
	case pxe.ReportFailed:
		outcome, on, why = inventory.OutcomeFailed, inventory.Fault, "reported a failure: "+detail
	default:
		return s, inventory.Errorf(inventory.Invalid, "%q is no step of a report", inventory.Clean(string(r.Step), 40)).
			WithHint("use progress, disk, up, installed or failed")
	}
	// A host that a person has taken back meanwhile keeps the state they gave it.
	if _, err := h.State.Next(on); on != "" && err == nil {
		if err := e.ledger.Move(tx, &h, on, s.ID, why); err != nil {
			return s, err
		}
	}
	if r.Step == pxe.ReportUp {
		if err := operation.EndTurns(tx, h.ID, false); err != nil {
			return s, err
		}
	}
	if on == inventory.Arrive {
		if err := e.ledger.CloseIssue(tx, operation.BootLoop(h.ID, "", ""), "the host reported up"); err != nil {
			return s, err
		}
	}
	if !s.EndedAt.IsZero() {
		return s, tx.SaveSession(s)
	}
	return s, e.ledger.EndIn(tx, &s, outcome, detail)
}

// closeReported ends the session of a report that an operation has taken.
func (e *Engine) closeReported(tx inventory.Tx, s inventory.BootSession, r pxe.Report) (inventory.BootSession, error) {
	outcome := inventory.OutcomeArrived
	switch r.Step {
	case pxe.ReportProgress:
		return s, tx.SaveSession(s)
	case pxe.ReportFailed:
		outcome = inventory.OutcomeFailed
	}
	if !s.EndedAt.IsZero() {
		return s, tx.SaveSession(s)
	}
	return s, e.ledger.EndIn(tx, &s, outcome, inventory.Clean(r.Detail, 400))
}

// Artefact returns the digest of what a machine fetches as d/name in that session; its decision must be an image that has
// it. A name of the image comes before the digest. Some installers (kiwi's) make up the addresses of other files by
// changing the name at the end of its URL.
func (e *Engine) Artefact(ctx context.Context, id inventory.SessionID, source netip.Addr, d inventory.Digest, name string) (inventory.Digest, error) {
	err := e.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		s, err := e.Admitted(tx, id, source, "", "artefact")
		if err != nil {
			return err
		}
		if s.Boot != string(pxe.BootImage) && s.Boot != string(pxe.BootAgent) {
			return inventory.Errorf(inventory.Forbidden, "this boot was decided as %s: %s", s.Boot, s.Reason)
		}
		i, err := tx.Images().Find(s.Image)
		if err != nil {
			return err
		}
		if s.Boot == string(pxe.BootAgent) && !slices.ContainsFunc(i.Files, func(f inventory.ImageArtefact) bool { return f.Digest == d }) {
			return e.mayWrite(tx, s, d)
		}
		if !slices.ContainsFunc(i.Files, func(f inventory.ImageArtefact) bool { return f.Digest == d }) {
			return inventory.Errorf(inventory.Forbidden, "image %s has no artefact %s", i.Name, d).
				WithHint("the image changed during the boot: boot the machine again")
		}
		for _, f := range i.Files {
			if f.Name == name {
				d = f.Digest
			}
		}
		return nil
	})
	return d, err
}

// mayWrite lets an agent fetch the disk image that it was told to write.
func (e *Engine) mayWrite(tx inventory.Tx, s inventory.BootSession, d inventory.Digest) error {
	op, err := tx.FindOpenOperation(s.HostID)
	if err != nil {
		return inventory.Errorf(inventory.Forbidden, "nothing is being installed on this host")
	}
	i, err := tx.Images().Find(operation.ParamsOf(&op).Image)
	if err != nil {
		return err
	}
	if f, ok := i.DiskFile(); !ok || f.Digest != d || op.Step != inventory.StepWrite {
		return inventory.Errorf(inventory.Forbidden, "image %s has no artefact %s", i.Name, d).WithHint("the image changed during the boot: boot the machine again")
	}
	return nil
}

// tokenRE finds bootstrap tokens in logs; what stands before the dot is public.
var tokenRE = regexp.MustCompile(`\b([a-z0-9]{6})\.[a-z0-9]{16}\b`)

func hideTokens(log string) string { return tokenRE.ReplaceAllString(log, "$1.****") }
