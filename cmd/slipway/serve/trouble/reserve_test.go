package trouble

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/strangers"
)

func TestTheReserveIsGivenUpOnAFullDiskAndMadeAgain(t *testing.T) {
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	r := OpenReserve(dir, log)
	isThere := func() bool {
		info, err := os.Stat(filepath.Join(dir, "reserve"))
		return err == nil && info.Size() == r.bytes
	}
	if !isThere() || r.bytes < reserveLeast {
		t.Skipf("the disk of %s has no room for a reserve", dir)
	}
	for i, step := range []struct {
		free             int64
		isTight, isThere bool
	}{
		{8 * r.bytes, false, true},
		{r.bytes / 3, true, true},
		{r.bytes / 5, true, false},
		{r.bytes, true, false},
		{2 * r.bytes, true, false},
		{4 * r.bytes, false, true},
	} {
		isTight := r.Keep(doctor.Disk{FreeBytes: uint64(step.free)})
		if isTight != step.isTight || isThere() != step.isThere || (r.GivenUp() == 0) != step.isThere {
			t.Errorf("%d: %d bytes free: tight %t, there %t, want %+v", i, step.free, isTight, isThere(), step)
		}
	}
	if again := OpenReserve(dir, log); !again.isHeld || again.bytes != r.bytes {
		t.Errorf("a second start: %+v", again)
	}
	r.Release()
	r.Release()
	if isThere() {
		t.Error("it is there after a lease found no room")
	}
}

func TestADatabaseElsewhereNeedsNoReserve(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "reserve")
	if err := os.WriteFile(left, make([]byte, reserveLeast), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := NoReserve(dir, slog.New(slog.DiscardHandler))
		r.Release() // the disk of the database is full, and that is not this one
		if _, err := os.Stat(left); err == nil || r.GivenUp() != 0 {
			t.Errorf("a reserve is there: %v, %d bytes of it were given up", err, r.GivenUp())
		}
	}
}

func TestWhatIsShedIsSaidForAWhile(t *testing.T) {
	a, now := NewAlarms(), time.Unix(1_000_000, 0)
	if shed, at := a.NoteShed(strangers.Shed{}, now); !at.IsZero() || shed != (strangers.Shed{}) {
		t.Error("something is said of nothing")
	}
	shed, at := a.NoteShed(strangers.Shed{OverBudget: 7, HostN: 3}, now)
	all := shedIssues(&Health{Shed: shed, ShedAt: at})
	if len(all) != 1 || all[0].Type != inventory.IssueShed || !strings.Contains(all[0].Cause, "7 events") || !strings.Contains(all[0].Cause, "3 machines") {
		t.Errorf("%+v", all)
	}
	if _, at := a.NoteShed(shed, now.Add(shedToldFor)); !at.IsZero() {
		t.Error("it is said for ever")
	}
}

func TestFilesThatRunOutAreNoMissingInterface(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, tc := range map[string]struct {
		f        filesOpen
		severity inventory.Severity
	}{
		"some are open":       {filesOpen{n: 100, limit: 1024, now: now}, ""},
		"nearly all are":      {filesOpen{n: 1000, limit: 1024, now: now}, inventory.SeverityWarning},
		"a door found none":   {filesOpen{n: 100, limit: 1024, now: now, at: now.Add(-time.Minute)}, inventory.SeverityError},
		"a door did long ago": {filesOpen{n: 100, limit: 1024, now: now, at: now.Add(-time.Hour)}, ""},
		"they are not known":  {filesOpen{now: now}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := filesIssues(tc.f)
			if len(all) == 0 && tc.severity == "" {
				return
			}
			if len(all) != 1 || all[0].Severity != tc.severity || all[0].Type != inventory.IssueFiles || !strings.Contains(all[0].Hint, "LimitNOFILE") {
				t.Errorf("%+v", all)
			}
		})
	}
	h := &Health{Interfaces: []doctor.Interface{{Name: "eth1", Err: os.ErrInvalid}}}
	for _, i := range Conditions(h) {
		if i.Type == inventory.IssueInterface {
			t.Errorf("an interface that could not be read: %+v", i)
		}
	}
}
