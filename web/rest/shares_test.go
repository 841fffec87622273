package rest

import (
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestOneCallerDoesNotTakeAllStreams(t *testing.T) {
	s := NewShares("event streams", 5, 3)
	as := func(name string) *Request {
		return &Request{Context: t.Context(), Caller: Caller{Name: name}}
	}
	var backs []func()
	for n := range 4 {
		back, err := s.Take(as("token greedy"))
		if (err == nil) != (n < 3) || err != nil && !inventory.IsKind(err, inventory.Unavailable) {
			t.Fatalf("stream %d: %v", n, err)
		}
		if err == nil {
			backs = append(backs, back)
		}
	}
	for range 2 {
		if _, err := s.Take(as("user ann")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Take(as("user bob")); err == nil {
		t.Error("more streams than there may be of all")
	}
	backs[0]()
	backs[0]()
	if _, err := s.Take(as("user bob")); err != nil || s.Len() != 5 {
		t.Errorf("%d streams, %v", s.Len(), err)
	}
}
