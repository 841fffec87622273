package boot

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"regexp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/pxe"
)

// Reports takes what boot scripts, installers and booted systems say of themselves.
type Reports struct {
	Frame
	gate      *strangers.Gate
	admission *delivery.Admission
	signs     *operation.Signs
}

// Report takes what a boot script or a booted system says of itself and moves session and host accordingly. It believes a
// report from the address that our DHCP gave the machine in that session. With the session's key it believes one from any
// address, because the installed system may have its own.
func (rs *Reports) Report(ctx context.Context, id inventory.SessionID, source netip.Addr, key string, r pxe.Report) error {
	var after, told inventory.BootSession
	data, err := rs.takeLog(ctx, id, source, key, &r)
	if err != nil {
		return err
	}
	// Admitted once more, inside of the transaction that writes: the address may have changed hands since takeLog.
	err = rs.Store.Write(ctx, func(tx inventory.Tx) error {
		s, err := rs.admission.Admitted(tx, id, source, key, "report")
		if err != nil {
			return err
		}
		told = s
		now := rs.Now()
		s.LastAt, s.Step = now, inventory.EventReported
		ev := inventory.Event{
			At: now, Kind: inventory.EventReported, HostID: s.HostID, SessionID: s.ID, MAC: s.MAC,
			Detail: inventory.Clean(ledger.Because(string(r.Step), r.Detail), 500), Data: data,
		}
		if err := tx.AddEvent(&ev); err != nil {
			return err
		}
		after, err = rs.reported(tx, s, r)
		return err
	})
	// The refusal is noted once for each boot and step, because a machine repeats its report.
	if inventory.IsKind(err, inventory.Forbidden) && told.ID != "" && rs.Ledger.Refusals.First("report "+string(told.ID)+string(r.Step), rs.Now()) {
		rs.Recorder.Take(recorder.Note{Session: told, Event: inventory.Event{
			At: rs.Now(), Kind: inventory.EventReportRefused, HostID: told.HostID, SessionID: told.ID, MAC: told.MAC, Detail: ledger.PublicMessage(err), Data: map[string]any{"step": r.Step},
			Refs: inventory.RefsOf(err),
		}})
	}
	if err == nil {
		// After the commit, so that memory never shows a step that the store lost.
		rs.Sessions.Put(after)
		rs.signs.Poke()
	}
	return err
}

// takeLog checks that a machine may report, takes that from its budget, and keeps its log. It returns what the event says.
func (rs *Reports) takeLog(ctx context.Context, id inventory.SessionID, source netip.Addr, key string, r *pxe.Report) (map[string]any, error) {
	// Tokens go before anything is stored: logs are read by people who may not see secrets.
	r.Log = hideTokens(operation.CleanLog(r.Log))
	var s inventory.BootSession
	err := rs.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		s, err = rs.admission.Admitted(tx, id, source, key, "report")
		return err
	})
	if err != nil {
		return nil, err
	}
	// A report costs two notes and its text. A machine beyond its budget could fill the disk.
	if !rs.gate.Pays(s.ID, s.MAC, "", 2, len(r.Detail)) {
		return nil, strangers.OverBudget()
	}
	return rs.gate.KeptLog(map[string]any{"step": r.Step}, s.HostID, s.MAC, r.Log), nil
}

