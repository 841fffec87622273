package pxe

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"slipway.dev/slipway/inventory"
)

func TestParseIdentity(t *testing.T) {
	got, err := ParseQuery("uuid=4C4C4544-0042-3510-8054-B7C04F333232&mac=52-54-00-aa-00-01&memsize=2047&serial=SN42&asset=RACK7-U12" +
		"&manufacturer=ACME&product=R640%20Gen2&board-serial=Default%20string&platform=efi&buildarch=x86_64&version=1.0.0+git" +
		"&cpumodel=QEMU%20Virtual%20CPU&mac0=52-54-00-aa-00-01&mac1=52-54-00-aa-00-02&mac2=&mac3=junk")
	if err != nil {
		t.Fatal(err)
	}
	want := Client{
		Stage: StageIPXE, MAC: "52:54:00:aa:00:01", Arch: inventory.X8664, Firmware: inventory.UEFI,
		UUID: "4c4c4544-0042-3510-8054-b7c04f333232", IPXE: IPXE{Version: "1.0.0+git", HasHTTP: true},
		Identity: &Identity{
			UUID: "4c4c4544-0042-3510-8054-b7c04f333232", Serial: "SN42", AssetTag: "RACK7-U12", Manufacturer: "ACME",
			Product: "R640 Gen2", Platform: "efi", BuildArch: "x86_64", CPU: "QEMU Virtual CPU", Version: "1.0.0+git", MemoryMiB: 2047,
			MACs: []inventory.MAC{"52:54:00:aa:00:01", "52:54:00:aa:00:02"},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
}

func TestParseIdentityOfLittle(t *testing.T) {
	if c, err := ParseIdentity(nil); err != nil || c.Stage != StageIPXE || c.MAC != "" || c.Identity == nil {
		t.Errorf("an empty query: %+v, %v", c, err)
	}
	if c, err := ParseQuery("mac=52-54-00-aa-00-01&serial=x&mac=52-54-00-aa-00-99"); err != nil || c.MAC != "52:54:00:aa:00:01" {
		t.Errorf("a text put another MAC in place of the first: %s, %v", c.MAC, err)
	}
	if _, err := ParseIdentity(url.Values{"mac": {"not-a-mac"}}); err == nil {
		t.Error("a MAC that is none was accepted")
	}
	c, err := ParseIdentity(url.Values{"mac": {"525400aa0001"}, "serial": {"a\x00b\nc" + strings.Repeat("x", 10_000)}, "memsize": {"0x800"}, "platform": {"pcbios"}, "buildarch": {"i386"}})
	if err != nil || c.Firmware != inventory.BIOS || c.Arch != inventory.X8664 || c.Identity.MemoryMiB != 2048 ||
		len(c.Identity.Serial) > 128 || !strings.HasPrefix(c.Identity.Serial, "a b c") {
		t.Errorf("%+v, %v", c.Identity, err)
	}
	for _, n := range []string{"-1", "99999999999999999999", "many"} {
		if c, _ := ParseIdentity(url.Values{"memsize": {n}}); c.Identity.MemoryMiB != 0 {
			t.Errorf("memsize %s is %d", n, c.Identity.MemoryMiB)
		}
	}
}

func TestJunkHints(t *testing.T) {
	for _, s := range []string{"To be filled by O.E.M.", "0123456789", "Default string", "None", "System Serial Number", "  ", "N/A", "00000000", "FFFFFFFF", "xxxxxxxxxx", "Not Specified", "OEM"} {
		if got := cleanHint(s); got != "" {
			t.Errorf("%q was taken for a serial", s)
		}
	}
	for _, s := range []string{"SN42", "7X2K9Q2", "0", "A1", "CZ3029JK"} {
		if cleanHint(s) != s {
			t.Errorf("%q was dropped", s)
		}
	}
	for _, s := range []string{"ffffffff-ffff-ffff-ffff-ffffffffffff", "00000000-0000-0000-0000-000000000000", "03000200-0400-0500-0006-000700080009", "x", ""} {
		if got := cleanUUID(s); got != "" {
			t.Errorf("%q was taken for a UUID: %s", s, got)
		}
	}
}

func FuzzParseIdentity(f *testing.F) {
	f.Add("uuid=4c4c4544-0042-3510-8054-b7c04f333232&mac=52-54-00-aa-00-01&serial=SN42&memsize=2047&mac0=52-54-00-aa-00-01")
	f.Add("serial=%24%7Bx%7D%0A||reboot&manufacturer=%ff%fe")
	f.Fuzz(func(t *testing.T, query string) {
		c, err := ParseQuery(query)
		if err != nil {
			return
		}
		id := c.Identity
		for _, s := range []string{id.UUID, id.Serial, id.AssetTag, id.Manufacturer, id.Product, id.BoardSerial, id.Platform, id.BuildArch, id.CPU, id.Version} {
			if err := inventory.CheckText("text", s, 128); err != nil {
				t.Error(err)
			}
		}
		for _, m := range append(id.MACs, c.MAC) {
			if p, err := inventory.ParseMAC(string(m)); m != "" && (err != nil || p != m) {
				t.Errorf("MAC %q", m)
			}
		}
		if id.MemoryMiB < 0 {
			t.Error("negative memory")
		}
	})
}

func TestIPXESaysWhetherSecureBootIsOn(t *testing.T) {
	for query, want := range map[string]string{"secureboot=01": SecureBootOn, "secureboot=00": SecureBootOff, "secureboot=": "", "": "", "secureboot=on": ""} {
		if c, err := ParseQuery("mac=52-54-00-aa-00-01&" + query); err != nil || c.SecureBoot != want {
			t.Errorf("%q: %q, %v; want %q", query, c.SecureBoot, err, want)
		}
	}
	if !strings.Contains(askQuery, "&secureboot=${efi/SecureBoot:hexraw}&") {
		t.Errorf("nobody asks: %s", askQuery)
	}
}
