package diagnosis

import (
	"fmt"
	"net/netip"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/pxe/trace"
)

// tale is a rule's test: packets and facts that it must find itself in, and what changes so that it must not. With
// isInstead, but is the whole other story; else it is added to the first.
type tale struct {
	rule      string
	story     func(w *wire, c *Case)
	but       func(w *wire, c *Case)
	isInstead bool
	rank      int // the lowest it may have; 0 means 1
}

const loader = "snponly.efi"

// normal is a boot that goes well up to the script.
func normal(w *wire, c *Case) {
	w.address(0, uefi, file(loader))
	w.read(1, 2000, loader, "tsize", "0", "blksize", "1468")
	w.tftp(1.01, false, 2000, 6, 0, "tsize\x00100000\x00blksize\x001468\x00")
	w.tftp(1.02, true, 2000, 5, 8, "stop\x00")
	w.read(1.03, 2001, loader, "blksize", "1468")
	w.tftp(1.04, false, 2001, 6, 0, "blksize\x001468\x00")
	w.tftp(1.05, true, 2001, 4, 0, "")
	w.tftp(1.06, false, 2001, 3, 1, "data")
	w.tftp(1.07, true, 2001, 4, 1, "")
	c.event(1.5, inventory.EventLoaderSent, loader+" over tftp")
	w.address(4, ipxe, file("http://10.0.0.1/boot/ask"))
	w.get(4.1, "/boot/ask", "200 OK")
	w.get(4.2, "/boot/0123/script?mac=x", "200 OK")
	c.event(4.2, inventory.EventScriptAsked, "")
}

// decided adds what a script request brings.
func decided(when float64, c *Case, boot pxe.Boot) {
	c.Session.Boot = string(boot)
	c.Image = &inventory.Image{Name: "debian12", MemoryMiB: 1024, Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel}, {Role: inventory.RoleInitrd}}}
	c.event(when, inventory.EventBootDecided, string(boot)+": as the profile says")
}

func sent(when float64, c *Case, name string) {
	c.event(when, inventory.EventArtefactSent, name+" over http", map[string]any{"name": name})
}

func noted(when float64, c *Case, reason lease.Reason) {
	c.Notes = append(c.Notes, trace.Note{At: at(when), Reason: string(reason)})
}

// for a reason, DISCOVERs are not answered.
func because(reason lease.Reason, opts ...opt) func(*wire, *Case) {
	return func(w *wire, c *Case) {
		wasAsked(2, 4, uefi, opts...)(w, c)
		noted(.1, c, reason)
		noted(4.1, c, reason)
	}
}

func wasAsked(n int, gap float64, who []opt, opts ...opt) func(*wire, *Case) {
	return func(w *wire, _ *Case) {
		for i := range n {
			w.discover(float64(i)*gap, who, opts...)
		}
	}
}

func both(fns ...func(*wire, *Case)) func(*wire, *Case) {
	return func(w *wire, c *Case) {
		for _, fn := range fns {
			fn(w, c)
		}
	}
}

func tales() []tale {
	var all []tale
	for _, some := range [][]tale{decisionTales(), silenceTales(), addressTales(), offerTales(), identityTales(), fetchTales(), tftpTales(), loaderTales(), scriptTales(), httpTales(), systemTales()} {
		all = append(all, some...)
	}
	return all
}

func TestEachRuleFindsItsStoryAndNotItsCounterpart(t *testing.T) {
	told := map[string]bool{}
	for _, x := range tales() {
		told[x.rule] = true
		t.Run(x.rule, func(t *testing.T) {
			causes := Explain(tell(t, x.story))
			c, ok := find(causes, x.rule)
			if !ok {
				t.Fatalf("not found; found %s", codes(causes))
			}
			if c.Rank > max(1, x.rank) {
				t.Errorf("rank %d of %s", c.Rank, codes(causes))
			}
			if c.Sentence == "" || c.Hint == "" || len(c.Evidence) == 0 {
				t.Errorf("without sentence, hint or evidence: %+v", c)
			}
			other := x.but
			if !x.isInstead {
				other = both(x.story, x.but)
			}
			if causes := Explain(tell(t, other)); len(causes) > 0 {
				if _, ok := find(causes, x.rule); ok {
					t.Errorf("found in the counterpart, too: %s", codes(causes))
				}
			}
		})
	}
	for _, r := range Rules() {
		if !told[r.Code] {
			t.Errorf("rule %s has no test", r.Code)
		}
	}
}

