package tftp

import (
	"bytes"
	"net/netip"
	"testing"
	"time"
)

func TestWhatAShimAsksForIsItsSecondStage(t *testing.T) {
	var s shims
	a, b := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	s.sent(a, "ubuntu/shimx64.efi", now)
	for _, c := range []struct {
		who  netip.Addr
		name string
		at   time.Duration
		want string
	}{
		{a, "\x01\x00\x00UEFI PXEv4", time.Second, "ubuntu/grubx64.efi"},
		{a, "ubuntu/Onboard NIC", time.Second, "ubuntu/grubx64.efi"},
		{a, "ubuntu/grubx64.efi", time.Second, ""},     // it asks for the right name
		{a, "ubuntu/revocations.efi", time.Second, ""}, // and looks for this one first
		{a, "grub.cfg", time.Second, ""},               // which is made for it
		{b, "Onboard NIC", time.Second, ""},            // another machine
		{a, "Onboard NIC", shimFor + time.Second, ""},  // long after
	} {
		if got := s.second(c.who, c.name, now.Add(c.at)); got != c.want {
			t.Errorf("%s asks for %q after %s: %q, want %q", c.who, c.name, c.at, got, c.want)
		}
	}
	s.sent(a, "ubuntu/grubx64.efi", now)
	if got := s.second(a, "Onboard NIC", now); got != "" {
		t.Errorf("a machine that has its second stage gets %q", got)
	}
	for i := range 2 * maxShims {
		s.sent(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), "shimx64.efi", now)
	}
	if len(s.at) > maxShims {
		t.Errorf("%d machines are remembered", len(s.at))
	}
}

// TestAGarbledRequestOfAShimGetsItsSecondStage asks as shim 15.8 does on some Dell and Wyse machines: by bytes out of the boot
// entry.
func TestAGarbledRequestOfAShimGetsItsSecondStage(t *testing.T) {
	_, addr, b := start(t, func(c *Config) {
		c.Loaders = loaders{"shimx64.efi": fileOf(3000), "grubx64.efi": fileOf(5000)}
	})
	const garbled = "\x04\x14\x01Onboard NIC (IPV4)"
	if _, err := fetch(addr, garbled, nil); err == nil {
		t.Error("a stranger is given a file by a name that there is not")
	}
	b.wait(t)
	for _, name := range []string{"shimx64.efi", garbled} {
		got, err := fetch(addr, name, nil)
		e := b.wait(t)
		if err != nil || e.Err != nil {
			t.Fatalf("%q: %v, %v", name, err, e.Err)
		}
		if name == garbled && (!bytes.Equal(got, fileOf(5000)) || e.Name != "grubx64.efi") {
			t.Errorf("it gets %d bytes, told as %q", len(got), e.Name)
		}
	}
	if _, err := fetch(addr, garbled, nil); err == nil {
		t.Error("it is given the second stage for ever")
	}
}
