package delivery

import (
	"testing"
	"time"
)

func TestBootstrapDataThatHaveEndedAreSwept(t *testing.T) {
	now := time.Date(2026, 11, 27, 7, 0, 0, 0, time.UTC)
	var b Bootstraps
	b.put("x", bootstrapData{value: []byte("x"), expiresAt: now})
	b.put("y", bootstrapData{value: []byte("y"), expiresAt: now.Add(time.Second)})
	if b.Sweep(now); len(b.data) != 1 || b.Has("x", now) || !b.Has("y", now) {
		t.Errorf("left: %d", len(b.data))
	}
}
