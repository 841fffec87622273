package database

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// TestTheLogOfAnOutageIsShort lets a commit of two writes fail every two seconds, for two and a half minutes.
func TestTheLogOfAnOutageIsShort(t *testing.T) {
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	var o outage
	now := time.Date(2026, 11, 28, 11, 0, 0, 0, time.UTC)
	away := inventory.Errorf(inventory.Unavailable, "the database cannot be reached")
	o.say(log, 1, true, nil, now)
	for range 75 {
		o.say(log, 2, true, away, now)
		now = now.Add(2 * time.Second)
	}
	o.say(log, 1, false, nil, now) // its name is taken
	o.say(log, 0, false, nil, now) // everybody has given up
	o.say(log, 2, true, nil, now)
	o.say(log, 1, true, nil, now.Add(time.Second))
	o.say(log, 1, true, inventory.Errorf(inventory.Internal, "a mistake"), now)
	o.say(log, 1, true, inventory.Errorf(inventory.Internal, "a mistake"), now)
	o.say(log, 1, true, nil, now)
	want := `level=ERROR msg="commit failed" writes=2 err="the database cannot be reached"
level=ERROR msg="commits fail still" commits=30 writes=60 since=2026-11-28T11:00:00Z err="the database cannot be reached"
level=ERROR msg="commits fail still" commits=30 writes=60 since=2026-11-28T11:00:00Z err="the database cannot be reached"
level=INFO msg="commits work again" after=2m30s
level=ERROR msg="commit failed" writes=1 err="a mistake"
level=ERROR msg="commit failed" writes=1 err="a mistake"
`
	if said.String() != want {
		t.Errorf("the log has\n%swant\n%s", said.String(), want)
	}
}