func codes(causes []Cause) string {
	var s string
	for _, c := range causes {
		s += fmt.Sprintf("%s(%d) ", c.Code, c.Weight)
	}
	return s
}

// A boot that goes well has no causes but what makes it slow, at whatever moment one asks.
func TestABootThatGoesWellHasNoCause(t *testing.T) {
	c := tell(t, normal)
	for s := range 10 {
		c.Now = at(float64(s))
		var packets int
		for packets < len(c.Packets) && !c.Packets[packets].At.After(c.Now) {
			packets++
		}
		cut := c
		cut.Packets = c.Packets[:packets]
		cut.Events = nil
		for _, e := range c.Events {
			if !e.At.After(c.Now) {
				cut.Events = append(cut.Events, e)
			}
		}
		if causes := Explain(cut); len(causes) > 0 {
			t.Errorf("after %d s: %s", s, codes(causes))
		}
	}
	c.Session.Outcome, c.Now = inventory.OutcomeArrived, at(1000)
	if causes := Explain(c); len(causes) > 0 {
		t.Errorf("after it arrived: %s", codes(causes))
	}
}

func TestRanksAreInOrderAndEvidenceIsBounded(t *testing.T) {
	causes := Explain(tell(t, func(w *wire, c *Case) {
		wasAsked(20, 4, uefi)(w, c)
		noted(80, c, lease.NoSubnet)
		c.Issues = []inventory.Issue{{Type: inventory.IssueIdentityConflict, Cause: "two hosts share a UUID", Hint: "look"}}
	}))
	if len(causes) != 2 || causes[0].Code != "no-subnet" || causes[0].Rank != 1 || causes[1].Rank != 2 {
		t.Fatalf("%s", codes(causes))
	}
	if n := len(causes[0].Evidence); n != evidenceAtMost {
		t.Errorf("%d pieces of evidence", n)
	}
}

func decisionTales() []tale {
	return []tale{
		{rule: "boot-refused", story: func(w *wire, c *Case) {
			w.address(0, uefi)
			c.Decision = pxe.Decision{Boot: pxe.BootIgnore, IsTrap: true, Reason: "no boot file for x86 UEFI", Hint: "install ipxe"}
		}, but: func(_ *wire, c *Case) { c.Decision.IsTrap = false }, rank: 2},
		{rule: "not-accepted", story: func(w *wire, c *Case) {
			normal(w, c)
			c.Host.State, c.Decision.Boot = inventory.Discovered, pxe.BootWait
		}, but: func(_ *wire, c *Case) { c.Host.State = inventory.Available }},
		{rule: "parked", story: func(w *wire, c *Case) {
			normal(w, c)
			c.Decision.Boot, c.Decision.Reason = pxe.BootPark, "six boots without arrival"
		}, but: func(_ *wire, c *Case) { c.Decision.Boot = pxe.BootImage }},
		{rule: "sent-to-disk", story: func(w *wire, c *Case) {
			normal(w, c)
			c.Decision.Boot, c.Decision.Reason = pxe.BootDisk, "no profile matches"
		}, but: func(_ *wire, c *Case) { c.Decision.Boot = pxe.BootImage }},
		{rule: "no-architecture", story: wasAsked(2, 4, []opt{class("PXEClient")}), but: wasAsked(2, 4, uefi), isInstead: true},
		{rule: "unknown-architecture", story: wasAsked(1, 4, []opt{class("PXEClient:Arch:00002"), raw(93, 0, 2)}), but: wasAsked(1, 4, uefi), isInstead: true},
	}
}

