package watch

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// Config is everything a Watch needs.
type Config struct {
	*ledger.Ledger // with the store, the time and the log
	Sessions       *session.Table
	Expectations   *Expectations
	Diagnoser      *Diagnoser
	Silences       *Silences
}

// Watch looks at boots. Its methods may be called from many goroutines, once it is configured.
type Watch struct {
	cfg     Config
	stalled stalled
}

// Configure gives a Watch what it needs.
func (w *Watch) Configure(cfg Config) { w.cfg = cfg }

// Serve looks at the boots until ctx is done.
func (w *Watch) Serve(ctx context.Context) error {
	wait := lookEvery
	for sleep.For(ctx, wait) == nil {
		hasMore, err := w.WatchBoots(ctx)
		// A failed look is repeated after two seconds: the boots that were due stay due.
		if err != nil && ctx.Err() == nil {
			w.cfg.Log.Warn("boots not checked", "err", err)
		}
		if wait = lookEvery; hasMore {
			wait = lookOnAfter
		}
	}
	return nil
}

// stalled are the hosts whose boot stands still: an issue is open for each.
type stalled struct {
	mu    sync.Mutex
	hosts map[inventory.HostID]StalledBoot
	known bool // what an engine before this one left open was read
}

// StalledBoot is the boot as it was when it stood still.
type StalledBoot struct {
	Boot      inventory.BootSession
	stage     pxe.Stage
	at        time.Time
	Told      inventory.SessionID // the latest boot that stood still, which the issue is about
	ToldStep  string
	toldAt    time.Time
	isExcused bool // nothing was owed after all: no issue is open
}

const (
	// lookEvery is how often boots are looked over for those that stand still or went silent, and lookOnAfter how soon the
	// look goes on when more are due.
	lookEvery   = 2 * time.Second
	lookOnAfter = 25 * time.Millisecond
	// tellEvery bounds how often the issue of a host is told anew, whose ports may stand still in turns.
	tellEvery = time.Minute
	// StalledFor is how long an issue stays open for a machine that has become silent.
	StalledFor = 24 * time.Hour
)

// WatchBoots opens an issue for each host whose boot has stopped, because its next sign did not come in time. It closes the
// issue when the host comes further, in that boot or a later one. It ends the boots that went silent. More boots are due
// after that when hasMore.
func (w *Watch) WatchBoots(ctx context.Context) (hasMore bool, err error) {
	// The lock is held during the transaction, so that memory and store change together.
	w.stalled.mu.Lock()
	defer w.stalled.mu.Unlock()
	if !w.stalled.known {
		if err := w.recallStalled(ctx); err != nil {
			return false, err
		}
	}
	// First the machines without an answer. Their boots begin with that, and have their own deadlines.
	if err := w.cfg.Silences.hear(ctx); err != nil {
		return false, err
	}
	now := w.cfg.Now()
	late, silent, hasMore := w.cfg.Sessions.Take()
	// Judged before the new boots are added, because an end in this look must win over a new delay.
	over := map[inventory.HostID]string{}
	for id, was := range w.stalled.hosts {
		if why := wentOn(&was, w.cfg.Sessions.Boots(id), now); why != "" {
			over[id] = why
		}
	}
	for _, s := range silent {
		w.cfg.Ledger.End(s, inventory.OutcomeAbandoned, "no further sign after "+s.Step)
	}
	if err := w.tellStalled(ctx, w.stalledAnew(late, now), over, now); err != nil {
		// The store failed. The agenda returns each late boot once, so these have to become due again.
		for _, s := range late {
			w.cfg.Sessions.LookAgain(s.MAC, now)
		}
		return false, err
	}
	return hasMore, nil
}

// stalledAnew returns the boots that are late and that nobody was told of, by host. A later boot that stands still as well
// makes the issue its own: the cause may be another now.
func (w *Watch) stalledAnew(late []session.Running, now time.Time) map[inventory.HostID]session.Running {
	begun := map[inventory.HostID]session.Running{}
	for _, s := range late {
		was, ok := w.stalled.hosts[s.HostID]
		switch {
		// The same boot at the same step has its issue already.
		case ok && (s.ID == was.Told && s.Step == was.ToldStep || !s.LastAt.After(was.Boot.LastAt)):
		case ok && now.Sub(was.toldAt) < tellEvery:
			w.cfg.Sessions.LookAgain(s.MAC, was.toldAt.Add(tellEvery))
		case begun[s.HostID].ID != "":
			w.cfg.Sessions.LookAgain(s.MAC, now.Add(tellEvery))
		default:
			begun[s.HostID] = s
		}
	}
	return begun
}

