package watch

import (
	"fmt"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

func TestMachinesThatAskInVainAreBounded(t *testing.T) {
	clock := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	w := &Silences{cfg: SilencesConfig{Ledger: &ledger.Ledger{Base: ledger.Base{Now: func() time.Time { return clock }}}}}
	for n := range maxSilences + 100 {
		clock = clock.Add(time.Millisecond)
		w.Unanswered(pxe.Client{Stage: pxe.StageFirmware, MAC: inventory.MAC(fmt.Sprintf("52:54:01:00:%02x:%02x", n>>8, n&255))}, "eth1", "x", false)
	}
	if n := len(w.silences.byMAC); n != maxSilences {
		t.Errorf("%d are kept", n)
	}
}
