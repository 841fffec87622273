package trouble

import (
	"log/slog"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/inventory"
)

func TestWhatIsStoredOfAnIssueIsWhatItSaysNow(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	first := inventory.Issue{Key: "interface-unserved/vs", Type: inventory.IssueInterface, Severity: inventory.SeverityError, Cause: "it is down", Hint: "look"}
	for name, change := range map[string]func(*inventory.Issue){
		"its severity": func(i *inventory.Issue) { i.Severity = inventory.SeverityWarning },
		"its hint":     func(i *inventory.Issue) { i.Hint = "look again" },
		"its cause":    func(i *inventory.Issue) { i.Cause = "it has no address" },
	} {
		t.Run(name, func(t *testing.T) {
			store, s := openAlarmed(t, t.TempDir())
			next := first
			change(&next)
			for n, i := range []inventory.Issue{first, next} {
				s.Alarms.Set([]inventory.Issue{i}, at.Add(time.Duration(n)*time.Minute), slog.New(slog.DiscardHandler))
				if err := s.Alarms.Settle(t.Context(), store, at); err != nil {
					t.Fatal(err)
				}
			}
			if opened, closed := s.Alarms.pending(); len(opened)+len(closed) != 0 {
				t.Errorf("what is stored is stored again: %+v %q", opened, closed)
			}
			if err := store.Read(t.Context(), func(tx inventory.Tx) error {
				rows, err := tx.ListIssues(false, "")
				if len(rows) != 1 || rows[0].Severity != next.Severity || rows[0].Hint != next.Hint || rows[0].Cause != next.Cause {
					t.Errorf("stored: %+v", rows)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestIssuesOfTheMachineAreNotAboutAHost(t *testing.T) {
	store, s := openAlarmed(t, t.TempDir())
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	s.Alarms.Set([]inventory.Issue{{Key: inventory.IssueClock, Type: inventory.IssueClock, Severity: inventory.SeverityWarning, Cause: "it leapt"}}, at, slog.New(slog.DiscardHandler))
	if err := s.Read(t.Context(), func(tx inventory.Tx) error {
		rows, err := tx.ListIssues(false, "some-host")
		if len(rows) != 0 {
			t.Errorf("of a host: %+v", rows)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Alarms.Settle(t.Context(), store, at); err != nil {
		t.Fatal(err)
	}
	s.Alarms.Set(nil, at, slog.New(slog.DiscardHandler))
	if err := s.Alarms.Settle(t.Context(), store, at); err != nil {
		t.Fatal(err)
	}
	if err := store.Read(t.Context(), func(tx inventory.Tx) error {
		events, err := tx.ListEvents(inventory.EventFilter{Kind: inventory.EventIssueClosed}, 0, 0)
		if len(events) != 1 {
			t.Errorf("%d events of its end, want 1", len(events))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// SeenN and the first time are those of the issue, as long as it is open.
func TestAnIssueCountsItsSightings(t *testing.T) {
	a := NewAlarms()
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	clock := inventory.Issue{Key: inventory.IssueClock, Type: inventory.IssueClock, Cause: "it leapt"}
	disk := inventory.Issue{Key: inventory.IssueDisk, Type: inventory.IssueDisk, Cause: "it is full"}
	for n, found := range [][]inventory.Issue{{clock}, {disk, clock}, {disk, clock}, {clock}, {clock, disk}} {
		a.Set(found, at.Add(time.Duration(n)*time.Minute), slog.New(slog.DiscardHandler))
	}
	want := map[string]inventory.Issue{
		clock.Key: {SeenN: 5, OpenedAt: at, ID: firstAlarm}, disk.Key: {SeenN: 1, OpenedAt: at.Add(4 * time.Minute), ID: firstAlarm + 2},
	}
	for _, i := range a.open {
		w := want[i.Key]
		if i.SeenN != w.SeenN || !i.OpenedAt.Equal(w.OpenedAt) || i.ID != w.ID || !i.SeenAt.Equal(at.Add(4*time.Minute)) {
			t.Errorf("%s: %+v", i.Key, i)
		}
	}
}

func TestTheWordingOfAnIssueIsWithoutItsNumbers(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		isSame bool
	}{
		{"9 MiB free", "10 MiB free", true},
		{"0123456789 free", " free", true},
		{"it is down", "it is full", false},
		{"/a:b free", " free", false}, // beside the digits in ASCII
	} {
		if got := wording(&inventory.Issue{Cause: c.a}) == wording(&inventory.Issue{Cause: c.b}); got != c.isSame {
			t.Errorf("%q and %q: same %t", c.a, c.b, got)
		}
	}
	if wording(&inventory.Issue{Cause: "x", Hint: "do this"}) == wording(&inventory.Issue{Cause: "x", Hint: "do that"}) {
		t.Error("a new hint is no news")
	}
}

func TestWhatAFailoverHasLostIsToldAfterARestart(t *testing.T) {
	store, first := openAlarmed(t, t.TempDir())
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	quiet := slog.New(slog.DiscardHandler)
	lost := inventory.Issue{Key: inventory.IssueLostChanges, Type: inventory.IssueLostChanges, Severity: inventory.SeverityError, Cause: "3 commits"}
	first.Alarms.Set([]inventory.Issue{lost}, at, quiet)
	if err := first.Alarms.Settle(t.Context(), store, at); err != nil {
		t.Fatal(err)
	}
	again := Alarmed{store, NewAlarms()}
	if err := store.Read(t.Context(), again.Alarms.Load); err != nil {
		t.Fatal(err)
	}
	for after, isOpen := range []bool{true, false} {
		now := at.Add(time.Duration(after)*storage.LostToldFor + time.Minute)
		again.Alarms.Set(nil, now, quiet)
		if err := again.Alarms.Settle(t.Context(), store, now); err != nil {
			t.Fatal(err)
		}
		if got := len(issuesOf(t, again, false)) == 1; got != isOpen {
			t.Errorf("%s later: open %t", now.Sub(at), got)
		}
	}
}
