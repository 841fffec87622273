package dhcp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// captured reads a packet that real firmware sent, from testdata; it has room behind it as a receive buffer has.
func captured(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".hex")
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return room(b)
}

// room copies a packet into a buffer of the size that packets are received in.
func room(b []byte) []byte {
	return append(make([]byte, 0, len(b)+spareSize), b...)
}

// opt is one option of a packet under construction.
func opt(code byte, value ...byte) []byte { return append([]byte{code, byte(len(value))}, value...) }

func addr4(s string) []byte {
	var b [4]byte
	for i, part := range strings.Split(s, ".") {
		var n int
		for _, d := range part {
			n = 10*n + int(d-'0')
		}
		b[i] = byte(n)
	}
	return b[:]
}

// build makes a client's packet; change may alter the fixed fields.
func build(k kind, mac byte, change func(b []byte), options ...[]byte) []byte {
	b := make([]byte, offOptions, 600)
	b[0], b[1], b[2] = 1, 1, 6
	binary.BigEndian.PutUint32(b[4:], 0xc0ffee00+uint32(mac))
	copy(b[offChaddr:], []byte{0x52, 0x54, 0, 0xaa, 0, mac})
	binary.BigEndian.PutUint32(b[offCookie:], magicCookie)
	b = append(b, opt(optType, byte(k))...)
	for _, o := range options {
		b = append(b, o...)
	}
	b = append(b, optEnd)
	if change != nil {
		change(b)
	}
	return room(b)
}

func TestNormalise(t *testing.T) {
	plain := build(discover, 1, nil)
	with := func(change func(b []byte) []byte) []byte { return room(change(bytes.Clone(plain))) }
	set := func(at int, v ...byte) []byte {
		return with(func(b []byte) []byte { copy(b[at:], v); return b })
	}
	for _, c := range []struct {
		name   string
		packet []byte
		want   dropReason
		kind   kind
	}{
		{"a DISCOVER passes", plain, dropNone, discover},
		{"a packet without END passes", with(func(b []byte) []byte { return b[:len(b)-1] }), dropNone, discover},
		{"padding before an option passes", with(func(b []byte) []byte {
			return append(append(b[:offOptions:offOptions], 0, 0, 0), b[offOptions:]...)
		}), dropNone, discover},
		{"what follows END is not read", with(func(b []byte) []byte { return append(b, 99, 200) }), dropNone, discover},
		{"nothing at all is short", room(nil), dropShort, 0},
		{"a packet without options is short", with(func(b []byte) []byte { return b[:offOptions-1] }), dropShort, 0},
		{"a packet of more than 2048 bytes is too long", room(make([]byte, maxPacketSize+1)), dropTooLong, 0},
		{"a BOOTREPLY is another server's", set(0, 2), dropOp, 0},
		{"another network than Ethernet is not supported", set(1, 6), dropNoEthernet, 0},
		{"a hardware type that is none is dropped", set(1, 255), dropHardware, 0},
		{"InfiniBand is not supported", captured(t, "ipoib-discover"), dropInfiniBand, 0},
		{"BOOTP without vendor information is not supported", set(offCookie, 0, 0, 0, 0), dropBOOTP, 0},
		{"hlen 0 is dropped", set(2, 0), dropHardware, 0},
		{"hlen 255 is dropped", set(2, 255), dropHardware, 0},
		{"more than 16 hops is a loop", set(offHops, 17), dropHops, 0},
		{"BOOTP without the cookie is dropped", set(offCookie, 0), dropCookie, 0},
		{"a group address is no machine's", set(offChaddr, 1), dropChaddr, 0},
		{"the zero MAC is no machine's", set(offChaddr, 0, 0, 0, 0, 0, 0), dropChaddr, 0},
		{"a multicast relay is no relay", set(offGiaddr, 224, 0, 0, 1), dropGiaddr, 0},
		{"a loopback relay is no relay", set(offGiaddr, 127, 0, 0, 1), dropGiaddr, 0},
		{"an option over the edge is dropped", with(func(b []byte) []byte { return append(b[:len(b)-1], 60, 200, 'P') }), dropOptions, 0},
		{"an option without length is dropped", with(func(b []byte) []byte { return append(b[:len(b)-1], 60) }), dropOptions, 0},
		{"a message type of two bytes is dropped", with(func(b []byte) []byte { return append(b[:offOptions], 53, 2, 1, 1, 255) }), dropOptions, 0},
		{"a packet without message type is BOOTP", with(func(b []byte) []byte { return append(b[:offOptions], 255) }), dropBOOTP, 0},
		{"a lease query is not ours", set(offOptions+2, 10), dropType, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, b, got := normalise(c.packet)
			if got != c.want || got == dropNone && k != c.kind {
				t.Fatalf("got %q, type %d; want %q, type %d", got, k, c.want, c.kind)
			}
			if got == dropNone {
				judge(t, b, queryOf(k, b, arrival{}))
			}
		})
	}
}

