package provision

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Ids of boots stand in the store in the order of their time, and tell nobody what another one is.
func TestIDsOfSessionsSortByTimeAndCannotBeGuessed(t *testing.T) {
	at := time.Date(2026, 11, 24, 18, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	for i := range 1000 {
		now := at.Add(time.Duration(i) * time.Second)
		id, next := string(newSessionID(now)), string(newSessionID(now.Add(time.Second)))
		if len(id) != 32 || id >= next {
			t.Fatalf("%q is not before %q, of a second later", id, next)
		}
		if random := id[8:]; seen[random] || seen[random[:12]] || seen[random[12:]] {
			t.Fatalf("a part of %q was there before", id)
		}
		for _, part := range []string{id[8:], id[8:20], id[20:]} {
			seen[part] = true
		}
	}
}

func noDeadline(*inventory.BootSession, step) (time.Time, bool) { return time.Time{}, false }

func nthMAC(n int) inventory.MAC {
	return inventory.MAC(fmt.Sprintf("52:54:00:%02x:%02x:%02x", n>>16, n>>8&0xff, n&0xff))
}

// A look takes so many of the sessions that are due and no others, whatever changed since they were put on the agenda.
func TestALookTakesWhatIsDue(t *testing.T) {
	clock := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	start := clock
	all := newSessions(func() time.Time { return clock }, func(s *inventory.BootSession, at step) (time.Time, bool) {
		return at.at.Add(time.Minute), s.Step == inventory.EventDHCPOffer
	})
	heard := func(n int, boot pxe.Boot, kind string) inventory.BootSession {
		s, _, _ := all.heard(pxe.Client{MAC: nthMAC(n), Stage: pxe.StageFirmware}, kind)
		if s.Boot = string(boot); boot != "" {
			all.put(s)
		}
		return s
	}
	look := func(when time.Duration, wantLate, wantSilent, wantLeft int) {
		t.Helper()
		clock = start.Add(when)
		late, silent := 0, 0
		for {
			l, s, hasMore := all.take()
			if late, silent = late+len(l), silent+len(s); len(l)+len(s) > takeAtMost || when < goneWithin && len(l)+len(s) > takeAtOnce {
				t.Fatalf("%d and %d at once", len(l), len(s))
			}
			if !hasMore {
				break
			}
		}
		if late != wantLate || silent != wantSilent || len(all.byMAC) != wantLeft || len(all.agenda) != wantLeft {
			t.Errorf("after %s: %d late, %d silent, %d left, %d on the agenda; want %d, %d and %d", when, late, silent, len(all.byMAC), len(all.agenda),
				wantLate, wantSilent, wantLeft)
		}
	}
	for n := range 10 {
		heard(n, pxe.BootDisk, inventory.EventScriptAsked)
		heard(100+n, "", inventory.EventDHCPOffer)
		heard(200+n, pxe.BootImage, inventory.EventArtefactSent)
	}
	look(time.Minute, 0, 0, 30)
	look(time.Minute+1, 10, 0, 30) // their next sign did not come
	look(time.Minute+2, 0, 0, 30)  // told once
	heard(0, "", inventory.EventDHCPAck)
	look(goneWithin+1, 0, 9, 21) // gone to their disks, but for one that was heard again
	heard(100, "", inventory.EventDHCPAck)
	all.lookAgain(nthMAC(101), clock)
	look(goneWithin+2, 1, 0, 21) // looked at again, because somebody wants it
	look(silentFor+1, 0, 20, 1)
	ended := heard(0, "", inventory.EventDHCPAck)
	ended.EndedAt = clock
	all.put(ended)
	look(3*silentFor, 0, 1, 0) // nothing is told of one that has ended
	if len(all.byHost) != 0 || len(all.byAddr) != 0 || len(all.owners) != 0 {
		t.Errorf("left: %v, %v, %v", all.byHost, all.byAddr, all.owners)
	}
}

// Boots that only have more time than was thought are passed over in bites: who boots meanwhile waits for one of them.
func TestALookPassesOverBootsInBites(t *testing.T) {
	clock := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	all := newSessions(func() time.Time { return clock }, func(s *inventory.BootSession, at step) (time.Time, bool) {
		return at.at.Add(time.Minute), s.Step == inventory.EventDHCPOffer
	})
	for n := range 3 * passAtOnce {
		all.heard(pxe.Client{MAC: nthMAC(n)}, inventory.EventDHCPOffer)
		all.heard(pxe.Client{MAC: nthMAC(n)}, inventory.EventDHCPAck)
	}
	clock = clock.Add(time.Minute + 1)
	for look := 1; ; look++ {
		late, silent, hasMore := all.take()
		if len(late)+len(silent) > 0 {
			t.Fatalf("%d late, %d silent", len(late), len(silent))
		}
		if !hasMore {
			if look != 3 {
				t.Errorf("%d looks, want 3", look)
			}
			return
		}
	}
}

// While a file is being sent nothing is late, and when it has been sent for too long the deadline counts from before.
func TestNothingIsLateWhileAFileIsSent(t *testing.T) {
	clock := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	r := newSessions(func() time.Time { return clock }, nil)
	e := &Engine{sessions: r, cfg: Config{Now: func() time.Time { return clock }}}
	r.deadline = func(s *inventory.BootSession, at step) (time.Time, bool) {
		_, by, waits := e.next(s, at)
		return by, waits
	}
	s, _, _ := r.heard(pxe.Client{MAC: nthMAC(1), Stage: pxe.StageFirmware}, inventory.EventDHCPDiscover)
	r.setHost("h1", s.MAC)
	s, _, _ = r.heard(pxe.Client{MAC: s.MAC}, inventory.EventLoaderStarted)
	r.loading(&s, "ipxe.efi")
	late := func() bool {
		l, _, _ := r.take()
		return len(l) == 1
	}
	for _, passes := range []time.Duration{loadingFor / 2, loadingFor/2 - time.Second} {
		if clock = clock.Add(passes); late() {
			t.Fatalf("late at %s while its loader is sent", clock)
		}
	}
	if clock = clock.Add(time.Second + 1); !late() {
		t.Error("not late although nobody sends it anything")
	}
	r.loading(&s, "ipxe.efi")
	r.loaded(&s, "ipxe.efi")
	if clock = clock.Add(1); !late() {
		t.Error("not late although the file ended")
	}
}

// The sessions of a host are found whatever MAC it boots from, and are not those of the host that had the MAC before.
func TestSessionsAreFoundByHost(t *testing.T) {
	all := newSessions(time.Now, noDeadline)
	for n := range 3 {
		all.heard(pxe.Client{MAC: nthMAC(n)}, inventory.EventDHCPDiscover)
	}
	boots := func(h inventory.HostID) (macs string) {
		for _, s := range all.boots(h) {
			macs += string(s.MAC[len(s.MAC)-1:])
		}
		return macs
	}
	all.setHost("a", nthMAC(0), nthMAC(1))
	all.setHost("b", nthMAC(2))
	if got := boots("a") + "," + boots("b"); got != "01,2" {
		t.Errorf("boots %s", got)
	}
	all.setHost("b", nthMAC(1))
	all.heard(pxe.Client{MAC: nthMAC(1)}, inventory.EventDHCPOffer)
	if got := boots("a") + "," + boots("b"); got != "0,21" {
		t.Errorf("boots %s", got)
	}
}

// A machine that boots again is found by the address that it had until it has another; then another may have that.
func TestSessionsAreFoundByAddress(t *testing.T) {
	all := newSessions(time.Now, noDeadline)
	first, second := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	heard := func(n int, a netip.Addr, kind string) inventory.SessionID {
		s, _, _ := all.heard(pxe.Client{MAC: nthMAC(n), Stage: pxe.StageFirmware, Address: a}, kind)
		return s.ID
	}
	whose := func(a netip.Addr) inventory.SessionID {
		s, _ := all.at(a)
		return s.ID
	}
	heard(1, first, inventory.EventLoaderSent)
	again := heard(1, netip.Addr{}, inventory.EventDHCPDiscover)
	if whose(first) != again {
		t.Error("not found by its address after it began anew")
	}
	heard(1, second, inventory.EventDHCPAck)
	if whose(second) != again || whose(first) != "" {
		t.Error("found by an address that it has no more, or not by the one that it has")
	}
	other := heard(2, second, inventory.EventDHCPAck)
	all.drop(all.byMAC[nthMAC(1)])
	if whose(second) != other {
		t.Error("the end of a boot takes the address of another")
	}
	if all.drop(all.byMAC[nthMAC(2)]); len(all.byAddr) != 0 {
		t.Errorf("left: %v", all.byAddr)
	}
}

// When there is no room for one more session, one that has long been silent is forgotten, and one of now is not.
func TestAFullListForgetsWhoIsSilent(t *testing.T) {
	clock := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	all := newSessions(func() time.Time { return clock }, noDeadline)
	for n := range maxSessions {
		if n == maxSessions/2 {
			clock = clock.Add(time.Minute)
		}
		all.heard(pxe.Client{MAC: nthMAC(n)}, inventory.EventDHCPDiscover)
	}
	for n := range 1000 {
		all.heard(pxe.Client{MAC: nthMAC(maxSessions + n)}, inventory.EventDHCPDiscover)
	}
	old := 0
	for n := range maxSessions / 2 {
		if _, ok := all.of(nthMAC(n)); ok {
			old++
		}
	}
	if len(all.byMAC) != maxSessions || len(all.agenda) != maxSessions || old != maxSessions/2-1000 {
		t.Errorf("%d sessions, %d on the agenda, %d of the silent half; want %d and %d", len(all.byMAC), len(all.agenda), old, maxSessions, maxSessions/2-1000)
	}
}
