package pxe

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func unhex(s string) []byte { b, _ := hex.DecodeString(s); return b }

func TestClassify6(t *testing.T) {
	ll := netip.MustParseAddr("fe80::5054:ff:fe12:3456") // of 52:54:00:12:34:56
	private := netip.MustParseAddr("fe80::1c2a:9bff:1:2")
	uuid := "0004" + "33221100554477668899aabbccddeeff"
	cases := []struct {
		name string
		in   Packet6
		want Client
	}{
		{
			"EDK2 PXE: DUID-UUID in SMBIOS order",
			Packet6{DUID: unhex(uuid), Peer: ll, Class16: []string{"PXEClient:Arch:00007:UNDI:003000"}, Arch61: []uint16{7}},
			Client{Stage: StageFirmware, MAC: "52:54:00:12:34:56", Arch: inventory.X8664, Firmware: inventory.UEFI, ArchCode: Arch93(7), UUID: "00112233-4455-6677-8899-aabbccddeeff", ClientID: uuid, Class: "PXEClient:Arch:00007:UNDI:003000"},
		},
		{
			"EDK2 HTTP",
			Packet6{Peer: ll, Class16: []string{"HTTPClient:Arch:00016:UNDI:003000"}, Arch61: []uint16{16}},
			Client{Stage: StageFirmware, MAC: "52:54:00:12:34:56", Arch: inventory.X8664, Firmware: inventory.UEFIHTTP, ArchCode: Arch93(16), Class: "HTTPClient:Arch:00016:UNDI:003000"},
		},
		{
			"iPXE: network order",
			Packet6{DUID: unhex(uuid), Peer: ll, User15: []string{"iPXE"}, Arch61: []uint16{7}, Class16: []string{"PXEClient:Arch:00007:UNDI:003010"}},
			Client{Stage: StageIPXE, MAC: "52:54:00:12:34:56", Arch: inventory.X8664, Firmware: inventory.UEFI, ArchCode: Arch93(7), UUID: "33221100-5544-7766-8899-aabbccddeeff", ClientID: uuid, Class: "PXEClient:Arch:00007:UNDI:003010", UserClass: "iPXE", IPXE: IPXE{HasHTTP: true}},
		},
		{
			"OS: DUID-LLT, an address that tells nothing",
			Packet6{DUID: unhex("000100012a2b2c2d525400abcdef"), Peer: private},
			Client{Stage: StageOS, MAC: "52:54:00:ab:cd:ef", ClientID: "000100012a2b2c2d525400abcdef"},
		},
		{
			"DUID-LL",
			Packet6{DUID: unhex("00030001525400abcdef"), Peer: private},
			Client{Stage: StageOS, MAC: "52:54:00:ab:cd:ef", ClientID: "00030001525400abcdef"},
		},
		{
			"the port before the DUID",
			Packet6{DUID: unhex("00030001525400abcdef"), Peer: ll},
			Client{Stage: StageOS, MAC: "52:54:00:12:34:56", ClientID: "00030001525400abcdef"},
		},
		{
			"what the relay saw before both",
			Packet6{DUID: unhex("00030001525400abcdef"), Peer: ll, Link79: unhex("0001525400777777")},
			Client{Stage: StageOS, MAC: "52:54:00:77:77:77", ClientID: "00030001525400abcdef"},
		},
		{"DUID-EN and nothing else", Packet6{DUID: unhex("00020000ab1101020304"), Peer: private}, Client{Stage: StageOS, ClientID: "00020000ab1101020304"}},
		{"InfiniBand in 79, a group's MAC in the DUID", Packet6{DUID: unhex("00030001ff5400abcdef"), Link79: unhex("0020525400777777")}, Client{Stage: StageOS, ClientID: "00030001ff5400abcdef"}},
		{"nothing at all", Packet6{}, Client{Stage: StageOS}},
	}
	for _, c := range cases {
		if got := Classify6(c.in); got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func TestBootURL(t *testing.T) {
	us := netip.MustParseAddr("2001:db8::1")
	for _, c := range []struct {
		in   Reply
		want string
	}{
		{Reply{}, ""},
		{Reply{Next: us, File: "snponly.efi"}, "tftp://[2001:db8::1]/snponly.efi"},
		{Reply{Next: us.WithZone("eth0"), File: "a b"}, "tftp://[2001:db8::1]/a%20b"},
		{Reply{Next: us, File: "http://[2001:db8::1]/boot/x"}, "http://[2001:db8::1]/boot/x"},
		{Reply{Next: netip.MustParseAddr("10.0.0.1"), File: "snponly.efi"}, ""},
	} {
		if got := BootURL(c.in); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.in, got, c.want)
		}
	}
}

// TestAskScriptOverIPv6 holds that a machine which came by IPv6 is not made to ask for an IPv4 address: iPXE drops the
// IPv6 one for that, and then has no way to us.
func TestAskScriptOverIPv6(t *testing.T) {
	text := string(AskScript("http://[2001:db8::1]", "s"))
	if strings.Contains(text, "-c dhcp") || !strings.Contains(text, "isset ${ip6} || ifconf ||") || !strings.Contains(text, "http://[2001:db8::1]/boot/s/script?") {
		t.Error(text)
	}
}
