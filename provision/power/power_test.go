package power

import (
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// TestOfTooManyPasswordsARefusedOneIsForgottenFirst: the controller may still know one that it has not refused.
func TestOfTooManyPasswordsARefusedOneIsForgottenFirst(t *testing.T) {
	old := []inventory.OtherPassword{{Sealed: []byte("a"), IsNext: true}, {Sealed: []byte("b"), IsRefused: true}, {Sealed: []byte("c")}}
	got := ""
	for _, o := range KeepOther(old, inventory.OtherPassword{Sealed: []byte("new")}) {
		got += string(o.Sealed) + " "
	}
	if got != "new a c " {
		t.Errorf("kept are %s", got)
	}
}

func TestAControllerIsAskedInTurn(t *testing.T) {
	var p polls
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	if !p.isDue("a", now) || p.isDue("a", now.Add(pollEvery-1)) || !p.isDue("a", now.Add(pollEvery)) {
		t.Error("not asked every two minutes")
	}
	p.Soon("a")
	if !p.isDue("a", now.Add(pollEvery)) {
		t.Error("not asked at once after its settings were saved")
	}
}
