package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// End ends a session behind the packets: a DHCP or TFTP handler must not wait for the disk. The recorder writes it with its next
// batch. A crash before that leaves the session open, and Sweep ends it after the restart.
func (l *Ledger) End(s inventory.BootSession, outcome inventory.Outcome, why string) {
	// These boots start nothing from here. They have not failed when the machine falls silent.
	if outcome == inventory.OutcomeAbandoned {
		switch pxe.Boot(s.Boot) {
		case pxe.BootWait, pxe.BootPark:
			outcome = inventory.OutcomeRefused
		case pxe.BootDisk, pxe.BootIgnore:
			outcome = inventory.OutcomeDisk
		}
	}
	expect := func(tx inventory.Tx) {
		_, _ = tx.FindSession(s.ID)
		_, _ = tx.FindHost(s.HostID)
	}
	l.cfg.Recorder.Take(recorder.Note{Expect: expect, Do: func(tx inventory.Tx) error {
		if s.HostID == "" {
			s.HostID = l.cfg.Sessions.HostOf(s.MAC)
		}
		// The stored session counts: the engine may have gone on with it since s was copied.
		if stored, err := tx.FindSession(s.ID); err == nil {
			if !stored.EndedAt.IsZero() {
				return nil
			}
			s = stored
		}
		if outcome == inventory.OutcomeAbandoned && isWorkDone(tx, &s) {
			outcome, why = inventory.OutcomeArrived, "our agent has done its work"
		}
		return l.EndIn(tx, &s, outcome, why)
	}})
}

// isWorkDone reports whether a boot was one of our agent that did what it was for. Its machine is switched off or
// restarted then, and the agent does not always get to say that it leaves.
func isWorkDone(tx inventory.Tx, s *inventory.BootSession) bool {
	if s.Boot != string(pxe.BootAgent) || s.Operation == "" {
		return false
	}
	op, err := tx.FindOperation(s.Operation)
	return err == nil && IsAfterAgent(&op)
}

// IsAfterAgent reports whether an operation is past all that our agent does, as it should be.
func IsAfterAgent(op *inventory.Operation) bool {
	if !op.IsOpen() {
		return op.State == inventory.OpDone
	}
	switch op.Step {
	case inventory.StepReboot, inventory.StepFirstBoot, inventory.StepPostJoin, inventory.StepPreRelease, inventory.StepRest:
		return true
	}
	return false
}

// EndIn ends a session in a transaction.
func (l *Ledger) EndIn(tx inventory.Tx, s *inventory.BootSession, outcome inventory.Outcome, why string) error {
	s.Outcome, s.EndedAt = outcome, l.Now()
	if err := tx.SaveSession(*s); err != nil {
		return fmt.Errorf("store boot session: %w", err)
	}
	if err := l.cfg.Ended(tx, s); err != nil {
		return err
	}
	lasted := inventory.Duration(s.EndedAt.Sub(s.StartedAt).Round(1e8))
	return tx.AddEvent(&inventory.Event{
		At: s.EndedAt, Kind: inventory.EventSessionEnded, HostID: s.HostID, SessionID: s.ID, MAC: s.MAC,
		Detail: inventory.Clean(Because(fmt.Sprintf("%s after %s", outcome, lasted), why), 500),
	})
}

// Sweep ends the sessions that only the store has: those of before a restart.
func (l *Ledger) Sweep(ctx context.Context) error {
	old, err := inventory.Read(ctx, l.Store, func(tx inventory.Tx) ([]inventory.BootSession, error) {
		return tx.ListOpenSessions(l.Now().Add(-session.SilentFor))
	})
	if err != nil {
		return fmt.Errorf("read open boot sessions: %w", err)
	}
	old = slices.DeleteFunc(old, func(s inventory.BootSession) bool {
		cur, ok := l.cfg.Sessions.Of(s.MAC)
		return ok && cur.ID == s.ID
	})
	// In small transactions, because every DHCP answer waits behind them.
	for some := range slices.Chunk(old, session.TakeAtOnce) {
		if err := l.Store.Write(ctx, func(tx inventory.Tx) error { return l.endOld(tx, some) }); err != nil {
			return err
		}
	}
	return nil
}

// endOld ends sessions that nobody has gone on with since they were read.
func (l *Ledger) endOld(tx inventory.Tx, old []inventory.BootSession) error {
	// Read again: the machine may have gone on since the list was read, in another transaction.
	for i := range old {
		s, err := tx.FindSession(old[i].ID)
		if inventory.IsKind(err, inventory.NotFound) || err == nil && (!s.EndedAt.IsZero() || s.LastAt.After(old[i].LastAt)) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read boot session %s: %w", old[i].ID, err)
		}
		outcome, why := inventory.OutcomeAbandoned, "no sign of it since "+s.Step
		if isWorkDone(tx, &s) {
			outcome, why = inventory.OutcomeArrived, "our agent has done its work"
		}
		if err := l.EndIn(tx, &s, outcome, why); err != nil {
			return err
		}
	}
	return nil
}

const (
	ForgetAtOnce  = 25
	forgetPerTime = 2000
	ForgetOnAfter = 100 * time.Millisecond
)

// Forget deletes history that is older than the configuration wants.
func (l *Ledger) Forget(ctx context.Context) error {
	if l.cfg.KeepHistory == 0 {
		return nil
	}
	// A few at a time, with a pause, because every answer to a machine waits for the same writer.
	for done := 0; done < forgetPerTime; {
		n := 0
		err := l.Store.Write(ctx, func(tx inventory.Tx) (err error) {
			n, err = tx.ForgetHistory(l.Now().Add(-l.cfg.KeepHistory), ForgetAtOnce)
			return err
		})
		if done += n; err != nil || n < ForgetAtOnce || sleep.For(ctx, ForgetOnAfter) != nil {
			return err
		}
	}
	return nil
}

// EndBoots ends the boots of a host for which isOver is true: its power is off, another boot has begun, or their operation
// has ended.
func (l *Ledger) EndBoots(h inventory.HostID, outcome inventory.Outcome, why string, isOver func(*inventory.BootSession) bool) {
	// Ended boots stay in the table for a while. Each end is written once.
	for _, b := range l.cfg.Sessions.Boots(h) {
		if !b.EndedAt.IsZero() || !isOver(&b.BootSession) {
			continue
		}
		if b.Boot != string(pxe.BootAgent) { // our agent may still say its last words
			l.cfg.Sessions.Close(b.MAC, b.ID)
		}
		l.End(b.BootSession, outcome, why)
	}
}