func silenceTales() []tale {
	isOn := func(_ *wire, c *Case) { c.PowerOnAt, c.WantsNetboot, c.Now = at(0), true, at(300) }
	return []tale{
		{rule: "no-packet", story: isOn, but: func(w *wire, _ *Case) { w.discover(20, uefi) }},
		{rule: "no-packet", story: func(_ *wire, c *Case) { c.Host = nil }, but: func(w *wire, _ *Case) { w.discover(20, uefi) }},
		{rule: "other-port", story: both(isOn, func(_ *wire, c *Case) {
			c.OtherPorts = []Port{{MAC: "52:54:00:01:02:04", LastAt: at(60)}}
		}), but: func(_ *wire, c *Case) { c.OtherPorts[0].LastAt = at(-60) }},
		{rule: "disk-first", story: both(isOn, func(w *wire, c *Case) { w.discover(60, system) }), but: func(w *wire, _ *Case) { w.discover(20, uefi) }},
		{rule: "six-no-url", story: func(w *wire, _ *Case) {
			w.solicit(0)
			w.six(.1, 17, udp(547, 546, []byte{2, 0, 0, 1, 0, 3, 0, 1, 'x'}))
		}, but: func(w *wire, _ *Case) { w.advertise(4.1) }},
		{rule: "only-ipv6", story: func(w *wire, _ *Case) { w.solicit(0); w.solicit(4) }, but: func(w *wire, _ *Case) { w.advertise(4.1) }},
		{rule: "six-refused", story: func(w *wire, _ *Case) {
			w.solicit(0)
			w.sixSays(.1, 2, 2, "no address is left")
		}, but: func(w *wire, _ *Case) { w.sixSays(4.1, 2, 0, "") }},
		{rule: "six-refused", story: func(w *wire, c *Case) { // in a REPLY, on the wire of another server
			w.solicit(0)
			w.sixSays(.1, 2, 0, "")
			w.sixRequest(.2)
			w.sixSays(.3, 7, 4, "it asks for an address of another network")
		}, but: func(w *wire, _ *Case) { w.sixSays(1, 7, 0, "") }},
		{rule: "six-not-taken", story: func(w *wire, _ *Case) {
			w.solicit(0)
			w.sixSays(.1, 2, 0, "")
			w.solicit(4)
		}, but: func(w *wire, _ *Case) { w.sixRequest(5) }},
		{rule: "no-subnet", story: func(w *wire, c *Case) { w.solicit(0); w.solicit(4); noted(4, c, lease.NoSubnet) }, but: func(w *wire, _ *Case) { w.sixSays(5, 2, 0, "") }},
		{rule: "unanswered", story: func(w *wire, c *Case) {
			w.solicit(0)
			w.solicit(4)
			noted(4, c, "the interface has no IPv6 address in the subnet")
		}, but: func(w *wire, _ *Case) { w.sixSays(5, 2, 0, "") }},
		{
			rule: "slow-port", story: func(w *wire, _ *Case) { w.discover(28, uefi, secs(28)); w.offer(28.1, us) },
			but: func(w *wire, _ *Case) { w.discover(0, uefi) },
		},
		{rule: "packets-dropped", story: both(wasAsked(2, 4, uefi), func(_ *wire, c *Case) {
			noted(0, c, "source-limit")
		}), but: func(_ *wire, c *Case) { c.Notes = nil; noted(0, c, "replaced") }},
		{rule: "not-supported", story: func(_ *wire, c *Case) { noted(0, c, pxe.NoInfiniBand) }, but: func(_ *wire, c *Case) { c.Notes = nil; noted(0, c, "hardware") }},
		{rule: "not-supported", story: func(w *wire, c *Case) { w.discover(0, bios); noted(4, c, pxe.NoBOOTP) }, but: func(w *wire, _ *Case) { w.address(5, bios) }},
		{rule: "packets-malformed", story: func(_ *wire, c *Case) { noted(0, c, "cookie"); noted(4, c, "cookie") }, but: func(_ *wire, c *Case) { c.Notes = nil; noted(0, c, "stale") }},
	}
}

