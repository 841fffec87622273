package dhcp

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// FuzzHandle puts any bytes through the server: it never panics, and what it answers is well formed. wire.keep parses
// every reply; the rest is checked here.
func FuzzHandle(f *testing.F) {
	names, err := filepath.Glob("testdata/*.hex")
	if err != nil || len(names) == 0 {
		f.Fatal("no captured packets", err)
	}
	for _, name := range names {
		f.Add(captured(f, strings.TrimSuffix(filepath.Base(name), ".hex")), byte(0))
	}
	f.Add(build(discover, 1, giaddr("10.5.0.1"), opt(82, opt(5, 10, 5, 0, 0)...), opt(57, 2, 64)), byte(1))
	f.Add(build(discover, 1, nil, opt(optOverload, 3)), byte(0))
	f.Add(build(inform, 1, ciaddr(ip("10.98.0.50"))), byte(2))
	f.Add(build(release, 1, ciaddr(ip("10.98.0.85"))), byte(1))
	f.Add(build(decline, 1, nil, opt(50, 10, 98, 0, 85)), byte(0))
	f.Fuzz(func(t *testing.T, b []byte, how byte) {
		if k, packet, reason := normalise(room(b)); reason == dropNone {
			judge(t, packet, queryOf(k, packet, arrival{}))
		} else {
			r := newReasons(&Config{Unanswered: func(pxe.Unanswered) {}, Knows: func([6]byte) bool { return true }})
			r.refused(b, &port{}, reason, time.Time{})
		}
		d := newDesk(t, withReservation(inventory.Reservation{Address: ip("10.98.0.20"), Subnet: "rack1", UUID: "4c4c4544-0042-3510-8054-b7c04f333232"}))
		if how&4 != 0 {
			d.cfg.ProbeFor = time.Second
		}
		to := []string{"", "10.98.0.1", "pxe"}[how&3%3]
		for range 2 { // the second time the server knows the machine
			for _, r := range d.ask(b, to) {
				checkReply(t, b, r)
			}
		}
		if len(d.store.leases) > 1 {
			t.Fatalf("one packet left %d leases", len(d.store.leases))
		}
	})
}

// checkReply checks what must hold for every reply, whatever the question was.
func checkReply(t *testing.T, asked []byte, r reply) {
	if len(r.b) < minReply || len(r.b) > replySize {
		t.Fatalf("a reply of %d bytes", len(r.b))
	}
	if r.b[0] != 2 || r.b[1] != 1 || r.b[2] != 6 || r.b[offHops] != 0 {
		t.Fatalf("header %x", r.b[:4])
	}
	if !bytes.Equal(r.b[4:8], asked[4:8]) || !bytes.Equal(r.b[offGiaddr:offSname], asked[offGiaddr:offSname]) {
		t.Fatal("xid, giaddr or chaddr differ from the question's")
	}
	codes := order(r.b)
	if len(codes) < 2 || codes[0] != 53 || codes[1] != 54 {
		t.Fatalf("options begin with %v", codes)
	}
	k := kind(r.m.MessageType())
	if k != offer && k != ack && k != nak {
		t.Fatalf("a reply of type %d", k)
	}
	if has := r.m.Options[51] != nil; has != !r.m.YourIPAddr.IsUnspecified() {
		t.Fatal("an address without a time, or a time without an address")
	}
}
