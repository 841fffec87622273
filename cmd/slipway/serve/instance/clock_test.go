package instance

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

// newStore opens an empty database. It is closed when the test ends.
func newStore(t *testing.T) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestAClockFarFromThatOfTheDatabaseIsRefused(t *testing.T) {
	s := newStore(t)
	for off, says := range map[time.Duration]string{
		0: "", 50 * time.Second: "", -50 * time.Second: "",
		time.Hour: "ahead of that of the database", -time.Hour: "behind that of the database",
	} {
		err := CheckClock(t.Context(), s, func() time.Time { return time.Now().Add(off) })
		if says == "" && err != nil || says != "" && (!inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s off: %v, want %q", off, err, says)
		}
	}
}

func TestAClockThatIsSetDoesNotChangeWhatHasEnded(t *testing.T) {
	agreed := time.Now()
	for name, tc := range map[string]struct {
		passed, set, want time.Duration // since they agreed
	}{
		"nothing happens":         {time.Hour, 0, time.Hour},
		"NTP sets it a little":    {time.Hour, 20 * time.Second, time.Hour + 20*time.Second},
		"it is set ahead":         {time.Minute, 2 * time.Hour, time.Minute},
		"it is set back":          {time.Minute, -26 * time.Hour, time.Minute},
		"it was set back, long":   {50 * time.Hour, -26 * time.Hour, 50 * time.Hour},
		"it is set at the moment": {0, time.Hour, 0},
	} {
		now := agreed.Round(0).Add(tc.passed + tc.set) // without the monotonic reading, as after a set
		if got := rightTime(agreed, now, tc.passed).Sub(agreed.Round(0)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	var c Clock
	if got := c.Now(); time.Since(got) > time.Second {
		t.Errorf("a new one is at %s", got)
	}
	c.Agreed(time.Now())
	if got := c.Now(); time.Since(got).Abs() > time.Second {
		t.Errorf("one that agrees is at %s", got)
	}
}
