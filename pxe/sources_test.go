package pxe

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

func TestHostsSpreadOverInstances(t *testing.T) {
	ours := netip.MustParseAddr("10.0.0.1")
	others := []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3"), netip.MustParseAddr("fd00::2"), ours}
	first := map[netip.Addr]int{}
	moved := 0
	for n := range 3000 {
		host := fmt.Sprintf("host-%d", n)
		all := Sources(host, ours, others)
		if len(all) != 3 || !slices.Contains(all, ours) {
			t.Fatalf("%s: %v", host, all)
		}
		first[all[0]]++
		// Another instance answers, and names the same order.
		if again := Sources(host, others[1], []netip.Addr{others[0], ours}); !slices.Equal(again, all) {
			t.Fatalf("%s: %v, then %v", host, all, again)
		}
		if less := Sources(host, ours, others[:1]); less[0] != all[0] {
			moved++
			if all[0] != others[1] {
				t.Fatalf("%s moves from %s to %s, and both are there", host, all[0], less[0])
			}
		}
	}
	for a, n := range first {
		if n < 900 || n > 1100 {
			t.Errorf("%d of 3000 hosts begin with %s", n, a)
		}
	}
	if moved < 900 {
		t.Errorf("%d hosts move from the instance that is gone", moved)
	}
	many := others[:2:2]
	for n := range 20 {
		many = append(many, netip.AddrFrom4([4]byte{10, 0, 1, byte(n)}))
	}
	for n := range 100 {
		if all := Sources(fmt.Sprint(n), ours, many); len(all) != maxSources || !slices.Contains(all, ours) {
			t.Errorf("of many: %v", all)
		}
	}
}

func TestBasesOfOtherInstances(t *testing.T) {
	two := []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")}
	for base, want := range map[string][]string{
		"http://10.0.0.1":         {"http://10.0.0.1", "http://10.0.0.2"},
		"http://10.0.0.1:8081":    {"http://10.0.0.1:8081", "http://10.0.0.2:8081"},
		"http://[fd00::1]:8081":   {"http://[fd00::1]:8081", "http://[fd00::2]:8081"},
		"https://10.0.0.1:8443":   {"https://10.0.0.1:8443"},
		"http://boot.example.org": {"http://boot.example.org"},
	} {
		got := Bases("host", base, two)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", base, got)
		}
	}
	if got := Bases("host", "http://10.0.0.1", nil); !slices.Equal(got, []string{"http://10.0.0.1"}) {
		t.Errorf("alone: %v", got)
	}
}
