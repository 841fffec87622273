package rig

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// Patience is how long WaitFor waits: long enough for two slow cores that do other things.
const Patience = 150 * time.Second

// WaitFor tries something until it returns nil. The test fails when that takes longer than Patience, with the last error
// and with what the engine did.
func (r *Rig) WaitFor(t testing.TB, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s until %s: %v\n%s", Patience, what, err, r.History(60))
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// Stays watches for a while that something does not change: for what must not happen. It returns when it did happen, or
// after that while; it proves nothing on a machine that stands still, so a test first waits for something that comes
// after.
func (r *Rig) Stays(t testing.TB, d time.Duration, what string, try func() error) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		if err := try(); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, r.History(60))
		}
	}
}

// Idle waits until the controllers have not called the API server for as long as d. Watches that stand do not count.
func (r *Rig) Idle(t testing.TB, d time.Duration) {
	t.Helper()
	last, since := r.Calls(), time.Now()
	for deadline := time.Now().Add(Patience); time.Since(since) < d; time.Sleep(50 * time.Millisecond) {
		if now := r.Calls(); now.Sum() != last.Sum() {
			last, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			t.Fatalf("controllers call the API server for %s on end: %s", Patience, last)
		}
	}
}

// History returns the last events of the engine, for people.
func (r *Rig) History(n int) string {
	var b strings.Builder
	err := r.Store.Read(context.Background(), func(tx inventory.Tx) error {
		last, err := tx.LastEventID()
		if err != nil {
			return err
		}
		all, err := tx.ListEvents(inventory.EventFilter{}, max(0, last-int64(n)), 0)
		for _, ev := range all {
			fmt.Fprintf(&b, "%s %-16s %s %s\n", ev.At.Format("15:04:05.000"), ev.Kind, ev.Subject, ev.Detail)
		}
		return err
	})
	if err != nil {
		return err.Error()
	}
	return b.String()
}
