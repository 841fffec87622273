package client

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

// FuzzRead holds that no stream makes the reader panic, hang or go on behind an event that it did not hand out.
func FuzzRead(f *testing.F) {
	f.Add("retry: 1000\nid: 1\n\nid: 2\ndata: {\"id\":2}\n\n")
	f.Add(": x\nid: x\n\ndata\n\n")
	f.Add("data: {\"id\":3}\r\n\r\ndata: {\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		q := EventQuery{}
		var last int64
		begins := strings.Contains(body, "id")
		_, err := read(strings.NewReader(body), func() {}, &q, func(e inventory.Event, _ error) bool {
			last = e.ID
			return true
		})
		if err == nil {
			t.Error("a stream ended without saying so")
		}
		if !begins && q.After != last {
			t.Errorf("goes on after %d, the last event was %d", q.After, last)
		}
	})
}