func TestOverloadedFieldsAreRead(t *testing.T) {
	long := "http://10.0.0.1/a-name-that-lies-in-the-file-field"
	packet := build(discover, 1, func(b []byte) {
		copy(b[offFile:], append(opt(67, []byte(long)...), optEnd))
		copy(b[offSname:], append(opt(66, []byte("10.0.0.9")...), optEnd))
	}, opt(optOverload, 3))
	_, b, reason := normalise(packet)
	if reason != dropNone {
		t.Fatal(reason)
	}
	m, err := dhcpv4.FromBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(m.Options[67]); got != long {
		t.Errorf("option 67 is %q", got)
	}
	if got := string(m.Options[66]); got != "10.0.0.9" {
		t.Errorf("option 66 is %q", got)
	}
	if m.BootFileName != "" || m.ServerHostName != "" {
		t.Errorf("the fields still read as names: %q %q", m.BootFileName, m.ServerHostName)
	}
}

func TestMessageTypeMayLieInTheFileField(t *testing.T) {
	packet := build(discover, 1, func(b []byte) {
		b[offOptions] = 254 // hides the type
		copy(b[offFile:], append(opt(optType, byte(inform)), optEnd))
	}, opt(optOverload, 1))
	if k, _, reason := normalise(packet); k != inform || reason != dropNone {
		t.Errorf("type %d, dropped for %q", k, reason)
	}
}

func TestAnOverloadThatIsBrokenIsDropped(t *testing.T) {
	packet := build(discover, 1, func(b []byte) {
		for i := offFile; i < offCookie; i++ {
			b[i] = 200
		}
	}, opt(optOverload, 1))
	if _, _, reason := normalise(packet); reason != dropOptions {
		t.Errorf("dropped for %q", reason)
	}
}

func TestCapturedPacketsAreDecoded(t *testing.T) {
	for _, c := range []struct {
		name      string
		kind      kind
		class     string
		broadcast bool
		limit     int
	}{
		{"ovmf-pxe-discover", discover, "PXEClient:Arch:00007:UNDI:003000", true, 1472 - 28},
		{"ovmf-pxe-request", request, "PXEClient:Arch:00007:UNDI:003000", true, 1500 - 28}, // it offers to take 65280
		{"ovmf-http-discover", discover, "HTTPClient:Arch:00016:UNDI:003000", true, 1472 - 28},
		{"ipxe-efi-discover", discover, "PXEClient:Arch:00007:UNDI:003010", false, 1472 - 28},
		{"ipxe-rom-discover", discover, "PXEClient:Arch:00000:UNDI:002001", false, 1472 - 28},
		{"ipxe-rom-again-discover", discover, "PXEClient:Arch:00000:UNDI:002001", true, 1472 - 28},
		{"ovmf-4011-request", request, "PXEClient:Arch:00007:UNDI:003000", false, 1472 - 28},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, b, reason := normalise(captured(t, c.name))
			if reason != dropNone || k != c.kind {
				t.Fatalf("type %s, dropped for %q", k, reason)
			}
			q := queryOf(k, b, arrival{})
			judge(t, b, q)
			if got := string(q.option(dhcpv4.OptionClassIdentifier)); got != c.class {
				t.Errorf("class %q", got)
			}
			if q.isBroadcast != c.broadcast {
				t.Errorf("broadcast flag %v", q.isBroadcast)
			}
			if got := q.maxReply(1500); got != c.limit {
				t.Errorf("takes %d bytes, want %d", got, c.limit)
			}
			if q.addr() != "52:54:00:aa:00:01" {
				t.Errorf("mac %s", q.addr())
			}
		})
	}
}

