package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision"
)

func TestTheReserveIsGivenUpOnAFullDiskAndMadeAgain(t *testing.T) {
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	r := openReserve(dir, log)
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
		isTight := r.keep(doctor.Disk{FreeBytes: uint64(step.free)})
		if isTight != step.isTight || isThere() != step.isThere || (r.givenUp() == 0) != step.isThere {
			t.Errorf("%d: %d bytes free: tight %t, there %t, want %+v", i, step.free, isTight, isThere(), step)
		}
	}
	if again := openReserve(dir, log); !again.isHeld || again.bytes != r.bytes {
		t.Errorf("a second start: %+v", again)
	}
	r.release()
	r.release()
	if isThere() {
		t.Error("it is there after a lease found no room")
	}
}

func TestWhatIsShedIsSaidForAWhile(t *testing.T) {
	a, now := newAlarms(), time.Unix(1_000_000, 0)
	if shed, at := a.noteShed(provision.Shed{}, now); !at.IsZero() || shed != (provision.Shed{}) {
		t.Error("something is said of nothing")
	}
	shed, at := a.noteShed(provision.Shed{OverBudget: 7, HostN: 3}, now)
	all := shedIssues(&health{shed: shed, shedAt: at})
	if len(all) != 1 || all[0].Type != inventory.IssueShed || !strings.Contains(all[0].Cause, "7 events") || !strings.Contains(all[0].Cause, "3 machines") {
		t.Errorf("%+v", all)
	}
	if _, at := a.noteShed(shed, now.Add(shedToldFor)); !at.IsZero() {
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
	h := &health{interfaces: []doctor.Interface{{Name: "eth1", Err: os.ErrInvalid}}}
	for _, i := range conditions(h) {
		if i.Type == inventory.IssueInterface {
			t.Errorf("an interface that could not be read: %+v", i)
		}
	}
}
