package instance

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

func TestAClockFarFromThatOfTheDatabaseIsRefused(t *testing.T) {
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
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
