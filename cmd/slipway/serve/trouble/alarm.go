// Package trouble owns the issues of the server itself: a full disk, a locked store, a clock that leapt, too many files or
// connections. It keeps a reserve on the disk, and gives it up so that leases are still stored.
package trouble

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/strangers"
)

// ownIssues are the types of issues that open and close by watching: those about machines, and those that the leader finds.
var ownIssues = append([]string{
	inventory.IssueShed, inventory.IssueNotDurable, inventory.IssueInstance, inventory.IssueCutOff, inventory.IssueOneCopy,
}, machineIssues...)

// firstAlarm is the first number of issues that are not stored yet. They come after all stored ones and are exact in JSON.
const firstAlarm = 1 << 50

// Alarms are the issues that the server has with its machine. They are in memory first, and in the store as soon as it
// takes them. A full disk therefore hides none of them.
type Alarms struct {
	mu     sync.Mutex
	open   []inventory.Issue          // what is wrong now
	stored map[string]inventory.Issue // those that are open in the store, as it has them
	old    map[string]bool            // keys of those that are from an earlier run, until the first look
	lost   error                      // why leases could not be stored
	lostAt time.Time                  // when that was said last
	stuck  error                      // why the store took nothing at the last try
	nextID int64                      // numbers of issues that the store has not got yet
	shed   strangers.Shed             // as of the last look
	shedAt time.Time                  // when it was more than before
}

// NewAlarms returns Alarms without any.
func NewAlarms() *Alarms {
	return &Alarms{stored: map[string]inventory.Issue{}, nextID: firstAlarm}
}

// Load takes over what is open in the store since an earlier run; what is no longer wrong closes.
func (s *Alarms) Load(tx inventory.Tx) error {
	rows, err := tx.ListIssues(false, "")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = map[string]bool{}
	for _, i := range rows {
		if slices.Contains(ownIssues, i.Type) {
			s.stored[i.Key], s.old[i.Key] = i, true
		}
	}
	return err
}

// Set says what is wrong now.
func (s *Alarms) Set(found []inventory.Issue, now time.Time, log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range found {
		f := &found[i]
		f.SeenAt, f.SeenN = now, 1
		at := slices.IndexFunc(s.open, func(was inventory.Issue) bool { return was.Key == f.Key })
		if at >= 0 {
			f.ID, f.OpenedAt, f.SeenN = s.open[at].ID, s.open[at].OpenedAt, s.open[at].SeenN+1
			if wording(f) != wording(&s.open[at]) {
				log.Warn("issue changed", "type", f.Type, "cause", f.Cause, "hint", f.Hint)
			}
			continue
		}
		f.ID, f.OpenedAt = s.nextID, now
		s.nextID++
		if !s.old[f.Key] {
			log.Warn("issue opened", "type", f.Type, "cause", f.Cause, "hint", f.Hint)
		}
	}
	for _, was := range s.open {
		if !slices.ContainsFunc(found, func(i inventory.Issue) bool { return i.Key == was.Key }) {
			log.Info("issue closed", "type", was.Type, "cause", was.Cause)
		}
	}
	s.open, s.old = found, nil
}

// wording is what an issue says without its numbers, which change at every look at a disk that fills.
func wording(i *inventory.Issue) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, i.Cause+"\n"+i.Hint)
}

// NoteLeases remembers why leases cannot be stored; nil: they can.
func (s *Alarms) NoteLeases(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost, s.lostAt = err, time.Now()
}

// LetLeasesRest ends the trouble with leases once nobody has said for some time that one was not stored. It is for an instance that is not
// the leader, and therefore stores nothing else by which it would know.
func (s *Alarms) LetLeasesRest(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.lostAt) >= freshFor {
		s.lost = nil
	}
}

// Of returns what is open in the store about the machine of an instance.
func (s *Alarms) Of(instance string) (all []inventory.Issue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.stored {
		if i.Instance == instance {
			all = append(all, i)
		}
	}
	return all
}

// NoteStore remembers why the store takes nothing.
func (s *Alarms) NoteStore(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck = err
}

// Trouble is why the store cannot be written; nil: it can.
func (s *Alarms) Trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stuck != nil {
		return s.stuck
	}
	return s.lost
}

// NoteShed remembers how much was not stored, and when that last became more. Metrics count notes that found no room.
func (s *Alarms) NoteShed(shed strangers.Shed, now time.Time) (strangers.Shed, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shed != s.shed {
		s.shed, s.shedAt = shed, now
	}
	if !s.shedAt.IsZero() && now.Sub(s.shedAt) >= shedToldFor {
		return shed, time.Time{}
	}
	return shed, s.shedAt
}