func addressTales() []tale {
	asked := wasAsked(2, 4, uefi)
	return []tale{
		{rule: "no-subnet", story: because(lease.NoSubnet), but: because(lease.NoSubnet, relay(router)), isInstead: true},
		{rule: "relay-unknown", story: because(lease.NoSubnet, relay(router)), but: because(lease.NoSubnet), isInstead: true},
		{
			rule: "link-selection", story: because(lease.NoSubnet, relay(router), raw(82, 5, 4, 10, 9, 0, 0)),
			but: because(lease.NoSubnet, relay(router)), isInstead: true,
		},
		{rule: "link-selection", story: func(w *wire, c *Case) {
			c.Subnet.CIDR = netip.MustParsePrefix("10.9.0.0/16")
			for i := range 3 {
				w.discover(float64(i)*4, uefi, relay(router), raw(82, 5, 4, 10, 9, 0, 0))
				w.offer(float64(i)*4+.1, us, file(loader), relay(router))
			}
		}, but: func(w *wire, _ *Case) { w.request(9, uefi, to(us), relay(router)) }, rank: 2},
		{rule: "subnet-off", story: because(lease.IsOff), but: because(lease.NoSubnet), isInstead: true},
		{rule: "no-reservation", story: because(lease.NoReservation), but: because(lease.IsOff), isInstead: true},
		{rule: "no-free-address", story: because(lease.Exhausted), but: func(w *wire, _ *Case) { w.offer(8, us) }},
		{rule: "kept-for-known", story: because(lease.PortFull), but: because(lease.Exhausted), isInstead: true},
		{rule: "reserved-taken", story: because(lease.ReservedTaken), but: func(w *wire, _ *Case) { w.offer(8, us) }},
		{rule: "unanswered", story: asked, but: func(w *wire, _ *Case) { w.offer(4.1, us) }},
		{rule: "no-address-server", story: both(asked, func(w *wire, c *Case) {
			c.Subnet.Mode = inventory.ModeProxy
			w.offer(.1, us, without(), class("PXEClient"), file(loader))
		}), but: func(w *wire, _ *Case) { w.offer(4.1, other) }},
		{rule: "ack-missing", story: func(w *wire, _ *Case) {
			w.discover(0, uefi)
			w.offer(.1, us, file(loader))
			w.request(4, uefi, to(us))
			w.request(8, uefi, to(us))
		}, but: func(w *wire, _ *Case) { w.ack(8.1, us, file(loader)) }},
		{rule: "ack-missing", story: func(w *wire, c *Case) {
			c.Subnet.Mode = inventory.ModeProxy
			w.discover(0, uefi)
			w.offer(.1, us, without(), class("PXEClient"), file(loader))
			w.offer(.2, other)
			w.request(4, uefi, to(us))
			w.request(8, uefi, to(us))
		}, but: func(w *wire, _ *Case) { w.ack(8.1, us) }},
		{rule: "nak-repeats", story: func(w *wire, _ *Case) {
			for i := range 3 {
				w.request(float64(i), ipxe)
				w.answer(float64(i)+.1, 6, us, without())
			}
		}, but: func(w *wire, _ *Case) { w.ack(9, us, file("http://10.0.0.1/boot/ask")) }},
		{rule: "address-in-use", story: both(func(w *wire, _ *Case) { w.address(0, uefi, file(loader)); w.decline(1) }), but: normal, isInstead: true},
	}
}

