package web

import (
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

func TestOneCallerDoesNotTakeAllStreams(t *testing.T) {
	s := newShares("event streams", 5, 3)
	as := func(name string) *rest.Request {
		return &rest.Request{Context: t.Context(), Caller: rest.Caller{Name: name}}
	}
	var backs []func()
	for n := range 4 {
		back, err := s.take(as("token greedy"))
		if (err == nil) != (n < 3) || err != nil && !inventory.IsKind(err, inventory.Unavailable) {
			t.Fatalf("stream %d: %v", n, err)
		}
		if err == nil {
			backs = append(backs, back)
		}
	}
	for range 2 {
		if _, err := s.take(as("user ann")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.take(as("user bob")); err == nil {
		t.Error("more streams than there may be of all")
	}
	backs[0]()
	backs[0]()
	if _, err := s.take(as("user bob")); err != nil || s.len() != 5 {
		t.Errorf("%d streams, %v", s.len(), err)
	}
}