// pending returns what the store does not know yet, or knows with an older cause.
func (s *Alarms) pending() (opened []inventory.Issue, closed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.open {
		if was, isStored := s.stored[i.Key]; !isStored || was.Cause != i.Cause || was.Hint != i.Hint || was.Severity != i.Severity {
			opened = append(opened, i)
		}
	}
	for key := range s.stored {
		if !slices.ContainsFunc(s.open, func(i inventory.Issue) bool { return i.Key == key }) {
			closed = append(closed, key)
		}
	}
	slices.Sort(closed)
	return opened, closed
}

// outlivesRestart reports whether an issue stays that no check finds any more. What a failover has lost is known only to the server that
// noticed it, and people have to read it even if that server was restarted.
func (s *Alarms) outlivesRestart(key string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored[key].Type == inventory.IssueLostChanges && now.Sub(s.stored[key].OpenedAt) < storage.LostToldFor
}

// Settle writes the issues to the store that it does not have yet. The write also shows whether the store takes writes at all.
func (s *Alarms) Settle(ctx context.Context, store inventory.Store, now time.Time) error {
	opened, closed := s.pending()
	closed = slices.DeleteFunc(closed, func(key string) bool { return s.outlivesRestart(key, now) })
	err := store.Write(ctx, func(tx inventory.Tx) error {
		for _, i := range opened {
			event := &inventory.Event{
				At: now, Kind: inventory.EventIssueOpened, Detail: inventory.Clean(i.Type+": "+i.Cause, 500), Data: map[string]any{"key": i.Key, "hint": i.Hint},
			}
			// The store gives its own number, which replaces the one in memory.
			i.ID = 0
			isNew, err := tx.OpenIssue(&i, i.OpenedAt)
			if err != nil {
				return err
			}
			if !isNew {
				continue
			}
			if err := tx.AddEvent(event); err != nil {
				return err
			}
		}
		for _, key := range closed {
			was, err := tx.CloseIssue(key, now)
			if err != nil {
				return err
			}
			if !was {
				continue
			}
			if err := tx.AddEvent(&inventory.Event{At: now, Kind: inventory.EventIssueClosed, Detail: key + ": it is right again", Data: map[string]any{"key": key}}); err != nil {
				return err
			}
		}
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stuck = err; err != nil {
		return err
	}
	for _, i := range opened {
		s.stored[i.Key] = i
	}
	for _, key := range closed {
		delete(s.stored, key)
	}
	if len(opened)+len(closed) > 0 {
		s.lost = nil // it has just taken something; the next lease says whether that goes for leases too
	}
	return nil
}

// Alarmed is the store with the issues that it could not take yet.
type Alarmed struct {
	inventory.Store
	Alarms *Alarms
}

// Read implements inventory.Store.
func (s Alarmed) Read(ctx context.Context, fn func(inventory.Tx) error) error {
	return s.Store.Read(ctx, func(tx inventory.Tx) error { return fn(alarmedTx{tx, s.Alarms}) })
}

// alarmedTx lists them before the stored ones.
type alarmedTx struct {
	inventory.Tx
	Alarms *Alarms
}

// ListIssues implements inventory.HistoryTx.
func (t alarmedTx) ListIssues(all bool, host inventory.HostID) ([]inventory.Issue, error) {
	rows, err := t.Tx.ListIssues(all, host)
	if err != nil || host != "" {
		return rows, err
	}
	opened, _ := t.Alarms.pending()
	opened = slices.DeleteFunc(opened, func(i inventory.Issue) bool { // stored, maybe with an older cause
		at := slices.IndexFunc(rows, func(r inventory.Issue) bool { return r.Key == i.Key && r.ClosedAt.IsZero() })
		if at >= 0 {
			rows[at].Cause, rows[at].Hint, rows[at].Severity = i.Cause, i.Hint, i.Severity
		}
		return at >= 0
	})
	slices.SortFunc(opened, func(a, b inventory.Issue) int { return int(b.ID - a.ID) })
	return append(opened, rows...), nil
}

// FindIssue implements inventory.HistoryTx.
func (t alarmedTx) FindIssue(id int64) (inventory.Issue, error) {
	if id >= firstAlarm {
		opened, _ := t.Alarms.pending()
		if at := slices.IndexFunc(opened, func(i inventory.Issue) bool { return i.ID == id }); at >= 0 {
			return opened[at], nil
		}
	}
	i, err := t.Tx.FindIssue(id)
	if err != nil || !i.ClosedAt.IsZero() {
		return i, err
	}
	opened, _ := t.Alarms.pending()
	if at := slices.IndexFunc(opened, func(o inventory.Issue) bool { return o.Key == i.Key }); at >= 0 {
		i.Cause, i.Hint, i.Severity = opened[at].Cause, opened[at].Hint, opened[at].Severity
	}
	return i, nil
}