// tellStalled opens the issues of the boots that have begun to stand still, and closes those that are over.
func (w *Watch) tellStalled(ctx context.Context, begun map[inventory.HostID]session.Running, over map[inventory.HostID]string, now time.Time) error {
	if len(begun) == 0 && len(over) == 0 {
		return nil
	}
	excused := map[inventory.HostID]bool{}
	// All issues of one look in one transaction: each commit costs a write to disk.
	err := w.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		for id, why := range over {
			was := w.stalled.hosts[id]
			if err := w.cfg.Ledger.CloseIssue(tx, stall(&was.Boot, sign{}), why); err != nil {
				return err
			}
		}
		for id, s := range begun {
			if over[id] != "" {
				continue // it came further, and is looked at anew
			}
			owes, err := w.openStalled(tx, s.BootSession)
			if err != nil {
				return err
			}
			excused[s.HostID] = !owes
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Memory changes only after the commit. A failed transaction leaves both as they were.
	for id := range over {
		delete(w.stalled.hosts, id)
		delete(begun, id)
		for _, s := range w.cfg.Sessions.Boots(id) {
			w.cfg.Sessions.LookAgain(s.MAC, now)
		}
	}
	for _, s := range begun {
		was, isAgain := w.stalled.hosts[s.HostID]
		if !isAgain {
			was = StalledBoot{Boot: s.BootSession, stage: s.Stage, at: now, isExcused: excused[s.HostID]}
		}
		was.Told, was.ToldStep, was.toldAt = s.ID, s.Step, now
		w.stalled.hosts[s.HostID] = was
	}
	return nil
}

// openStalled opens the issue of a boot that stands still, unless nothing is owed.
func (w *Watch) openStalled(tx inventory.Tx, s inventory.BootSession) (owes bool, err error) {
	next, _, owes, err := w.cfg.Expectations.owed(tx, &s)
	if err != nil || !owes {
		return false, err
	}
	// The host may have been deleted since the boot became late.
	if _, err := tx.FindHost(s.HostID); err != nil {
		return false, ledger.IgnoreNotFound(err)
	}
	i := stall(&s, next)
	if why, refs, ok := w.cfg.Diagnoser.Likeliest(tx, s.HostID, s.MAC); ok {
		i.Refs = append(i.Refs, refs...)
		i.Cause, i.Hint = i.Cause+". Likely: "+why.Sentence, why.Hint
	}
	return true, w.cfg.Ledger.OpenIssue(tx, i)
}

// wentOn says why the boot of a host stands still no more, "" while it does. boots are those of the host now: an
// attempt that comes no further than the one that stood still changes nothing.
func wentOn(was *StalledBoot, boots []session.Running, now time.Time) string {
	isHere := false
	for _, s := range boots {
		isHere = isHere || s.ID == was.Boot.ID && s.EndedAt.IsZero()
		// A sign that is not newer is the one that was known when the boot stopped.
		if !s.LastAt.After(was.Boot.LastAt) {
			continue
		}
		isOther := s.ID != was.Boot.ID || s.Boot != was.Boot.Boot
		switch boot := pxe.Boot(s.Boot); {
		case session.StepIndex(s.Step) > session.StepIndex(was.Boot.Step):
			return "the boot went on to " + s.Step
		case isOther && (boot == pxe.BootDisk || boot == pxe.BootIgnore || boot == pxe.BootPark):
			return "nothing is to be booted over the network any more: " + s.Reason
		case was.Boot.Boot == string(pxe.BootWait):
			return "it asks again"
		case s.ID == was.Boot.ID && s.Stage == pxe.StageIPXE && was.stage != pxe.StageIPXE:
			return "its boot loader asks for an address"
		case !isOther && signs[s.Step].isRenewed:
			return "the boot went on"
		}
	}
	switch {
	case !isHere && (was.Boot.Boot == string(pxe.BootWait) || was.isExcused):
		return "the boot is over"
	case now.Sub(was.at) > StalledFor:
		return "it has sent nothing for a day"
	}
	return ""
}

// recallStalled reads which issues an engine before this one left open: they are closed when their hosts come further.
func (w *Watch) recallStalled(ctx context.Context) error {
	hosts := map[inventory.HostID]StalledBoot{}
	// A transaction that writes, because issues without a boot are closed here. They belong to no host that could go on.
	err := w.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		clear(hosts)
		open, err := tx.ListIssues(false, "")
		if err != nil {
			return err
		}
		for _, i := range open {
			if i.Type != inventory.IssueStalled {
				continue
			}
			var last []inventory.BootSession
			if len(i.HostIDs) == 1 && !strings.Contains(i.Key, ledger.OfStrangersKey) {
				if last, err = tx.ListSessions(i.HostIDs[0], inventory.Page{Limit: 1}); err != nil {
					return err
				}
			}
			// Nothing in memory would ever close this issue: it is about machines that are not listed, or a host without boots.
			if len(last) == 0 {
				if err := w.cfg.Ledger.CloseIssue(tx, i, "the server was restarted"); err != nil {
					return err
				}
				continue
			}
			hosts[last[0].HostID] = StalledBoot{Boot: last[0], Told: last[0].ID, ToldStep: last[0].Step, at: i.OpenedAt}
		}
		return nil
	})
	// A failed read leaves known false, and the next look tries again.
	if err == nil {
		w.stalled.hosts, w.stalled.known = hosts, true
	}
	return err
}

// stall is the issue that a boot stands still.
func stall(s *inventory.BootSession, next sign) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueStalled + "/" + string(s.HostID), Type: inventory.IssueStalled, Severity: inventory.SeverityWarning,
		HostIDs: []inventory.HostID{s.HostID}, Subnet: s.Subnet, Hint: next.hint,
		Cause: "its boot has stopped after " + s.Step + ". Next step, due within " + inventory.Duration(next.within).String() + ": " + next.expect,
	}
}

// Stalled returns the stopped boots, by host.
func (w *Watch) Stalled() map[inventory.HostID]StalledBoot {
	w.stalled.mu.Lock()
	defer w.stalled.mu.Unlock()
	return maps.Clone(w.stalled.hosts)
}
