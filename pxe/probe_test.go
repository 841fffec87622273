package pxe

import (
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestJudgeProbe(t *testing.T) {
	us, them, third := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	a := netip.MustParseAddr("10.0.0.50")
	const base = "http://10.0.0.1"
	skip := []byte{6, 1, 8, 0xff}
	for _, c := range []struct {
		name   string
		mode   inventory.SubnetMode
		kind   string
		offers []ProbeOffer
		want   string
		about  string // in detail and hint
	}{
		{"off, nobody", inventory.ModeOff, "uefi", nil, LeadsNowhere, "nobody gives it an address"},
		{"off, an address only", inventory.ModeOff, "uefi", []ProbeOffer{{Server: them, Address: a}}, LeadsNowhere, "names no boot file slipway subnet snippet"},
		{"off, sent here", inventory.ModeOff, "uefi", []ProbeOffer{{Server: them, Address: a, Next: us, File: "snponly.efi"}}, LeadsToUs, "10.0.0.2 sends it here"},
		{"off, BIOS sent here", inventory.ModeOff, "bios", []ProbeOffer{{Server: them, Address: a, Next: us, File: "undionly.kpxe"}}, LeadsToUs, ""},
		{"off, sent elsewhere", inventory.ModeOff, "uefi", []ProbeOffer{{Server: them, Address: a, Next: third, File: "snponly.efi"}}, LeadsAway, "10.0.0.3 we are 10.0.0.1"},
		{"off, no next-server", inventory.ModeOff, "uefi", []ProbeOffer{{Server: them, Address: a, File: "snponly.efi"}}, LeadsAway, "no next-server"},
		{"off, another file", inventory.ModeOff, "uefi", []ProbeOffer{{Server: them, Address: a, Next: us, File: "other.0"}}, LeadsAway, "none of ours"},
		{"off, 60 without 43", inventory.ModeOff, "uefi", []ProbeOffer{{Server: them, Address: a, Next: us, File: "snponly.efi", Class: "PXEClient"}}, LeadsAway, "without 43.6=8"},
		{"off, 60 with 43", inventory.ModeOff, "uefi", []ProbeOffer{{Server: them, Address: a, Next: us, File: "snponly.efi", Class: "PXEClient", PXE: skip}}, LeadsToUs, ""},
		{"off, HTTP", inventory.ModeOff, "uefi-http", []ProbeOffer{{Server: them, Address: a, File: base + "/boot/snponly.efi", Class: "HTTPClient"}}, LeadsToUs, ""},
		{"off, HTTP without 60", inventory.ModeOff, "uefi-http", []ProbeOffer{{Server: them, Address: a, File: base + "/boot/snponly.efi"}}, LeadsAway, "option 60=HTTPClient"},
		{"off, iPXE", inventory.ModeOff, "ipxe", []ProbeOffer{{Server: them, Address: a, File: base + "/boot/ask"}}, LeadsToUs, ""},
		{"off, iPXE gets its loader again", inventory.ModeOff, "ipxe", []ProbeOffer{{Server: them, Address: a, Next: us, File: "snponly.efi"}}, LeadsAway, "loads itself for ever"},
		{"off, iPXE elsewhere", inventory.ModeOff, "ipxe", []ProbeOffer{{Server: them, Address: a, File: "http://10.0.0.11/boot/ask"}}, LeadsAway, "http://10.0.0.11"},
		{"off, two servers and one is wrong", inventory.ModeOff, "uefi", []ProbeOffer{{Server: them, Address: a, Next: us, File: "snponly.efi"}, {Server: third, Address: a}}, LeadsNowhere, "10.0.0.3 gives an address"},
		{"proxy, nobody", inventory.ModeProxy, "uefi", nil, LeadsNowhere, "in mode proxy we do not"},
		{"proxy, an address", inventory.ModeProxy, "uefi", []ProbeOffer{{Server: them, Address: a}}, LeadsToUs, "we what to boot"},
		{"proxy, iPXE told to take no proxy", inventory.ModeProxy, "ipxe", []ProbeOffer{{Server: them, Address: a, NoProxyWait: true}}, LeadsAway, "175"},
		{"proxy, another proxy with 43", inventory.ModeProxy, "uefi", []ProbeOffer{{Server: them, Address: a}, {Server: third, Next: third, File: "x.efi", Class: "PXEClient", PXE: skip}}, LeadsAway, "10.0.0.3 names a boot file"},
		{"off, an address, and itself as next-server", inventory.ModeOff, "uefi", []ProbeOffer{{Server: them, Address: a, Next: them}}, LeadsNowhere, "names no boot file"},
		{"full, alone", inventory.ModeFull, "uefi", nil, LeadsToUs, ""},
		{"full, a rival", inventory.ModeFull, "uefi", []ProbeOffer{{Server: them, Address: a}}, LeadsAway, "10.0.0.2 gives addresses here too --mode proxy"},
		{"full, a rival that boots", inventory.ModeFull, "bios", []ProbeOffer{{Server: them, File: "x", Class: "PXEClient"}}, LeadsAway, "names a boot file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var offers []ProbeOffer
			for _, o := range c.offers {
				o.Kind = c.kind
				offers = append(offers, o)
			}
			p := ProbeSubject{Subnet: inventory.Subnet{Name: "rack", Mode: c.mode}, Us: []netip.Addr{us}, Base: base}
			for _, l := range JudgeProbe(p, offers) {
				if l.Kind != c.kind {
					continue
				}
				if l.LeadsTo != c.want {
					t.Errorf("leads to %s, want %s: %s", l.LeadsTo, c.want, l.Detail)
				}
				for _, word := range strings.Fields(c.about) {
					if !strings.Contains(l.Detail+" "+l.Hint, word) {
						t.Errorf("%q says nothing of %s", l.Detail+" "+l.Hint, word)
					}
				}
			}
		})
	}
}

// A server that was asked alone and says nothing is said to say nothing, whatever the network's mode.
func TestAServerThatIsAskedAloneAndSilentIsNamed(t *testing.T) {
	for _, mode := range []inventory.SubnetMode{inventory.ModeFull, inventory.ModeProxy, inventory.ModeOff} {
		p := ProbeSubject{Subnet: inventory.Subnet{Name: "far", Mode: mode, CIDR: netip.MustParsePrefix("10.2.0.0/24")}, Asked: netip.MustParseAddr("10.0.0.9")}
		for _, l := range JudgeProbe(p, nil) {
			if l.LeadsTo != LeadsNowhere || !strings.Contains(l.Detail, "10.0.0.9 does not answer") || !strings.Contains(l.Hint, "10.2.0.0/24") {
				t.Errorf("%s: %+v", mode, l)
			}
		}
	}
}
