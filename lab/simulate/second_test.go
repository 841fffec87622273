package simulate

import (
	"testing"
	"time"
)

const comparedCount = "loaders compared with another TFTP client"

func TestEachLoaderIsComparedWithAnotherClient(t *testing.T) {
	t.Parallel()
	cfg := toyConfig(8)
	cfg.SecondClient = true
	r := ran(t, cfg, newToyServer(t))
	if !r.IsGood() || len(r.Failures) != 0 || r.Counts[comparedCount] != 2 { // one for BIOS, one for UEFI
		t.Errorf("%d comparisons; %s", r.Counts[comparedCount], summaryOf(t, r))
	}
}

// TestALoaderThatComesDifferentlyIsFound has a server that sends other bytes from the third request on: a UEFI machine asks
// twice, for the size and for the file, and then the second client asks.
func TestALoaderThatComesDifferentlyIsFound(t *testing.T) {
	t.Parallel()
	for _, isCompared := range []bool{true, false} {
		s := newToyServer(t)
		s.otherAfter = 2
		cfg := toyConfig(1)
		cfg.Firmware, cfg.SecondClient, cfg.Timeout = []Firmware{FirmwareUEFI}, isCompared, 20*time.Second
		if r := ran(t, cfg, s); len(r.Failures) > 0 != isCompared { // later boots get the other bytes from the start
			t.Errorf("compared: %v; %s", isCompared, summaryOf(t, r))
		}
	}
}
