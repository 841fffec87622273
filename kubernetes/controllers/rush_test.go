package controllers

import (
	"testing"
	"time"
)

func TestWhatComesInARushIsQueuedOnceItIsOver(t *testing.T) {
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	for _, tc := range []struct {
		name  string
		asked int  // machines, at the beginning
		again bool // and as many in every second that follows
		look  time.Duration
		want  int // of two keys, one of which comes twice
	}{
		{"a few machines are no rush", rushCount - 1, false, 0, 3},
		{"in a rush it waits", rushCount, false, rushSpan / 2, 0},
		{"when the rush is over each is queued once", rushCount, false, rushSpan, 2},
		{"it waits while the rush lasts", rushCount, true, rushMost - rushSpan, 0},
		{"it does not wait for ever", rushCount, true, rushMost, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var queued []string
			c := &calm[string]{rush: &rush{}, queue: func(r string) { queued = append(queued, r) }, is: func() bool { return true }, later: func(func()) {}}
			for range tc.asked {
				c.rush.note(at(0))
			}
			for _, key := range []string{"a", "b", "a"} {
				c.add(key, at(0))
			}
			for d := rushSpan; tc.again && d <= tc.look; d += rushSpan {
				for range rushCount {
					c.rush.note(at(d))
				}
			}
			c.look(at(tc.look))
			if len(queued) != tc.want {
				t.Errorf("queued %q, want %d", queued, tc.want)
			}
		})
	}
}

func TestNothingIsQueuedOnceNobodyListens(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	c := &calm[string]{rush: &rush{}, queue: func(r string) { t.Errorf("%s was queued", r) }, is: func() bool { return false }, later: func(func()) {}}
	for range rushCount {
		c.rush.note(now)
	}
	c.add("a", now)
	c.look(now.Add(time.Hour))
}
