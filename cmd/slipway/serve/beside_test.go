package serve

import (
	"net/netip"
	"slices"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

// A machine that has booted from an instance that does not lead must learn where the leader is, too.
func TestMachinesLearnOfEachInstanceThatServes(t *testing.T) {
	peer := func(address string, life duty.Life, isDrained bool) duty.Peer {
		return duty.Peer{Instance: inventory.Instance{Addresses: []string{address}, IsDrained: isDrained}, Sight: duty.Sight{Life: life}}
	}
	ours := func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.0.0.1")} }
	got := serving([]duty.Peer{
		peer("10.0.0.2", duty.Alive, false), peer("10.0.0.3", duty.Silent, false), peer("10.0.0.4", duty.Alive, true), peer("", duty.Alive, false),
	}, ours)
	if want := []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.1")}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := serving([]duty.Peer{peer("10.0.0.3", duty.Silent, false)}, ours); got != nil {
		t.Errorf("without another one that lives: %v", got)
	}
}
