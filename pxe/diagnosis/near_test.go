package diagnosis

import (
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/pxe/trace"
)

// TestNearMisses tells stories in which all of a rule's conditions hold but one.
func TestNearMisses(t *testing.T) {
	url := raw(67, []byte("http://10.0.0.9/x.efi")...)
	plain := func(w *wire, _ *Case) {
		w.discover(0, urlUEFI)
		w.offer(.1, other, url)
		w.discover(4, urlUEFI)
	}
	asks4011 := func(n int, who []opt, opts ...opt) func(*wire, *Case) {
		return func(w *wire, c *Case) {
			c.Subnet.Mode = inventory.ModeProxy
			w.discover(0, who)
			if opts != nil {
				w.offer(.1, other, opts...)
			}
			for i := range n {
				w.ask4011(1+float64(i), who, us)
				w.tell4011(1.1+float64(i), file("x.ipxe"))
			}
		}
	}
	script := raw(67, []byte("x.ipxe")...)
	begun := func(w *wire, _ *Case) {
		w.address(0, uefi, file(loader))
		w.read(1, 2000, loader, "blksize", "1468")
		w.tftp(1.1, false, 2000, 6, 0, "blksize\x001468\x00")
		w.tftp(1.2, true, 2000, 4, 0, "")
	}
	repeats := func(w *wire, size int) {
		for i := range 4 {
			w.tftp(1.3+float64(i), false, 2000, 3, 1, strings.Repeat("x", size))
		}
	}
	polls := func(size int) func(*wire, *Case) { // the answer to a poll is sent again and again
		return func(w *wire, _ *Case) {
			w.get(10, "/boot/0123/k/agent/task?version=1", "")
			for i := range 4 {
				w.tcp(11+float64(i), false, ackFlag, "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n"+strings.Repeat("x", size))
			}
		}
	}
	image := func(w *wire, c *Case) { normal(w, c); decided(4.3, c, pxe.BootImage); c.Now = at(400) }
	kernel := func(_ *wire, c *Case) { sent(6, c, "kernel") }
	iPXE := func(w *wire, c *Case) {
		w.address(0, uefi, file(loader))
		w.read(1, 2000, loader)
		c.event(1.5, inventory.EventLoaderSent, loader+" over tftp")
		w.address(4, ipxe, file(loader))
	}
	for _, x := range []struct {
		rule, why string
		story     func(w *wire, c *Case)
	}{
		{"httpclient-missing", "it fetches it all the same", both(plain, func(w *wire, _ *Case) { w.tcp(5, true, ackFlag, "GET /x.efi HTTP/1.1\r\n\r\n") })},
		{"httpclient-missing", "it connects all the same", both(plain, func(w *wire, _ *Case) { w.tcp(5, true, syn, "") })},
		{"httpclient-missing", "no offer names a file", func(w *wire, _ *Case) { w.discover(0, urlUEFI); w.offer(.1, other) }},
		{"httpclient-missing", "it is no HTTP boot client", func(w *wire, _ *Case) { w.discover(0, uefi); w.offer(.1, other, url) }},

		{"http-large-lost", "its power went while a poll was open", both(normal, polls(1400))},
		{"http-large-lost", "what is repeated is short", both(normal, polls(200), func(w *wire, _ *Case) { w.request(30, ipxe, to(us)) })},
		{"http-large-lost", "it refuses what is repeated, so that came", both(normal, polls(1400), func(w *wire, _ *Case) { w.tcp(20, true, rst, "") })},
		{"tftp-large-lost", "its power went while the loader was sent", both(begun, func(w *wire, _ *Case) { repeats(w, 1468) })},
		{"tftp-large-lost", "the blocks are small", both(begun, func(w *wire, _ *Case) { repeats(w, 512); w.tftp(9, true, 2000, 4, 0, "") })},
		{"tftp-answers-lost", "its power went after it had asked", func(w *wire, _ *Case) {
			w.address(0, uefi, file(loader))
			w.read(1, 2000, loader, "blksize", "1468")
			for i := range 4 {
				w.tftp(1.2+float64(i), false, 2000, 6, 0, "blksize\x001468\x00")
			}
		}},
		{"loader-refused", "what it fetched last was a task of our agent", both(normal, func(w *wire, _ *Case) {
			w.get(20, "/boot/0123/k/agent/task?version=1", "200 OK")
			w.discover(60, uefi)
		})},
		{"http-busy", "our agent is told to ask again", both(normal, func(w *wire, _ *Case) {
			for i := range 6 {
				w.get(20+float64(i), "/boot/0123/k/agent/task?version=1", "503 Service Unavailable")
			}
		})},
		{"no-boot-file", "it is to boot its own disk", func(w *wire, c *Case) {
			w.address(0, bios)
			c.Decision.Boot = pxe.BootDisk
		}},
		{"other-next-server", "it is an installer that fetches packages", both(normal, func(w *wire, c *Case) {
			w.request(40, system, to(us))
			w.tcpTo(60, other, true, syn, "")
		})},
		{"disk-exit-fails", "its disk ran each time", func(w *wire, c *Case) {
			for i := range 4 {
				w.address(float64(i)*120, bios, file("undionly.kpxe"))
				w.read(float64(i)*120+1, 2000, "undionly.kpxe")
				w.request(float64(i)*120+60, system, to(us))
			}
			c.Now, c.Decision.Boot = at(480), pxe.BootDisk
		}},
		{"proxy-without-server", "the offer is no proxy's", asks4011(4, ipxe, without(), script)},
		{"proxy-without-server", "the offer has an address", asks4011(4, ipxe, class("PXEClient"), script)},
		{"proxy-without-server", "the offer names a server", asks4011(4, ipxe, without(), class("PXEClient"), file("x.ipxe"))},
		{"proxy-without-server", "the offer has a menu", asks4011(4, ipxe, without(), class("PXEClient"), script, raw(43, 9, 1, 0))},
		{"proxy-without-server", "there is no offer", asks4011(4, ipxe)},
		{"proxy-without-server", "it asks once", asks4011(1, ipxe, without(), class("PXEClient"), script)},
		{"proxy-without-server", "it is firmware", asks4011(4, uefi, without(), class("PXEClient"), script)},

		{"no-initrd", "nothing was given to it", both(normal, kernel, func(_ *wire, c *Case) {
			decided(4.3, c, pxe.BootImage)
			c.Events = nil
			sent(6, c, "kernel")
			c.Now = at(400)
		})},
		{"no-initrd", "the next file broke off", both(image, kernel, func(_ *wire, c *Case) { c.event(9, inventory.EventArtefactFailed, "initrd stopped") })},
		{"no-initrd", "what it boots has reported", both(image, kernel, func(_ *wire, c *Case) { c.event(30, inventory.EventReported, "up") })},
		{"no-initrd", "the kernel came just now", both(image, func(_ *wire, c *Case) { sent(350, c, "kernel") })},

		{"loader-loop", "iPXE looks for its script", both(iPXE, func(w *wire, _ *Case) { w.read(5, 2002, pxe.AutoexecName) })},
		{"loader-loop", "it fetches something else", both(iPXE, func(w *wire, _ *Case) { w.read(5, 2002, "linux") })},

		{"no-reservation", "it has an address by now", both(because(lease.NoReservation), func(w *wire, _ *Case) { w.ack(8, us) })},
		{"kept-for-known", "it has an address by now", both(because(lease.KeptForKnown), func(w *wire, _ *Case) { w.ack(8, us) })},

		{"unanswered", "it asked just now", both(wasAsked(1, 4, uefi), func(_ *wire, c *Case) { c.Now = at(2) })},
		{"unanswered", "it has an address by now", both(wasAsked(2, 4, uefi), func(w *wire, _ *Case) { w.ack(8, us) })},
		{"unanswered", "it solicits, and nobody says why", func(w *wire, _ *Case) { w.solicit(0); w.solicit(4) }},

		{"same-mac", "one packet says no UUID", func(w *wire, _ *Case) { w.discover(0, uefi, uuid(1)); w.discover(2, uefi) }},
		{"same-mac", "that was long ago", func(w *wire, c *Case) {
			w.discover(0, uefi, uuid(1))
			w.discover(3600, uefi, uuid(2))
			c.Now = at(3660)
		}},
		{"same-mac", "a server answers with another", func(w *wire, _ *Case) { w.discover(0, uefi, uuid(1)); w.offer(.1, us, uuid(2)) }},
	} {
		t.Run(x.rule+", but "+x.why, func(t *testing.T) {
			if causes := Explain(tell(t, x.story)); len(causes) > 0 {
				if _, ok := find(causes, x.rule); ok {
					t.Errorf("found: %s", codes(causes))
				}
			}
		})
	}
}

