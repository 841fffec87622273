package instance

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

func TestWhichInstanceIsGone(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	others := []duty.Peer{{Instance: inventory.Instance{Name: "b", Addresses: []string{"10.0.0.2", "fd00::2"}}}}
	for _, c := range []struct {
		at, want string
		sight    duty.Sight
		isNew    bool
	}{
		{at: "10.0.0.2", sight: duty.Sight{Life: duty.Alive}},
		{at: "10.0.0.2", sight: duty.Sight{Life: duty.Unknown}},
		{
			at: "10.0.0.2", sight: duty.Sight{Life: duty.Silent, Quiet: time.Minute},
			want: "instance b gives no sign of life since 2026-11-28T11:59:00Z",
		},
		{
			at: "fd00::2", sight: duty.Sight{Life: duty.Silent, Quiet: time.Minute, IsFirst: true},
			want: "instance b gives no sign of life since before 2026-11-28T11:59:00Z",
		},
		{at: "10.0.0.2", sight: duty.Sight{Life: duty.Stopped}, want: "instance b has stopped"},
		{at: "10.0.0.9", sight: duty.Sight{Life: duty.Alive}, want: "no instance in the list has that address any more"},
		{at: "10.0.0.9", isNew: true}, // this instance has not read the list yet
	} {
		others[0].Sight = c.sight
		if got := gone(others, !c.isNew, netip.MustParseAddr(c.at), now); got != c.want {
			t.Errorf("%s, %+v: %q, want %q", c.at, c.sight, got, c.want)
		}
	}
}

// A machine that has booted from an instance that does not lead must learn where the leader is, too.
func TestMachinesLearnOfEachInstanceThatServes(t *testing.T) {
	peer := func(address string, life duty.Life, isDrained bool) duty.Peer {
		return duty.Peer{Instance: inventory.Instance{Addresses: []string{address}, IsDrained: isDrained}, Sight: duty.Sight{Life: life}}
	}
	ours := func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.0.0.1")} }
	got := serving([]duty.Peer{
		peer("10.0.0.2", duty.Alive, false), peer("10.0.0.3", duty.Silent, false),
		peer("10.0.0.4", duty.Alive, true), peer("", duty.Alive, false),
	}, ours)
	if want := []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.1")}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := serving([]duty.Peer{peer("10.0.0.3", duty.Silent, false)}, ours); got != nil {
		t.Errorf("without another one that lives: %v", got)
	}
}