// reported applies a report to its session and host.
func (rs *Reports) reported(tx inventory.Tx, s inventory.BootSession, r pxe.Report) (inventory.BootSession, error) {
	h, err := tx.FindHost(s.HostID)
	if err != nil {
		return s, fmt.Errorf("read host of boot session %s: %w", s.ID, err)
	}
	if s.Proof == inventory.ProofNone { // it stands in the timeline, and changes nothing: the host itself may run on
		return rs.closeReported(tx, s, r)
	}
	if err := takesReport(tx, &h, &s, r.Step); err != nil {
		return s, err
	}
	if taken, err := rs.signs.TakeReport(tx, &h, s, r); err != nil {
		return s, err
	} else if taken {
		return rs.closeReported(tx, s, r)
	}
	// The detail is text of the machine, and ends up in reasons and issues.
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
		// The installer has run. Disarmed, the host cannot be installed again by accident.
		h.IsArmed = false
	case pxe.ReportFailed:
		outcome, on, why = inventory.OutcomeFailed, inventory.Fault, "reported a failure: "+detail
	default:
		return s, inventory.Errorf(inventory.Invalid, "%q is no step of a report", inventory.Clean(string(r.Step), 40)).
			WithHint("use progress, disk, up, installed or failed")
	}
	// A host that a person has taken back meanwhile keeps the state they gave it.
	if _, err := h.State.Next(on); on != "" && err == nil {
		if err := rs.Ledger.Move(tx, &h, on, s.ID, why); err != nil {
			return s, err
		}
	}
	// The host runs, so its turn is free for the next one of its group.
	if r.Step == pxe.ReportUp {
		if err := operation.EndTurns(tx, h.ID, false); err != nil {
			return s, err
		}
	}
	if on == inventory.Arrive {
		if err := rs.Ledger.CloseIssue(tx, operation.BootLoop(h.ID, "", ""), "the host reported up"); err != nil {
			return s, err
		}
	}
	if !s.EndedAt.IsZero() {
		return s, tx.SaveSession(s)
	}
	return s, rs.Ledger.EndIn(tx, &s, outcome, detail)
}

// closeReported ends the session of a report that an operation has taken.
func (rs *Reports) closeReported(tx inventory.Tx, s inventory.BootSession, r pxe.Report) (inventory.BootSession, error) {
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
	return s, rs.Ledger.EndIn(tx, &s, outcome, inventory.Clean(r.Detail, 400))
}

// takesReport reports whether what a boot was decided as may tell of a step, and says why not.
func takesReport(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, step pxe.ReportStep) error {
	if step == pxe.ReportProgress || step == pxe.ReportDisk {
		return nil
	}
	boot := pxe.Boot(s.Boot)
	// An installer's word is believed only from a boot that had the order to install.
	if boot == pxe.BootImage && step == pxe.ReportInstalled {
		if i, err := tx.Images().Find(s.Image); err == nil && !i.IsInstaller {
			return inventory.Errorf(inventory.Forbidden, "image %s is no installer: this boot has no order to install", i.Name)
		}
	}
	isOfAgent := boot == pxe.BootAgent && s.Operation != "" && step != pxe.ReportInstalled // what our agent wrote reports in its boot
	if boot != pxe.BootImage && !isOfAgent {
		return inventory.Errorf(inventory.Forbidden, "this boot was decided as %s, and cannot report %s", cmp.Or(s.Boot, "nothing yet"), step)
	}
	// A report that was delayed must not end what was begun later.
	old := inventory.Errorf(inventory.Forbidden, "this boot is older than what %s does now, and cannot report %s", h.Name, step)
	if s.Operation != "" {
		op, err := tx.FindOperation(s.Operation)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		if op.ClaimID != h.ClaimID || isOfAgent && op.Kind != inventory.OpInstall && op.Kind != inventory.OpReinstall {
			return old
		}
		if isOfAgent && op.IsOpen() && !ledger.IsAfterAgent(&op) {
			return inventory.Errorf(inventory.Forbidden, "our agent has not written the system yet, so none can report %s", step)
		}
		return nil
	}
	if h.ClaimID != "" {
		c, err := tx.FindClaim(h.ClaimID)
		if err != nil {
			return fmt.Errorf("read claim of %s: %w", h.Name, err)
		}
		if s.StartedAt.Before(c.CreatedAt) {
			return old
		}
	}
	// Without an operation only the boots themselves tell which is the newest.
	latest, err := tx.ListSessions(h.ID, inventory.Page{Limit: bootsLooked})
	if err != nil {
		return fmt.Errorf("read boots of %s: %w", h.Name, err)
	}
	for _, o := range latest {
		if o.ID != s.ID && o.Boot == string(pxe.BootImage) && o.Proof != inventory.ProofNone && o.StartedAt.After(s.StartedAt) {
			return old
		}
	}
	return nil
}

// tokenRE finds bootstrap tokens in logs; what stands before the dot is public.
var tokenRE = regexp.MustCompile(`\b([a-z0-9]{6})\.[a-z0-9]{16}\b`)

func hideTokens(log string) string { return tokenRE.ReplaceAllString(log, "$1.****") }
