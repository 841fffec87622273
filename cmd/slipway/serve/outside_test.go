package serve

import (
	"testing"
)

func TestTheAdminDoorKnowsItsNames(t *testing.T) {
	c := &certificates{cfg: &Config{ExternalURL: "https://slipway.example.org", AdminHosts: []string{"boot.lab", "*.dc1.example"}}}
	for name, want := range map[string]bool{
		"slipway.example.org": true, "boot.lab": true, "r1.dc1.example": true,
		"evil.example": false, "boot.lab.evil.example": false, "a.b.dc1.example": false, "dc1.example": false, "": false, "xslipway.example.org": false,
	} {
		if got := c.knowsHost(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
