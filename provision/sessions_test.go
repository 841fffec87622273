package provision

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// Ids of boots stand in the store in the order of their time, and tell nobody what another one is.
func TestIDsOfSessionsSortByTimeAndCannotBeGuessed(t *testing.T) {
	at := time.Date(2026, 11, 24, 18, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	for i := range 1000 {
		now := at.Add(time.Duration(i) * time.Second)
		id, next := string(newSessionID(now)), string(newSessionID(now.Add(time.Second)))
		if len(id) != 32 || id >= next {
			t.Fatalf("%q is not before %q, of a second later", id, next)
		}
		if random := id[8:]; seen[random] || seen[random[:12]] || seen[random[12:]] {
			t.Fatalf("a part of %q was there before", id)
		}
		for _, part := range []string{id[8:], id[8:20], id[20:]} {
			seen[part] = true
		}
	}
}

// A machine that boots while all sessions are looked over does not wait for the last of them.
func TestAWalkLetsOthersIn(t *testing.T) {
	all := newSessions(time.Now)
	const n = 10 * walkSteps
	for i := range n {
		all.put(inventory.BootSession{ID: "x", MAC: inventory.MAC(fmt.Sprintf("52:54:00:00:%02x:%02x", i>>8, i&0xff))})
	}
	var entered atomic.Bool
	seen, without := 0, 0
	all.each(func(*inventory.BootSession, step) {
		if seen++; seen == 1 {
			go func() {
				all.of("52:54:00:00:00:00")
				entered.Store(true)
			}()
		}
		if !entered.Load() {
			without++
		}
		time.Sleep(50 * time.Microsecond)
	})
	if seen != n || without > n/2 {
		t.Errorf("of %d sessions %d were seen, %d before another was let in", n, seen, without)
	}
}
