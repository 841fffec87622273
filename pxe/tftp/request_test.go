package tftp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/pxe"
)

func rrq(texts ...string) string { return "\x00\x01" + strings.Join(texts, "\x00") + "\x00" }

func TestARequestIsServedOnlyForANameOfTheTable(t *testing.T) {
	big := strings.Repeat("a", 400)
	for _, c := range []struct {
		what, packet string
		want         request
		refused      outcome
		code         uint16
	}{
		{what: "the plain request of an old ROM", packet: rrq("undionly.kpxe", "octet"), want: request{name: "undionly.kpxe"}},
		{
			what: "EDK2 with its options", packet: rrq("snponly.efi", "octet", "tsize", "0", "blksize", "1468", "windowsize", "4"),
			want: request{name: "snponly.efi", blockSize: 1468, wantsSize: true, window: 4},
		},
		{what: "one slash in front", packet: rrq("/autoexec.ipxe", "octet"), want: request{name: "autoexec.ipxe"}},
		{
			what: "mode and options in capitals", packet: rrq("ipxe.efi", "OCTET", "BLKSIZE", "1432", "TSize", "0"),
			want: request{name: "ipxe.efi", blockSize: 1432, wantsSize: true},
		},
		{what: "a size that was filled in", packet: rrq("ipxe.efi", "octet", "tsize", "99999999999999999999999"), want: request{name: "ipxe.efi", wantsSize: true}},
		{what: "a block size that is no number", packet: rrq("ipxe.efi", "octet", "blksize", "-1"), want: request{name: "ipxe.efi"}},
		{what: "a block size below 8", packet: rrq("ipxe.efi", "octet", "blksize", "7"), want: request{name: "ipxe.efi"}},
		{what: "a block size above 65464", packet: rrq("ipxe.efi", "octet", "blksize", "70000"), want: request{name: "ipxe.efi", blockSize: 65464}},
		{what: "an option without value", packet: rrq("ipxe.efi", "octet", "blksize"), want: request{name: "ipxe.efi"}},
		{what: "padding behind the options", packet: rrq("ipxe.efi", "octet", "blksize", "1024", "", "", ""), want: request{name: "ipxe.efi", blockSize: 1024}},
		{what: "a block size said twice", packet: rrq("ipxe.efi", "octet", "blksize", "1024", "blksize", "9000"), want: request{name: "ipxe.efi", blockSize: 1024}},

		{what: "an unknown file", packet: rrq("pxeboot.n12", "octet"), refused: unknownName, code: 1},
		{what: "two slashes", packet: rrq("//ipxe.efi", "octet"), refused: unknownName, code: 1},
		{what: "a path", packet: rrq("../../etc/passwd", "octet"), refused: unknownName, code: 1},
		{what: "a path behind a name", packet: rrq("ipxe.efi/../../etc/passwd", "octet"), refused: unknownName, code: 1},
		{what: "an absolute path", packet: rrq("/usr/lib/ipxe/ipxe.efi", "octet"), refused: unknownName, code: 1},
		{what: "a backslash", packet: rrq(`\ipxe.efi`, "octet"), refused: unknownName, code: 1},
		{what: "other letter case", packet: rrq("IPXE.EFI", "octet"), refused: unknownName, code: 1},
		{what: "an empty name", packet: rrq("", "octet"), refused: unknownName, code: 1},
		{what: "a long name", packet: rrq(big, "octet"), refused: unknownName, code: 1},
		{what: "netascii, which would change the bytes", packet: rrq("ipxe.efi", "netascii"), refused: badMode, code: 4},
		{what: "a write request", packet: "\x00\x02ipxe.efi\x00octet\x00", refused: isWrite, code: 2},
		{what: "a packet over 512 bytes", packet: rrq("ipxe.efi", "octet", "x", big+big), refused: malformed, code: 4},
		{what: "no mode", packet: "\x00\x01ipxe.efi\x00", refused: malformed, code: 4},
		{what: "a mode without end", packet: "\x00\x01ipxe.efi\x00octet", refused: malformed, code: 4},
		{what: "a name without end", packet: "\x00\x01ipxe.efi", refused: malformed, code: 4},
		{what: "nothing but a code", packet: "\x00\x01", refused: malformed},
		{what: "an empty packet", packet: "", refused: malformed},
		{what: "data for nobody", packet: "\x00\x03\x00\x01abc", refused: malformed},
		{what: "an error, which is never answered", packet: "\x00\x05\x00\x00text\x00", refused: malformed},
		{what: "an unknown code", packet: "\x12\x34ipxe.efi\x00octet\x00", refused: malformed},
	} {
		t.Run(c.what, func(t *testing.T) {
			got, no := parseRequest([]byte(c.packet), nobody)
			if c.refused == "" {
				if no != nil {
					t.Fatalf("refused: %+v", *no)
				}
				if d := cmp.Diff(c.want, got, cmp.AllowUnexported(request{})); d != "" {
					t.Error(d)
				}
				return
			}
			if no == nil {
				t.Fatalf("served as %+v", got)
			}
			if no.why != c.refused || no.code != c.code {
				t.Errorf("refused as %s with code %d, want %s with %d", no.why, no.code, c.refused, c.code)
			}
			if (no.text == "") != (no.code == 0) || strings.ContainsAny(no.text, "/\x00") {
				t.Errorf("the text is %q", no.text)
			}
		})
	}
}