func TestTheSameTransactionIDIsNoReasonForSilence(t *testing.T) {
	c, ok := find(Explain(tell(t, both(wasAsked(2, 4, uefi), func(_ *wire, c *Case) {
		noted(.1, c, lease.Reason(trace.SameXid+"52:54:00:01:02:04"))
	}))), "unanswered")
	if !ok || c.Weight != possible || strings.Contains(c.Sentence, trace.SameXid) {
		t.Errorf("%+v", c)
	}
}

func TestWhatIsSaidOfARefusalOfDHCPv6(t *testing.T) {
	for _, x := range []struct {
		name     string
		isOurs   bool
		status   byte
		text     string
		sentence string
		hint     string
		weight   int
	}{
		{"ours is full", true, 2, "no address is left", "our DHCPv6 refuses it an address: NoAddrsAvail, no address is left", "slipway range add", certain},
		{"another's is full", false, 2, "", "the DHCPv6 server fe80::1 refuses it an address: NoAddrsAvail", "ranges of that server", strong},
		{"another network", true, 4, "", "our DHCPv6 refuses it an address: NotOnLink", "VLAN", certain},
		{"another network, another server", false, 4, "", "the DHCPv6 server fe80::1 refuses it an address: NotOnLink", "VLAN", strong},
		{"a status that nobody knows", true, 77, "", "our DHCPv6 refuses it an address: status 77", "this server's log", certain},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, ok := find(Explain(tell(t, func(w *wire, c *Case) {
				if x.isOurs {
					c.Ours = append(c.Ours, netip.MustParseAddr("fe80::1"))
				}
				w.solicit(0)
				w.sixSays(.1, 2, x.status, x.text)
			})), "six-refused")
			if !ok || c.Sentence != x.sentence || !strings.Contains(c.Hint, x.hint) || c.Weight != x.weight {
				t.Errorf("%+v, want %q", c, x.sentence)
			}
		})
	}
}
