package httpboot

import (
	"fmt"
	"testing"
	"time"
)

func TestARefusalIsLoggedOnceAMinuteForEachMachineAndCause(t *testing.T) {
	var r refusals
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		key   string
		after time.Duration
		want  bool
	}{
		{"a config sealed", 0, true},
		{"a config sealed", time.Second / 2, false},
		{"b config sealed", time.Second, true},
		{"a config absent", time.Second, true},
		{"a config sealed", 59 * time.Second, false},
		{"a config sealed", time.Minute, true},
		{"a config sealed", 61 * time.Second, false},
	} {
		if got := r.isNew(c.key, now.Add(c.after)); got != c.want {
			t.Errorf("%s after %s: %v", c.key, c.after, got)
		}
	}
	for i := range 3 * refusalsKept {
		r.isNew(fmt.Sprint(i), now)
	}
	if len(r.last) > refusalsKept {
		t.Errorf("%d are remembered", len(r.last))
	}
}
