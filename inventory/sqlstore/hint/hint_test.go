package hint

import (
	"fmt"
	"testing"

	"slipway.dev/slipway/inventory"
)

func mac(n int) inventory.MAC { return inventory.MAC(fmt.Sprintf("52:54:00:00:00:%02x", n)) }

func TestHintsDoNotGrowWithoutEnd(t *testing.T) {
	h := New()
	for i := range 10 {
		for card := range 3 {
			h.Add(mac(card), int64(i%2))
		}
	}
	if h.n != 6 {
		t.Errorf("%d hints of three cards on two addresses", h.n)
	}
	if got := h.Of(mac(1)); len(got) != 2 || got[0] != 1 {
		t.Errorf("addresses %v, want the latest first of two", got)
	}
	if got := h.Of(mac(9)); got != nil {
		t.Errorf("addresses %v of a card that has none", got)
	}
}
