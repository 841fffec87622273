package pxe

import (
	"testing"
	"time"
)

func TestAFloodOfMissedPacketsLeavesRoomForKnownMachines(t *testing.T) {
	var m Missed[int, string]
	now := time.Now()
	for n := range 2000 {
		if is := m.Note(n, "first", "rack", now, false); is != (n < MissedUnknown) {
			t.Fatalf("the question of machine %d is kept: %t", n, is)
		}
	}
	for n := range 2000 {
		if is := m.Note(-1-n, "known", "rack", now, true); is != (n < MissedAtMost-MissedUnknown) {
			t.Fatalf("the question of known machine %d is kept: %t", n, is)
		}
	}
	if !m.Note(0, "second", "far", now, false) || m.N() != MissedAtMost {
		t.Errorf("a machine that is there finds no room, or takes another one: %d", m.N())
	}
	m.Drop(-1)
	got := m.Take(now, func(subnet string) bool { return subnet == "far" })
	if len(got) != 1 || got[0] != "second" || m.N() != MissedAtMost-2 {
		t.Errorf("%v, and %d are left", got, m.N())
	}
	if got := m.Take(now.Add(MissedFor+1), func(string) bool { return true }); len(got) != 0 || m.N() != 0 {
		t.Errorf("too late: %d, and %d are left", len(got), m.N())
	}
}
