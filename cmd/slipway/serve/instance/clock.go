package instance

import (
	"context"
	"time"

	"slipway.dev/slipway/inventory"
)

// clockLimit is how far the clock of an instance may be off that of the database. Logins, codes and tokens need no better one.
const clockLimit = time.Minute

// CheckClock refuses a machine whose clock is far off that of the database. One instance stores the end of a lease, and another one
// compares it with its own clock. With one an hour ahead it would give addresses away that machines still use. Duties compare no
// clocks.
func CheckClock(ctx context.Context, store inventory.Reader, now func() time.Time) error {
	before := now()
	database, err := inventory.Read(ctx, store, func(tx inventory.Tx) (time.Time, error) { return tx.DatabaseTime() })
	if err != nil {
		return err
	}
	after := now()
	refused := func(off time.Duration, where string) error {
		return inventory.Errorf(inventory.Conflict, "the clock of this machine is %s %s that of the database: leases and deadlines would "+
			"end at wrong times", inventory.Duration(off.Round(time.Second)), where).
			WithHint("let NTP set the clocks of both machines: timedatectl set-ntp true")
	}
	// The database has looked at its clock between the two: only what is certain counts.
	switch {
	case before.Sub(database) > clockLimit:
		return refused(before.Sub(database), "ahead of")
	case database.Sub(after) > clockLimit:
		return refused(database.Sub(after), "behind")
	}
	return nil
}
