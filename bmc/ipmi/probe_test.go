package ipmi

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

func TestProbeFindsAController(t *testing.T) {
	b := newBench(t)
	f, err := Probe(t.Context(), netip.MustParseAddrPort(b.addr), time.Second)
	if err != nil || f.Version != "2.0" || f.Address != b.addr {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestProbeFindsNobody(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, addr := range map[string]string{"nothing there": "127.0.0.1:1", "something silent": silent.LocalAddr().String()} {
		if _, err := Probe(t.Context(), netip.MustParseAddrPort(addr), 10*time.Millisecond); bmc.KindOf(err) != inventory.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnswersToProbes(t *testing.T) {
	answer := func(cmd, seq byte, data ...byte) []byte {
		m := append([]byte{addrConsole, (netApp | 1) << 2, 0, addrBMC, seq << 2, cmd}, data...)
		m[2] = checksum(m[:2])
		return bare(append(m, checksum(m[3:])))
	}
	pong := append([]byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x40, 0, 0, 16}, make([]byte, 16)...)
	pong[20] = 0x81
	guid := bytes.Repeat([]byte{0x11}, 16)
	for name, c := range map[string]struct {
		b    []byte
		want Answer
		ok   bool
	}{
		"a pong of IPMI":             {pong, Answer{IsPong: true, IsIPMI: true}, true},
		"a pong cut off":             {pong[:27], Answer{}, false},
		"capabilities of IPMI 2.0":   {answer(cmdCaps, seqCaps, 0, 1, 0x84, 0x04, 0x03, 0x7c, 0x2a, 0, 0), Answer{IsIPMI: true, HasCaps: true, HasV2: true, Vendor: ianaSupermicro}, true},
		"capabilities of IPMI 1.5":   {answer(cmdCaps, seqCaps, 0, 1, 0x04, 0x04, 0, 0, 0, 0, 0), Answer{IsIPMI: true, HasCaps: true}, true},
		"a login without a name":     {answer(cmdCaps, seqCaps, 0, 1, 0x84, 0x06, 0x02, 0, 0, 0, 0), Answer{IsIPMI: true, HasCaps: true, HasV2: true, IsOpen: true}, true},
		"a refusal":                  {answer(cmdCaps, seqCaps, 0xcc), Answer{IsIPMI: true, HasCaps: true}, true},
		"a GUID":                     {answer(cmdSystemGUID, seqGUID, append([]byte{0}, guid...)...), Answer{IsIPMI: true, HasGUID: true, GUID: [16]byte(guid)}, true},
		"a GUID cut off":             {answer(cmdSystemGUID, seqGUID, 0, 1, 2), Answer{IsIPMI: true, HasGUID: true}, true},
		"an answer nobody asked for": {answer(cmdDeviceID, seqGUID, 0, 1, 2), Answer{}, false},
		"our own question":           {questions()[1], Answer{}, false},
		"something else":             {[]byte("SSH-2.0-OpenSSH_9.2p1"), Answer{}, false},
		"nothing":                    {nil, Answer{}, false},
	} {
		if got, ok := ParseAnswer(c.b); ok != c.ok || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, q := range questions() {
		f.Add(q)
	}
	f.Add(append([]byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x40, 0, 0, 16}, make([]byte, 16)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := ParseAnswer(b)
		if !ok && a != (Answer{}) {
			t.Errorf("%+v beside no answer", a)
		}
		if ok && found(netip.MustParseAddrPort("10.0.0.5:623"), a).Address != "10.0.0.5" {
			t.Error("an answer changed the address")
		}
	})
}
