package session

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

func noDeadline(*inventory.BootSession, Step) (time.Time, bool) { return time.Time{}, false }

func nthMAC(n int) inventory.MAC {
	return inventory.MAC(fmt.Sprintf("52:54:00:%02x:%02x:%02x", n>>16, n>>8&0xff, n&0xff))
}

// A look takes so many of the sessions that are due and no others, whatever changed since they were put on the agenda.
func TestALookTakesWhatIsDue(t *testing.T) {
	clock := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	start := clock
	all := New(func() time.Time { return clock }, func(s *inventory.BootSession, at Step) (time.Time, bool) {
		return at.At.Add(time.Minute), s.Step == inventory.EventDHCPOffer
	})
	heard := func(n int, boot pxe.Boot, kind string) inventory.BootSession {
		s, _, _ := all.Heard(pxe.Client{MAC: nthMAC(n), Stage: pxe.StageFirmware}, kind)
		if s.Boot = string(boot); boot != "" {
			all.Put(s)
		}
		return s
	}
	look := func(when time.Duration, wantLate, wantSilent, wantLeft int) {
		t.Helper()
		clock = start.Add(when)
		late, silent := 0, 0
		for {
			l, s, hasMore := all.Take()
			if late, silent = late+len(l), silent+len(s); len(l)+len(s) > takeAtMost || when < goneWithin && len(l)+len(s) > TakeAtOnce {
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
	all.LookAgain(nthMAC(101), clock)
	look(goneWithin+2, 1, 0, 21) // looked at again, because somebody wants it
	look(SilentFor+1, 0, 20, 1)
	ended := heard(0, "", inventory.EventDHCPAck)
	ended.EndedAt = clock
	all.Put(ended)
	look(3*SilentFor, 0, 1, 0) // nothing is told of one that has ended
	if len(all.byHost) != 0 || len(all.byAddr) != 0 || len(all.owners) != 0 {
		t.Errorf("left: %v, %v, %v", all.byHost, all.byAddr, all.owners)
	}
}

// Boots that only have more time than was thought are passed over in bites: who boots meanwhile waits for one of them.
func TestALookPassesOverBootsInBites(t *testing.T) {
	clock := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	all := New(func() time.Time { return clock }, func(s *inventory.BootSession, at Step) (time.Time, bool) {
		return at.At.Add(time.Minute), s.Step == inventory.EventDHCPOffer
	})
	for n := range 3 * passAtOnce {
		all.Heard(pxe.Client{MAC: nthMAC(n)}, inventory.EventDHCPOffer)
		all.Heard(pxe.Client{MAC: nthMAC(n)}, inventory.EventDHCPAck)
	}
	clock = clock.Add(time.Minute + 1)
	for look := 1; ; look++ {
		late, silent, hasMore := all.Take()
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

// The sessions of a host are found whatever MAC it boots from, and are not those of the host that had the MAC before.
func TestSessionsAreFoundByHost(t *testing.T) {
	all := New(time.Now, noDeadline)
	for n := range 3 {
		all.Heard(pxe.Client{MAC: nthMAC(n)}, inventory.EventDHCPDiscover)
	}
	boots := func(h inventory.HostID) (macs string) {
		for _, s := range all.Boots(h) {
			macs += string(s.MAC[len(s.MAC)-1:])
		}
		return macs
	}
	all.SetHost("a", nthMAC(0), nthMAC(1))
	all.SetHost("b", nthMAC(2))
	if got := boots("a") + "," + boots("b"); got != "01,2" {
		t.Errorf("boots %s", got)
	}
	all.SetHost("b", nthMAC(1))
	all.Heard(pxe.Client{MAC: nthMAC(1)}, inventory.EventDHCPOffer)
	if got := boots("a") + "," + boots("b"); got != "0,21" {
		t.Errorf("boots %s", got)
	}
}

// A machine that boots again is found by the address that it had until it has another; then another may have that.
func TestSessionsAreFoundByAddress(t *testing.T) {
	all := New(time.Now, noDeadline)
	first, second := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	heard := func(n int, a netip.Addr, kind string) inventory.SessionID {
		s, _, _ := all.Heard(pxe.Client{MAC: nthMAC(n), Stage: pxe.StageFirmware, Address: a}, kind)
		return s.ID
	}
	whose := func(a netip.Addr) inventory.SessionID {
		s, _ := all.At(a)
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
	all := New(func() time.Time { return clock }, noDeadline)
	for n := range maxSessions {
		if n == maxSessions/2 {
			clock = clock.Add(time.Minute)
		}
		all.Heard(pxe.Client{MAC: nthMAC(n)}, inventory.EventDHCPDiscover)
	}
	for n := range 1000 {
		all.Heard(pxe.Client{MAC: nthMAC(maxSessions + n)}, inventory.EventDHCPDiscover)
	}
	old := 0
	for n := range maxSessions / 2 {
		if _, ok := all.Of(nthMAC(n)); ok {
			old++
		}
	}
	if len(all.byMAC) != maxSessions || len(all.agenda) != maxSessions || old != maxSessions/2-1000 {
		t.Errorf("%d sessions, %d on the agenda, %d of the silent half; want %d and %d", len(all.byMAC), len(all.agenda), old, maxSessions, maxSessions/2-1000)
	}
}

func TestWhatBeginsANewBoot(t *testing.T) {
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	at := func(step string, ago time.Duration) *inventory.BootSession {
		return &inventory.BootSession{Step: step, LastAt: now.Add(-ago), Firmware: inventory.UEFI}
	}
	for _, tc := range []struct {
		name  string
		s     *inventory.BootSession
		stage pxe.Stage
		fw    inventory.Firmware
		kind  string
		want  bool
	}{
		{"firmware that asks again in its minute", at(inventory.EventDHCPOffer, 28*time.Second), pxe.StageFirmware, inventory.UEFI, inventory.EventDHCPDiscover, false},
		{"firmware that asks after it gave up", at(inventory.EventDHCPOffer, 70*time.Second), pxe.StageFirmware, inventory.UEFI, inventory.EventDHCPDiscover, true},
		{"firmware that starts over after its loader", at(inventory.EventLoaderSent, 5*time.Second), pxe.StageFirmware, inventory.UEFI, inventory.EventDHCPDiscover, true},
		{"firmware that turns from PXE to HTTP", at(inventory.EventDHCPOffer, 5*time.Second), pxe.StageFirmware, inventory.UEFIHTTP, inventory.EventDHCPDiscover, true},
		{"iPXE after the loader", at(inventory.EventLoaderSent, 3*time.Second), pxe.StageIPXE, "", inventory.EventDHCPDiscover, false},
		{"iPXE in the network card after a boot", at(inventory.EventBootDecided, 30*time.Second), pxe.StageIPXE, "", inventory.EventDHCPDiscover, true},
		{"a request in a boot", at(inventory.EventBootDecided, 5*time.Minute), pxe.StageIPXE, "", inventory.EventScriptAsked, false},
		{"anything after half an hour of silence", at(inventory.EventBootDecided, 31*time.Minute), pxe.StageIPXE, "", inventory.EventScriptAsked, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := isNewBoot(tc.s, pxe.Client{Stage: tc.stage, Firmware: tc.fw}, tc.kind, now); got != tc.want {
				t.Errorf("new boot %v, want %v", got, tc.want)
			}
		})
	}
}

// TestWhoHasAnAddressFromElsewhere binds an address to the boot of machine 1, beside that of machine 2.
func TestWhoHasAnAddressFromElsewhere(t *testing.T) {
	at := netip.MustParseAddr
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	const one, two = inventory.MAC("52:54:00:00:00:01"), inventory.MAC("52:54:00:00:00:02")
	for name, c := range map[string]struct {
		alter  func(s *Table)
		addr   netip.Addr
		isSure bool
		isNew  bool
		owners string // of the addresses .1, .2 and .3 afterwards
	}{
		"a free one":                            {nil, at("10.0.0.3"), false, true, "-21"},
		"the one that it has":                   {nil, at("10.0.0.1"), true, false, "12-"},
		"none":                                  {nil, netip.Addr{}, true, false, "12-"},
		"the unspecified one":                   {nil, netip.IPv4Unspecified(), true, false, "12-"},
		"its boot is over":                      {func(s *Table) { s.byMAC[one].EndedAt = now }, at("10.0.0.3"), true, false, "12-"},
		"it does not boot":                      {func(s *Table) { delete(s.byMAC, one) }, at("10.0.0.3"), true, false, "-2-"},
		"the other's, as it says":               {nil, at("10.0.0.2"), false, false, "12-"},
		"the other's, as the server says":       {nil, at("10.0.0.2"), true, true, "-1-"},
		"the other's, whose boot is over":       {func(s *Table) { s.byMAC[two].EndedAt = now }, at("10.0.0.2"), false, true, "-1-"},
		"the other's, who is quiet":             {func(s *Table) { s.byMAC[two].LastAt = now.Add(-vouchedFor) }, at("10.0.0.2"), false, true, "-1-"},
		"the other's, who was heard lately":     {func(s *Table) { s.byMAC[two].LastAt = now.Add(time.Second - vouchedFor) }, at("10.0.0.2"), false, false, "12-"},
		"one that it had":                       {func(s *Table) { s.byAddr[at("10.0.0.3")] = one }, at("10.0.0.3"), false, true, "-21"},
		"a free one, and the other has its own": {func(s *Table) { s.byAddr[at("10.0.0.1")] = two }, at("10.0.0.3"), true, true, "221"},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(func() time.Time { return now }, noDeadline)
			for mac, a := range map[inventory.MAC]netip.Addr{one: at("10.0.0.1"), two: at("10.0.0.2")} {
				s.Put(inventory.BootSession{MAC: mac, Address: a, LastAt: now})
			}
			if c.alter != nil {
				c.alter(s)
			}
			got, isNew := s.Bind(one, c.addr, c.isSure)
			if isNew != c.isNew || isNew && (got.MAC != one || got.Address != c.addr) {
				t.Errorf("bound: %v, %+v", isNew, got)
			}
			owners := ""
			for _, a := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
				switch b, ok := s.At(at(a)); {
				case !ok:
					owners += "-"
				case b.MAC == one:
					owners += "1"
				default:
					owners += "2"
				}
			}
			if owners != c.owners {
				t.Errorf("the addresses are those of %s, want %s", owners, c.owners)
			}
		})
	}
}
