package strangers

import (
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

func TestNoMoreStrangersAreListedWhileTheDiskIsNearlyFull(t *testing.T) {
	g := New()
	g.Configure(Config{Now: time.Now, Knows: func(inventory.MAC) bool { return false }})
	c := pxe.Client{MAC: "52:54:00:00:00:01"}
	if !g.MayAdd(c) {
		t.Error("the first stranger is not listed")
	}
	g.DiskIsTight(true)
	if g.MayAdd(c) || g.shed.host.Load() != 1 {
		t.Error("a stranger is listed while the disk is nearly full, or is not counted")
	}
}

func TestAHostThatAPersonHasNamedIsNoUntouchedStranger(t *testing.T) {
	h := inventory.Host{
		Name: "host-525400000001", State: inventory.Discovered, StateReason: HeardFirst, LastSeenAt: time.Now(),
		NICs: []inventory.NIC{{MAC: "52:54:00:00:00:01"}},
	}
	if !IsUntouchedStranger(&h) {
		t.Error("a host that was only heard counts as touched")
	}
	h.Name = "db1"
	if IsUntouchedStranger(&h) {
		t.Error("a host with a name of its own counts as a stranger")
	}
}
