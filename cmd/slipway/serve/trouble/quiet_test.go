package trouble

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func TestTheLogDoesNotFillWhileTheDatabaseIsAway(t *testing.T) {
	var out bytes.Buffer
	at := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	log := slog.New(quiet{slog.NewTextHandler(&out, nil), &said{last: map[string]*saying{}, now: func() time.Time { return at }}}).With("part", "x")
	away := inventory.Errorf(inventory.Unavailable, "the database cannot be reached")
	for range 121 { // 60.5 s
		log.Warn("operations not driven", "err", away)
		at = at.Add(500 * time.Millisecond)
	}
	if n := strings.Count(out.String(), "\n"); n != 2 || !strings.Contains(out.String(), "repeated=119") || !strings.Contains(out.String(), "part=x") {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	for name, say := range map[string]func(){
		"another error": func() {
			log.Warn("operations not driven", "err", inventory.Errorf(inventory.Unavailable, "it is read-only"))
		},
		"another part":         func() { log.Warn("events not read", "err", away) },
		"an error":             func() { log.Error("operations not driven", "err", away) },
		"another kind":         func() { log.Warn("operations not driven", "err", errors.New("the code is wrong")) },
		"a warning about what": func() { log.Warn("issue opened", "type", "x") },
	} {
		out.Reset()
		if say(); out.Len() == 0 {
			t.Errorf("%s is not logged", name)
		}
	}
}
