package provision

import (
	"context"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/provision/ledger"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// stalled are the hosts whose boot stands still: an issue is open for each.
type stalled struct {
	mu    sync.Mutex
	hosts map[inventory.HostID]stalledBoot
	known bool // what an engine before this one left open was read
}

// stalledBoot is the boot as it was when it stood still.
type stalledBoot struct {
	boot      inventory.BootSession
	stage     pxe.Stage
	at        time.Time
	told      inventory.SessionID // the latest boot that stood still, which the issue is about
	toldStep  string
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
	// stalledFor is how long an issue stays open of a machine of which nothing more is heard.
	stalledFor = 24 * time.Hour
)

// watchBoots opens an issue for each host whose boot stands still because its next sign did not come in time, and closes
// it when the host comes further, in that boot or a later one. It ends the boots that went silent. More boots are due after
// that when hasMore.
func (e *Engine) watchBoots(ctx context.Context) (hasMore bool, err error) {
	e.stalled.mu.Lock()
	defer e.stalled.mu.Unlock()
	if !e.stalled.known {
		if err := e.recallStalled(ctx); err != nil {
			return false, err
		}
	}
	if err := e.hearSilences(ctx); err != nil {
		return false, err
	}
	now := e.cfg.Now()
	late, silent, hasMore := e.sessions.Take()
	over := map[inventory.HostID]string{}
	for id, was := range e.stalled.hosts {
		if why := wentOn(&was, e.sessions.Boots(id), now); why != "" {
			over[id] = why
		}
	}
	for _, s := range silent {
		e.ledger.End(s, inventory.OutcomeAbandoned, "no further sign after "+s.Step)
	}
	if err := e.tellStalled(ctx, e.stalledAnew(late, now), over, now); err != nil {
		for _, s := range late {
			e.sessions.LookAgain(s.MAC, now)
		}
		return false, err
	}
	return hasMore, nil
}

// stalledAnew returns the boots that are late and that nobody was told of, by host. A later boot that stands still as well
// makes the issue its own: the cause may be another now.
func (e *Engine) stalledAnew(late []session.Running, now time.Time) map[inventory.HostID]session.Running {
	begun := map[inventory.HostID]session.Running{}
	for _, s := range late {
		was, ok := e.stalled.hosts[s.HostID]
		switch {
		case ok && (s.ID == was.told && s.Step == was.toldStep || !s.LastAt.After(was.boot.LastAt)):
		case ok && now.Sub(was.toldAt) < tellEvery:
			e.sessions.LookAgain(s.MAC, was.toldAt.Add(tellEvery))
		case begun[s.HostID].ID != "":
			e.sessions.LookAgain(s.MAC, now.Add(tellEvery))
		default:
			begun[s.HostID] = s
		}
	}
	return begun
}

// tellStalled opens the issues of the boots that have begun to stand still, and closes those that are over.
func (e *Engine) tellStalled(ctx context.Context, begun map[inventory.HostID]session.Running, over map[inventory.HostID]string, now time.Time) error {
	if len(begun) == 0 && len(over) == 0 {
		return nil
	}
	excused := map[inventory.HostID]bool{}
	err := e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		for id, why := range over {
			was := e.stalled.hosts[id]
			if err := e.ledger.CloseIssue(tx, stall(&was.boot, sign{}), why); err != nil {
				return err
			}
		}
		for id, s := range begun {
			if over[id] != "" {
				continue // it came further, and is looked at anew
			}
			owes, err := e.openStalled(tx, s.BootSession)
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
	for id := range over {
		delete(e.stalled.hosts, id)
		delete(begun, id)
		for _, s := range e.sessions.Boots(id) {
			e.sessions.LookAgain(s.MAC, now)
		}
	}
	for _, s := range begun {
		was, isAgain := e.stalled.hosts[s.HostID]
		if !isAgain {
			was = stalledBoot{boot: s.BootSession, stage: s.Stage, at: now, isExcused: excused[s.HostID]}
		}
		was.told, was.toldStep, was.toldAt = s.ID, s.Step, now
		e.stalled.hosts[s.HostID] = was
	}
	return nil
}

// openStalled opens the issue of a boot that stands still, unless nothing is owed.
func (e *Engine) openStalled(tx inventory.Tx, s inventory.BootSession) (owes bool, err error) {
	next, _, owes, err := e.owed(tx, &s)
	if err != nil || !owes {
		return false, err
	}
	if _, err := tx.FindHost(s.HostID); err != nil {
		return false, ledger.IgnoreNotFound(err)
	}
	i := stall(&s, next)
	if why, ok := e.likeliest(tx, s.HostID, s.MAC); ok {
		i.Cause, i.Hint = i.Cause+". Likely: "+why.Sentence, why.Hint
	}
	return true, e.ledger.OpenIssue(tx, i)
}

// wentOn says why the boot of a host stands still no more, "" while it does. boots are those of the host now: an
// attempt that comes no further than the one that stood still changes nothing.
func wentOn(was *stalledBoot, boots []session.Running, now time.Time) string {
	isHere := false
	for _, s := range boots {
		isHere = isHere || s.ID == was.boot.ID && s.EndedAt.IsZero()
		if !s.LastAt.After(was.boot.LastAt) {
			continue
		}
		isOther := s.ID != was.boot.ID || s.Boot != was.boot.Boot
		switch boot := pxe.Boot(s.Boot); {
		case session.StepIndex(s.Step) > session.StepIndex(was.boot.Step):
			return "the boot went on to " + s.Step
		case isOther && (boot == pxe.BootDisk || boot == pxe.BootIgnore || boot == pxe.BootPark):
			return "nothing is to be booted over the network any more: " + s.Reason
		case was.boot.Boot == string(pxe.BootWait):
			return "it asks again"
		case s.ID == was.boot.ID && s.Stage == pxe.StageIPXE && was.stage != pxe.StageIPXE:
			return "its boot loader asks for an address"
		case !isOther && signs[s.Step].isRenewed:
			return "the boot went on"
		}
	}
	switch {
	case !isHere && (was.boot.Boot == string(pxe.BootWait) || was.isExcused):
		return "the boot is over"
	case now.Sub(was.at) > stalledFor:
		return "it has sent nothing for a day"
	}
	return ""
}

// recallStalled reads which issues an engine before this one left open: they are closed when their hosts come further.
func (e *Engine) recallStalled(ctx context.Context) error {
	hosts := map[inventory.HostID]stalledBoot{}
	err := e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
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
			if len(last) == 0 {
				if err := e.ledger.CloseIssue(tx, i, "the server was restarted"); err != nil {
					return err
				}
				continue
			}
			hosts[last[0].HostID] = stalledBoot{boot: last[0], told: last[0].ID, toldStep: last[0].Step, at: i.OpenedAt}
		}
		return nil
	})
	if err == nil {
		e.stalled.hosts, e.stalled.known = hosts, true
	}
	return err
}

// stall is the issue that a boot stands still.
func stall(s *inventory.BootSession, next sign) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueStalled + "/" + string(s.HostID), Type: inventory.IssueStalled, Severity: inventory.SeverityWarning,
		HostIDs: []inventory.HostID{s.HostID}, Subnet: s.Subnet, Hint: next.hint,
		Cause: "its boot stands still after " + s.Step + ": for " + inventory.Duration(next.within).String() + " nothing came, expected that " + next.expect,
	}
}