func offerTales() []tale {
	proxy := []opt{without(), class("PXEClient"), file(loader), raw(43, 6, 1, 8, 255)}
	return []tale{
		{rule: "other-server-won", story: func(w *wire, _ *Case) {
			w.discover(0, uefi)
			w.offer(.1, us, file(loader))
			w.offer(.2, other)
			w.request(4, uefi, to(other))
		}, but: func(_ *wire, c *Case) { c.Subnet.Mode = inventory.ModeProxy }},
		{rule: "other-boot-server", story: func(w *wire, _ *Case) {
			w.discover(0, uefi)
			w.offer(.1, us, file(loader))
			w.offer(.2, other, without(), class("PXEClient"), raw(43, 6, 1, 8, 255), file("pxelinux.0"))
		}, but: func(w *wire, _ *Case) { w.get(5, "/boot/ask", "200 OK") }},
		{rule: "offer-without-control", story: func(w *wire, _ *Case) {
			w.address(0, uefi, file(loader), class("PXEClient"))
			w.ask4011(1, uefi, us)
			w.ask4011(2, uefi, us)
		}, but: func(w *wire, _ *Case) {
			w.address(0, uefi, file(loader), class("PXEClient"), raw(43, 6, 1, 8, 255))
			w.ask4011(1, uefi, us)
			w.ask4011(2, uefi, us)
		}, isInstead: true},
		{rule: "proxy-ignored", story: func(w *wire, c *Case) {
			c.Subnet.Mode = inventory.ModeProxy
			w.discover(0, uefi)
			w.offer(.1, us, proxy...)
			w.offer(.2, other)
			w.request(4, uefi, to(other))
			w.ack(4.1, other)
		}, but: func(w *wire, _ *Case) { w.ask4011(5, uefi, us) }},
		{rule: "pxe-port-closed", story: func(w *wire, c *Case) {
			c.Subnet.Mode = inventory.ModeProxy
			w.discover(0, uefi)
			w.offer(.1, us, proxy...)
			w.offer(.2, other)
			w.request(4, uefi, to(other))
			w.ask4011(5, uefi, us)
			w.unreachable(5.1, 4011)
			w.ask4011(6, uefi, us)
		}, but: func(w *wire, _ *Case) { w.tell4011(6.1, file(loader)) }},
		{rule: "proxy-without-server", story: func(w *wire, c *Case) {
			c.Subnet.Mode = inventory.ModeProxy
			w.discover(0, ipxe)
			w.offer(.1, other, without(), class("PXEClient"), raw(67, []byte("x.ipxe")...))
			for i := range 4 {
				w.ask4011(1+float64(i), ipxe, us)
				w.tell4011(1.1+float64(i), file("x.ipxe"))
			}
		}, but: func(w *wire, _ *Case) { w.get(9, "/x.ipxe", "200 OK") }},
		{rule: "proxy-wait-off", story: func(w *wire, c *Case) {
			c.Subnet.Mode = inventory.ModeProxy
			w.discover(0, ipxe)
			w.offer(.1, us, proxy...)
			w.offer(.2, other, raw(175, 176, 1, 1))
			w.request(1, ipxe, to(other))
		}, but: func(w *wire, _ *Case) { w.get(2, "/boot/ask", "200 OK") }},
		{rule: "httpclient-missing", story: func(w *wire, _ *Case) {
			w.discover(0, urlUEFI)
			w.offer(.1, other, raw(67, []byte("http://10.0.0.9/x.efi")...))
			w.discover(4, urlUEFI)
		}, but: func(w *wire, _ *Case) {
			w.offer(4.1, us, class("HTTPClient"), raw(67, []byte("http://10.0.0.1/boot/snponly.efi")...))
		}, rank: 3},
		{rule: "offer-too-long", story: func(w *wire, _ *Case) {
			long := make([]byte, 250)
			for i := range 3 {
				w.discover(float64(i)*4, bios)
				w.offer(float64(i)*4+.1, us, raw(43, long...), raw(119, long...), raw(121, long...))
			}
		}, but: func(w *wire, _ *Case) { w.request(9, bios, to(us)) }},
		{rule: "no-way-back", story: func(w *wire, _ *Case) {
			for i := range 3 {
				w.discover(float64(i)*4, uefi, relay(router))
				w.offer(float64(i)*4+.1, us, file(loader), relay(router))
			}
		}, but: func(w *wire, _ *Case) { w.request(9, uefi, to(us), relay(router)) }},
		{rule: "offer-lost", story: func(w *wire, _ *Case) {
			for i := range 3 {
				w.discover(float64(i)*4, uefi)
				w.offer(float64(i)*4+.1, us, file(loader))
			}
		}, but: func(w *wire, _ *Case) { w.request(9, uefi, to(us)) }},
		{rule: "forbidden", story: func(w *wire, _ *Case) {
			w.address(0, uefi, file(loader))
			w.read(1, 2000, loader)
			w.refused(1.1, 13, 69)
		}, but: func(w *wire, _ *Case) {
			w.address(0, uefi, file(loader))
			w.read(1, 2000, loader)
			w.refused(1.1, 3, 69)
		}, isInstead: true},
	}
}

func identityTales() []tale {
	return []tale{
		{rule: "two-ports", story: both(wasAsked(2, 4, uefi), func(_ *wire, c *Case) {
			c.OtherPorts = []Port{{MAC: "52:54:00:01:02:04", LastAt: at(2)}}
		}), but: func(_ *wire, c *Case) { c.OtherPorts[0].LastAt = at(-600) }, rank: 2},
		{rule: "shared-identity", story: both(wasAsked(1, 4, uefi), func(w *wire, c *Case) {
			w.offer(.1, us, file(loader))
			c.Issues = []inventory.Issue{{Type: inventory.IssueIdentityConflict, Cause: "r1-u01 and r1-u02 share a UUID", Hint: "look"}}
		}), but: func(_ *wire, c *Case) { c.Issues = nil }},
		{
			rule: "same-mac", story: func(w *wire, _ *Case) { w.discover(0, uefi, uuid(1)); w.discover(2, uefi, uuid(2)) },
			but: func(w *wire, _ *Case) { w.discover(0, uefi, uuid(1)); w.discover(2, uefi, uuid(1)) }, isInstead: true,
		},
		{rule: "same-xid", story: func(w *wire, c *Case) {
			wasAsked(2, 4, uefi)(w, c)
			w.offer(.1, us, file(loader))
			noted(.1, c, lease.Reason(trace.SameXid+"52:54:00:01:02:04"))
		}, but: func(_ *wire, c *Case) { c.Notes[0].At = at(-600) }, rank: 2},
	}
}