func TestOptionsAreAnsweredAsTheyApply(t *testing.T) {
	for _, c := range []struct {
		what string
		in   string
		want string
	}{
		{"none", rrq("ipxe.efi", "octet"), ""},
		{"one that is not known", rrq("ipxe.efi", "octet", "multicast", ""), ""},
		{
			"all, in any case", rrq("ipxe.efi", "octet", "TSIZE", "0", "BlkSize", "1432", "windowsize", "4", "timeout", "3"),
			"blksize\x001432\x00tsize\x00999\x00windowsize\x004\x00timeout\x003\x00",
		},
		{"a window that no machine has room for", rrq("ipxe.efi", "octet", "windowsize", "65535"), "windowsize\x0064\x00"},
		{"values outside of their range", rrq("ipxe.efi", "octet", "windowsize", "0", "timeout", "0", "timeout", "256", "blksize", "7", "windowsize", "65536"), ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			r, no := parseRequest([]byte(c.in), nobody)
			if no != nil {
				t.Fatal(no)
			}
			want := c.want
			if want != "" {
				want = "\x00\x06" + want
			}
			if got := string(r.answer(r.blockSize, 999)); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(rrq("snponly.efi", "octet", "tsize", "0", "blksize", "1468", "windowsize", "4")))
	f.Add([]byte(rrq("/autoexec.ipxe", "OCTET", "BLKSIZE", "8")))
	f.Add([]byte(rrq("../etc/passwd", "netascii")))
	f.Add([]byte("\x00\x02x\x00octet\x00"))
	f.Add([]byte("\x00\x05\x00\x08\x00"))
	f.Fuzz(func(t *testing.T, p []byte) {
		r, no := parseRequest(p, nobody)
		if no != nil {
			if strings.Contains(no.text, "/") || len(no.text) > 100 {
				t.Errorf("refusal text %q", no.text)
			}
			return
		}
		if !pxe.IsLoader(r.name) || r.blockSize < 0 || r.blockSize > maxBlock {
			t.Fatalf("%q is served as %+v", p, r)
		}
		if r.window < 0 || r.window > maxWindow || r.timeout < 0 || r.timeout > 255*time.Second || len(r.answer(512, 1<<40)) > maxRequest {
			t.Fatalf("%q is served as %+v", p, r)
		}
	})
}

func nobody(string) string { return "" }
