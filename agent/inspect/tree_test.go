package inspect

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

var update = flag.Bool("update", false, "write the golden files anew")

// plant makes a file system of a recorded tree: "path = text", "path -> target of a link", "path # bytes in hex".
func plant(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".tree"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		path, rest, _ := strings.Cut(line, " ")
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		kind, value, _ := strings.Cut(rest, " ")
		switch kind {
		case "->":
			err = os.Symlink(value, file)
		case "=":
			value = strings.NewReplacer(`\n`, "\n", `\x1b`, "\x1b").Replace(value)
			err = os.WriteFile(file, []byte(value+"\n"), 0o644)
		case "#":
			var b []byte
			if b, err = hex.DecodeString(strings.ReplaceAll(value, " ", "")); err == nil {
				err = os.WriteFile(file, b, 0o644)
			}
		default:
			t.Fatalf("%s: %q", name, line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// devices answers what takes a system call on the recorded machines.
type devices struct{}

func (devices) NVMe(disk string, what NVMeRead) ([]byte, error) {
	if disk != "nvme0n1" {
		return nil, os.ErrNotExist
	}
	b := make([]byte, 4096)
	if what == NVMeHealth {
		b[5] = 103 // percent of its life
		return b[:512], nil
	}
	b[256], b[328] = 0x1e, 0x3 // format; crypto and block sanitize
	return b, nil
}

func (devices) ATAHealth(disk string) (bool, error) {
	if disk != "sda" {
		return false, os.ErrNotExist
	}
	return true, nil
}

func (devices) TPM([]byte) ([]byte, error) {
	return []byte("\x80\x01\x00\x00\x00\x1b\x00\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x01\x00\x00\x01\x05IBM\x00"), nil
}

func (devices) PermanentMAC(port string) (inventory.MAC, error) {
	if port == "eth10" { // the tree has the one that is set now
		return "3c:fd:fe:00:00:10", nil
	}
	return "", errors.New("not told")
}

func TestRecordedMachines(t *testing.T) {
	for _, name := range []string{"q35", "dell", "drivers", "hostile"} {
		t.Run(name, func(t *testing.T) {
			s := &Source{
				Root: plant(t, name), Devices: devices{}, Log: slog.New(slog.DiscardHandler),
				Now: func() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) },
			}
			if name == "dell" {
				s.BMC = newBMC()
				writeDMI(t, s.Root)
				writeATA(t, s.Root)
			}
			got, err := json.MarshalIndent(s.Hardware(t.Context()), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// writeATA gives sda an ATA Information page whose IDENTIFY DEVICE has the security feature set.
func writeATA(t *testing.T, root string) {
	t.Helper()
	page := make([]byte, 572)
	page[1] = 0x89
	page[60+256] = 0x21 // supported, enhanced
	if err := os.WriteFile(filepath.Join(root, "sys/block/sda/device/vpd_pg89"), page, 0o644); err != nil {
		t.Fatal(err)
	}
}

// entry writes one SMBIOS structure.
func entry(kind byte, data []byte, texts ...string) []byte {
	b := append([]byte{kind, byte(4 + len(data)), 0, 0}, data...)
	for _, text := range texts {
		b = append(append(b, text...), 0)
	}
	if len(texts) == 0 {
		b = append(b, 0)
	}
	return append(b, 0)
}

// table is the SMBIOS of the server: firmware, system, board, chassis, a module, an empty slot, a large module.
func table() []byte {
	dimm := func(size, extended int, slot byte) []byte {
		d := make([]byte, 0x28-4)
		d[0x0c-4], d[0x0d-4] = byte(size), byte(size>>8)
		d[0x10-4], d[0x12-4], d[0x15-4], d[0x16-4] = slot, 0x1a, 0x80, 0x0c
		d[0x17-4], d[0x18-4], d[0x1a-4] = 2, 3, 4
		d[0x1c-4], d[0x1d-4] = byte(extended), byte(extended>>8)
		d[0x20-4], d[0x21-4] = 0x74, 0x0b
		return d
	}
	var b []byte
	b = append(b, entry(0, []byte{1, 2, 0, 0, 3, 0}, "Dell Inc.", "2.19.1", "06/04/2024")...)
	b = append(b, entry(1, append([]byte{1, 2, 0, 3, 0x44, 0x45, 0x4c, 0x4c, 0x35, 0x00, 0x10, 0x50, 0x80, 0x38, 0xb4, 0xc0, 0x4f, 0x4b, 0x38, 0x33}, 6, 0, 0), "Dell Inc.", "PowerEdge R6525", "5P8K833")...)
	b = append(b, entry(2, []byte{1, 2, 3, 4, 0}, "Dell Inc.", "0DMVR3", "A01", ".5P8K833.")...)
	b = append(b, entry(3, []byte{1, 0x97, 0, 0, 2}, "Dell Inc.", "To Be Filled By O.E.M.")...)
	b = append(b, entry(17, dimm(0x8000, 0, 1), "A1", "00AD00B300AD", "2F3A4B5C", "HMA84GR7CJR4N-XN")...)
	b = append(b, entry(17, dimm(0, 0, 1), "A2")...)
	b = append(b, entry(17, dimm(0x7fff, 0x8000, 1), "B1", "Samsung", "11223344", "M393A4K40EB3")...)
	b = append(b, entry(17, dimm(0x8000-1, 0x8000, 1), "B2", "Samsung", "11223345", "M393A4K40EB3")...)
	return append(b, entry(127, nil)...)
}

func writeDMI(t *testing.T, root string) {
	t.Helper()
	dir := filepath.Join(root, "sys/firmware/dmi/tables")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"DMI": table(), "smbios_entry_point": []byte("_SM3_\x00\x18\x03\x03")} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