// judge compares our reading of a message's options with that of the codec.
func judge(t *testing.T, b []byte, q *query) {
	t.Helper()
	m, err := dhcpv4.FromBytes(b)
	if err != nil {
		t.Fatalf("the codec refuses what passed: %v", err)
	}
	for code := range 256 {
		if want, got := m.Options[uint8(code)], q.optionOf(byte(code)); !bytes.Equal(want, got) {
			t.Errorf("option %d is %x, and for the codec %x", code, got, want)
		}
	}
	if mac := m.ClientHWAddr.String(); mac != string(q.addr()) {
		t.Errorf("mac %s, and for the codec %s", q.addr(), mac)
	}
}

func TestOptionsAreReadAsTheCodecReadsThem(t *testing.T) {
	long := func(code byte, n int, c byte) []byte { return opt(code, bytes.Repeat([]byte{c}, n)...) }
	var many, again [][]byte
	for code := byte(1); code < 255; code++ {
		if code != optType && code != optOverload {
			many, again = append(many, opt(code, code)), append(again, opt(code, code, 0))
		}
	}
	for _, c := range []struct {
		name    string
		options [][]byte
	}{
		{"none", nil},
		{"an empty one", [][]byte{opt(12), opt(60, 'a')}},
		{"one in parts", [][]byte{long(77, 255, 'a'), opt(12, 'h'), long(77, 200, 'b'), long(77, 3, 'c')}},
		{"an empty part", [][]byte{opt(77), opt(77, 1), opt(77), opt(77, 2)}},
		{"more than are held at hand", many[:40]},
		{"all there are, twice", slices.Concat(many, again)},
		{"padding between", [][]byte{{0, 0}, opt(12, 'h'), {0}, opt(61, 1, 2, 3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, b, reason := normalise(build(discover, 1, nil, c.options...))
			if reason != dropNone {
				t.Fatal(reason)
			}
			judge(t, b, queryOf(k, b, arrival{}))
		})
	}
}

func TestWhatIsNotSupportedIsSaidInWordsAndOfTheRightMachine(t *testing.T) {
	bootp := build(discover, 1, nil)
	bootp = room(append(bootp[:offOptions], 255))
	for name, tt := range map[string]struct {
		packet []byte
		mac    inventory.MAC
		reason string
	}{
		"InfiniBand":  {captured(t, "ipoib-discover"), "f4:52:14:7a:12:34", pxe.NoInfiniBand},
		"plain BOOTP": {bootp, hardwareAddr(bootp[offChaddr:]).inventory(), pxe.NoBOOTP},
	} {
		var told []pxe.Unanswered
		r := newReasons(&Config{Unanswered: func(u pxe.Unanswered) { told = append(told, u) }, Knows: func([6]byte) bool { return true }})
		_, _, why := normalise(bytes.Clone(tt.packet)[:len(tt.packet):len(tt.packet)])
		r.refused(tt.packet, &port{link: link{name: "eth1"}}, why, time.Now())
		if len(told) != 1 || told[0].Client.MAC != tt.mac || told[0].Reason != tt.reason || told[0].Client.Stage != pxe.StageFirmware {
			t.Errorf("%s: %+v", name, told)
		}
	}
}
