package kickstart

import (
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig"
)

// Images of one's own have the release 1, and were taken for the oldest Enterprise Linux.
func TestTheVersionOfTheFormatSaysWhatInstallsAnImageOfOnesOwn(t *testing.T) {
	document := &machineconfig.Config{Document: &machineconfig.Passthrough{Format: "kickstart", Data: []byte("install\n")}}
	for tool, want := range map[string]string{"7": "Enterprise Linux 7", "9": "Enterprise Linux 9", "RHEL9": "Enterprise Linux 9", "8.10": "Enterprise Linux 8", "x": "Enterprise Linux 10"} {
		_, report := New().Render(machineconfig.Target{OS: "custom", Release: "1", Tool: tool}, document)
		said := ""
		for _, f := range report {
			said += f.Message + "\n"
		}
		if tool == "7" { // which knows install
			if strings.Contains(said, "install") {
				t.Errorf("version %s: %s", tool, said)
			}
		} else if !strings.Contains(said, want) {
			t.Errorf("version %s: got %q, want %s", tool, said, want)
		}
	}
}
