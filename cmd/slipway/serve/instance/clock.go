package instance

import (
	"context"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
)

// ClockLimit is how far the clock of an instance may be off that of the database. Logins, codes and tokens need no better one.
const ClockLimit = time.Minute

// Clock is the time by which an instance judges what others have stored: the ends of leases, tokens and logins, and deadlines. It is that
// of the machine. If somebody sets that clock, Clock goes on as before, by a count of time that nobody sets. It does so until the clocks of
// the machine and of the database agree again. Nothing changes if somebody sets the clock of the database.
//
// The zero value is ready, and is the clock of the machine until Agreed is called. Many goroutines may use it.
type Clock struct {
	agreed atomic.Pointer[time.Time]
}

// Agreed notes a time of this machine, with its monotonic reading, at which its clock and that of the database agreed.
func (c *Clock) Agreed(at time.Time) { c.agreed.Store(&at) }

// Now returns the time. While the clock of the machine is wrong, it has no monotonic reading.
func (c *Clock) Now() time.Time {
	now, agreed := time.Now(), c.agreed.Load()
	if agreed == nil {
		return now
	}
	return rightTime(*agreed, now, now.Sub(*agreed))
}

// rightTime returns the time now of a machine's clock if that has gone like the count of time since they agreed, and else what it would be.
func rightTime(agreed, now time.Time, passed time.Duration) time.Time {
	would := agreed.Round(0).Add(passed) // Round drops the monotonic reading, by which no clock was ever set
	if now.Round(0).Sub(would).Abs() <= ClockLimit {
		return now
	}
	return would
}

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
	case before.Sub(database) > ClockLimit:
		return refused(before.Sub(database), "ahead of")
	case database.Sub(after) > ClockLimit:
		return refused(database.Sub(after), "behind")
	}
	return nil
}
