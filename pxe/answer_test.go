package pxe

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"slipway.dev/slipway/inventory"
)

func TestAnswer(t *testing.T) {
	us := netip.MustParseAddr("10.0.0.1")
	const base, session = "http://10.0.0.1:8081/", inventory.SessionID("00112233445566778899aabbccddeeff")
	image := Decision{Boot: BootImage, Loader: "snponly.efi"}
	noWait := []byte{0xb0, 1, 1}
	ask := "http://10.0.0.1:8081/boot/" + string(session) + "/ask"
	for _, tt := range []struct {
		name string
		c    Client
		d    Decision
		want Reply
	}{
		{"PXE firmware gets server and file, and no option 60 or 43", uefi(), image, Reply{Next: us, File: "snponly.efi"}},
		{"BIOS likewise", bios(), Decision{Boot: BootPark, Loader: "undionly.kpxe"}, Reply{Next: us, File: "undionly.kpxe"}},
		{
			"HTTP Boot gets a URL and its class", uefiHTTP(), image,
			Reply{File: "http://10.0.0.1:8081/boot/" + string(session) + "/snponly.efi", Class: "HTTPClient"},
		},
		{"iPXE gets an absolute script URL and need not wait for a proxy", ipxe(uefi()), Decision{Boot: BootImage}, Reply{Next: us, File: ask, IPXE: noWait}},
		{"iPXE never gets a loader, whatever was decided", ipxe(uefi()), image, Reply{Next: us, File: ask, IPXE: noWait}},
		{"iPXE that must leave again gets its script as well", ipxe(bios()), Decision{Boot: BootDisk, Disk: inventory.DiskSanboot}, Reply{Next: us, File: ask, IPXE: noWait}},
		{"a waiting machine gets its loader", uefi(), Decision{Boot: BootWait, Loader: "ipxe.efi"}, Reply{Next: us, File: "ipxe.efi"}},
		{"disk without an offer is nothing", uefi(), Decision{Boot: BootDisk, Disk: inventory.DiskNoOffer}, Reply{}},
		{"disk without an offer is nothing for iPXE", ipxe(uefi()), Decision{Boot: BootDisk, Disk: inventory.DiskNoOffer}, Reply{}},
		{"ignore is nothing", ipxe(uefi()), Decision{Boot: BootIgnore}, Reply{}},
		{"firmware without a loader gets nothing", uefi(), Decision{Boot: BootImage}, Reply{}},
		{"an operating system gets nothing", Client{Stage: StageOS}, image, Reply{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.Server = us
			if diff := cmp.Diff(tt.want, Answer(tt.c, tt.d, session, base), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestURL(t *testing.T) {
	for _, tt := range []struct{ name, got, want string }{
		{"without a session", URL("http://10.0.0.1", "", "ask"), "http://10.0.0.1/boot/ask"},
		{"what could leave a path is escaped", URL("http://10.0.0.1", "a/../b", "x y"), "http://10.0.0.1/boot/a%2F..%2Fb/x%20y"},
		{"what iPXE would read is dropped from the base", URL("http://10.0.0.1 || reboot ${x}", "", "ask"), "http://10.0.0.1rebootx/boot/ask"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %s, want %s", tt.got, tt.want)
			}
		})
	}
}

func TestLoaderTable(t *testing.T) {
	seen := map[string]bool{AutoexecName: true}
	for _, l := range Loaders() {
		if seen[l.Name] || l.Type == "" || len(l.Files) == 0 || (l.Package == "") != (len(l.Debian) == 0) {
			t.Errorf("row %+v", l)
		}
		seen[l.Name] = true
		if got, ok := LoaderByName(l.Name); !ok || got.Name != l.Name || !IsLoader(l.Name) {
			t.Errorf("%s is not found by its name", l.Name)
		}
	}
	for _, name := range []string{"", "../snponly.efi", "SNPONLY.EFI", "grub.cfg"} {
		if IsLoader(name) {
			t.Errorf("%q is a loader", name)
		}
	}
	if !IsLoader(AutoexecName) {
		t.Error("autoexec.ipxe is none")
	}
	for _, tt := range []struct {
		firmware inventory.Firmware
		arch     inventory.Arch
		first    string
	}{
		{inventory.BIOS, inventory.X8664, "undionly.kpxe"},
		{inventory.UEFI, inventory.X8664, "snponly.efi"},
		{inventory.UEFIHTTP, inventory.X8664, "snponly.efi"},
		{inventory.UEFI, inventory.I386, "snponly-i386.efi"},
		{inventory.UEFIHTTP, inventory.ARM64, "snponly-arm64.efi"},
		{inventory.BIOS, inventory.ARM64, ""},
		{"", "", ""},
		{"", inventory.X8664, ""},
		{inventory.UEFI, "riscv64", ""},
	} {
		got := ""
		if c := Candidates(tt.firmware, tt.arch); len(c) > 0 {
			got = c[0].Name
		}
		if got != tt.first {
			t.Errorf("%q %q: first is %q, want %q", tt.firmware, tt.arch, got, tt.first)
		}
	}
}

func TestQuirks(t *testing.T) {
	for _, q := range BuiltinQuirks() {
		if err := q.Validate(); err != nil || q.Source == "" || q.Why == "" {
			t.Errorf("%+v: %v", q, err)
		}
	}
	rows := []Quirk{
		{Vendor: "Dell*", DiskBoot: inventory.DiskExit, Loader: "ipxe.efi", Why: "all"},
		{Vendor: "Dell*", Product: "PowerEdge R6?0", Firmware: inventory.UEFI, DiskBoot: inventory.DiskNoOffer, Why: "some"},
	}
	for _, tt := range []struct {
		name             string
		vendor, product  string
		firmware         inventory.Firmware
		disk             inventory.DiskBoot
		loader, why      string
		isUnknownMachine bool
	}{
		{"the last row that matches says why, and each field comes from the last that has it", "DELL Inc.", "poweredge r640", inventory.UEFI, inventory.DiskNoOffer, "ipxe.efi", "some", false},
		{"a row about UEFI holds for HTTP Boot", "Dell", "PowerEdge R640", inventory.UEFIHTTP, inventory.DiskNoOffer, "ipxe.efi", "some", false},
		{"a row about UEFI does not hold under BIOS", "Dell", "PowerEdge R640", inventory.BIOS, inventory.DiskExit, "ipxe.efi", "all", false},
		{"another vendor", "HPE", "PowerEdge R640", inventory.UEFI, "", "", "", false},
		{"a machine nobody knows", "", "", inventory.UEFI, "", "", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := host(func(h *inventory.Host) { h.Manufacturer, h.Product = tt.vendor, tt.product })
			if tt.isUnknownMachine {
				h = nil
			}
			if got := QuirkFor(rows, h, tt.firmware); got.DiskBoot != tt.disk || got.Loader != tt.loader || got.Why != tt.why {
				t.Errorf("got %+v", got)
			}
		})
	}
	for name, q := range map[string]Quirk{
		"matches everything": {DiskBoot: inventory.DiskExit}, "bad pattern": {Vendor: "[x"},
		"bad firmware": {Firmware: "efi"}, "bad way": {Vendor: "x", DiskBoot: "usb"}, "unknown loader": {Vendor: "x", Loader: "evil.efi"},
	} {
		if q.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if !glob("*/R640*", "ACME/R640/x") || glob("a?c", "a\x00\x00c") {
		t.Error("slashes in products")
	}
}
