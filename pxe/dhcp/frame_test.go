package dhcp

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFrameCarriesAPacketWithValidChecksums(t *testing.T) {
	src, dst := hardwareAddr{2, 0, 0, 0, 0, 1}, hardwareAddr{0x52, 0x54, 0, 0xaa, 0, 1}
	for _, size := range []int{300, 301, replySize} {
		payload := bytes.Repeat([]byte{0xff, 0x5a, 3}, size)[:size]
		f := appendFrame(nil, src, dst, netip.MustParseAddr("10.98.0.1"), netip.MustParseAddr("10.98.0.85"), payload)
		if len(f) != headers+size {
			t.Fatalf("frame of %d bytes for a payload of %d", len(f), size)
		}
		if got := hex.EncodeToString(f[:14]); got != "525400aa00010200000000010800" {
			t.Errorf("Ethernet header %s", got)
		}
		ip, udp := f[14:34], f[34:]
		if fold(sum(0, ip)) != 0xffff {
			t.Error("IP checksum is wrong")
		}
		if fold(sum(17+uint32(len(udp)), append(bytes.Clone(ip[12:20]), udp...))) != 0xffff {
			t.Error("UDP checksum is wrong")
		}
		if got := hex.EncodeToString(ip[12:]) + hex.EncodeToString(udp[:4]); got != "0a6200010a62005500430044" {
			t.Errorf("addresses and ports %s", got)
		}
		if !bytes.Equal(udp[8:], payload) {
			t.Error("the payload changed")
		}
	}
}

func TestARP(t *testing.T) {
	ask := appendARPProbe(nil, hardwareAddr{2, 0, 0, 0, 0, 1}, netip.MustParseAddr("10.0.0.9"))
	want := "ffffffffffff0200000000010806" + "0001080006040001" + "020000000001" + "00000000" + "000000000000" + "0a000009"
	if diff := cmp.Diff(want, hex.EncodeToString(ask)); diff != "" {
		t.Error(diff)
	}
	if _, _, ok := parseARP(ask); ok {
		t.Error("a probe claims no address")
	}
	reply, _ := hex.DecodeString("020000000001525400aa00090806" + "0001080006040002" + "525400aa0009" + "0a000009" + "020000000001" + "0a000001")
	who, addr, ok := parseARP(reply)
	if !ok || who.inventory() != "52:54:00:aa:00:09" || addr.String() != "10.0.0.9" {
		t.Errorf("%s %s %v", who.inventory(), addr, ok)
	}
	for n := range reply {
		if _, _, ok := parseARP(reply[:n]); ok {
			t.Errorf("%d bytes pass as ARP", n)
		}
	}
}
