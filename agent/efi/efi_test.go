package efi

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/wire"
)

// debianShim is what grub-install of Debian asks efibootmgr for, spelled out by hand after UEFI 3.1.3 and 10.3.
const debianShim = "0100000062006400650062006900610" + "06e000000" +
	"04012a000100000000080000000000000000100000000000" + "3f2a6e5d1c9b4f47a1e2d3c4b5a69788" + "0202" +
	"040434005c004500460049005c00640065006200690061006e005c007300680069006d007800360034002e006500660069000000" + "7fff0400"

// ovmf returns a variable as OVMF 2022.11 of Debian 12 wrote it in a machine of QEMU with an NVMe disk and a virtio port.
func ovmf(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b[4:]
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// machine makes a folder that looks like efivarfs.
func machine(t *testing.T, vars map[string][]byte) Vars {
	t.Helper()
	v := Vars{Dir: t.TempDir()}
	for name, data := range vars {
		if err := os.WriteFile(v.path(name), append([]byte{7, 0, 0, 0}, data...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func order(numbers ...uint16) []byte {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	return b
}

func TestEntriesOfRealFirmwareAreReadAndWrittenByteForByte(t *testing.T) {
	shim := unhex(t, debianShim)
	for n := range uint16(9) {
		data := ovmf(t, fmt.Sprintf("Boot%04X", n))
		e, err := parseEntry(n, data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(hex.EncodeToString(data), hex.EncodeToString(e.encode())); diff != "" {
			t.Error(diff)
		}
		if mac, ok := e.MAC(); (n >= 3 && n <= 7) != (ok && mac == "52:54:00:12:34:56") || ok != e.IsNetwork() {
			t.Errorf("%d: %q %s", n, e.Description, e.Words())
		}
	}
	e, _ := parseEntry(3, ovmf(t, "Boot0003"))
	if e.Description != "UEFI PXEv4 (MAC:525400123456)" || !e.IsActive() || len(e.Optional) != 16 || !strings.HasSuffix(e.Words(), "/MAC(525400123456)") {
		t.Errorf("%+v, %s", e, e.Words())
	}
	s, err := parseEntry(4, shim)
	if err != nil {
		t.Fatal(err)
	}
	id, ok := s.Partition()
	if want := "HD(1,GPT,5d6e2a3f-9b1c-474f-a1e2-d3c4b5a69788)/\\EFI\\debian\\shimx64.efi"; !ok || s.Words() != want || s.Description != "debian" {
		t.Errorf("%q: %s", s.Description, s.Words())
	}
	made := Entry{Number: 4, Attributes: 1, Description: "debian", Path: []Node{hardDrive(disk.Partition{Number: 1, First: 2048, Sectors: 1 << 20, ID: id}), file(`\EFI\debian\shimx64.efi`)}}
	if diff := cmp.Diff(debianShim, hex.EncodeToString(made.encode())); diff != "" {
		t.Error(diff)
	}
}

func TestTheBootOrderBecomesWhatWasAsked(t *testing.T) {
	id, _ := disk.ParseGUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
	want := Want{MAC: "52:54:00:12:34:56", Partition: disk.Partition{Number: 1, First: 2048, Sectors: 4096, ID: id}, File: `\EFI\BOOT\BOOTX64.EFI`, Description: "Slipway"}
	other := bytes.ReplaceAll(ovmf(t, "Boot0003"), unhex(t, "525400123456"), unhex(t, "525400999999"))
	cases := map[string]struct {
		mode  string
		order []uint16
	}{
		"disk first":                                    {wire.DiskFirst, []uint16{2, 4, 0, 1}},
		"disk first when nothing is said":               {"", []uint16{2, 4, 0, 1}},
		"network first, the port that boots before all": {wire.NetworkFirst, []uint16{1, 0, 2, 4}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := machine(t, map[string][]byte{"Boot0000": other, "Boot0001": ovmf(t, "Boot0003"), "Boot0004": unhex(t, debianShim), "BootOrder": order(4, 0, 1), "BootCurrent": order(1)})
			w := want
			w.Mode = c.mode
			for range 2 { // the second time nothing changes
				entry, err := v.Install(w)
				if err != nil || entry != "Boot0002" {
					t.Fatalf("%s, %v", entry, err)
				}
				b, err := v.Read()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.order, b.Order); diff != "" || len(b.Entries) != 4 || b.Current != 1 {
					t.Errorf("%d entries, current %d: %s", len(b.Entries), b.Current, diff)
				}
			}
		})
	}
}

func TestEntriesOfAWipedDiskAreForgotten(t *testing.T) {
	v := machine(t, map[string][]byte{"Boot0001": ovmf(t, "Boot0003"), "Boot0004": unhex(t, debianShim), "BootOrder": order(4, 1)})
	names, err := v.Forget(func(id disk.GUID) bool { return strings.HasPrefix(id.String(), "5d6e2a3f") })
	if err != nil || !slices.Equal(names, []string{"Boot0004"}) {
		t.Fatalf("%v, %v", names, err)
	}
	b, err := v.Read()
	if err != nil || !slices.Equal(b.Order, []uint16{1}) || len(b.Entries) != 1 {
		t.Errorf("%+v, %v", b, err)
	}
	if names, err := v.Forget(func(disk.GUID) bool { return false }); names != nil || err != nil {
		t.Errorf("%v, %v", names, err)
	}
}

func TestAMachineWithoutUEFIHasNothing(t *testing.T) {
	if (Vars{Dir: filepath.Join(t.TempDir(), "none")}).Present() || (Vars{Dir: t.TempDir()}).Present() {
		t.Error("variables where there are none")
	}
}

func FuzzEntry(f *testing.F) {
	f.Add(ovmf(f, "Boot0003"))
	f.Add(unhex(f, debianShim))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := parseEntry(1, b)
		if err != nil {
			return
		}
		e.Words()
		e.File()
		e.MAC()
		e.Partition()
		again, err := parseEntry(1, e.encode())
		if err != nil || again.Words() != e.Words() {
			t.Fatalf("%v: %q, then %q", err, e.Words(), again.Words())
		}
	})
}

func TestTheLoaderOfTheSystemIsChosen(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the names are those of amd64")
	}
	cases := map[string]struct {
		files      []string
		path, name string
	}{
		"a distribution with shim":    {[]string{"EFI/BOOT/BOOTX64.EFI", "EFI/BOOT/shimx64.efi", "EFI/debian/grubx64.efi", "EFI/debian/shimx64.efi"}, `\EFI\debian\shimx64.efi`, "debian"},
		"a distribution with GRUB":    {[]string{"EFI/BOOT/BOOTX64.EFI", "efi/Fedora/grubx64.efi"}, `\efi\Fedora\grubx64.efi`, "Fedora"},
		"only the one for any medium": {[]string{"EFI/boot/bootx64.efi", "startup.nsh"}, `\EFI\boot\bootx64.efi`, "Linux"},
		"none":                        {[]string{"EFI/BOOT/BOOTAA64.EFI", "vmlinuz"}, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if path, name := Loader(c.files); path != c.path || name != c.name {
				t.Errorf("%s, %s", path, name)
			}
		})
	}
}
