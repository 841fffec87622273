package duty

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is a clock that nobody can set. Unlike the one in package time, it goes on while the machine sleeps. After that, others have
// the duties.
func sinceBoot() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		panic("the kernel has no clock: " + err.Error()) // Linux has it since 2.6.39
	}
	return time.Duration(at.Nano())
}
