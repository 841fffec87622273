package provision

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	contestedKinds = 8
	contestedFor   = 24 * time.Hour
)

func TestOneMachineThatAnswersForManyAddressesIsOneIssue(t *testing.T) {
	r := newRack(t)
	conflict := func(n int, subnet, words string) {
		a := netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
		r.engine.Conflict(a, subnet, "52:54:00:aa:00:01", fmt.Sprintf("%s %s 52:54:00:aa:00:%02x, which does not have it from us", a, words, n%256))
		r.settle()
	}
	of := func(subnet string) (all []inventory.Issue) {
		for _, i := range r.openIssues() {
			if i.Type == inventory.IssueAddressConflict && i.Subnet == subnet {
				all = append(all, i)
			}
		}
		return all
	}
	for n := range 300 {
		conflict(n, "lan", "is used by")
		r.clock = r.clock.Add(time.Second)
	}
	r.clock = r.clock.Add(2 * time.Minute)
	conflict(7, "lan", "is used by")
	lan := of("lan")
	if len(lan) != 1 || !strings.Contains(lan[0].Cause, "300 addresses") || !strings.Contains(lan[0].Cause, "10.0.0.0") {
		t.Errorf("%d issues: %+v", len(lan), lan)
	}
	conflict(1, "lan", "is declined by")
	if n := len(of("lan")); n != 2 {
		t.Errorf("two causes are %d issues", n)
	}
	conflict(1, "dmz", "is used by")
	if dmz := of("dmz"); len(dmz) != 1 || strings.Contains(dmz[0].Cause, "addresses of") {
		t.Errorf("another network: %+v", dmz)
	}
	for n := range 100 { // words that a machine chooses
		conflict(n, "lan", "is used by "+strings.Repeat("x", n+1))
	}
	if n := len(of("lan")); n > contestedKinds+1 {
		t.Errorf("%d issues", n)
	}
	r.clock = r.clock.Add(2 * contestedFor)
	r.engine.Conflict(netip.MustParseAddr("10.0.2.9"), "lan", "52:54:00:aa:00:01", "10.0.2.9 is used by 52:54:00:aa:00:01, which does not have it from us")
	r.settle()
	if i := of("lan")[slices.IndexFunc(of("lan"), func(i inventory.Issue) bool { return i.Key == lan[0].Key })]; i.Key != lan[0].Key || !strings.HasPrefix(i.Cause, "10.0.2.9 is used by") {
		t.Errorf("a day later: %+v", i)
	}
}
