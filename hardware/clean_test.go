package hardware

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

// fill sets every field that can be reached to something that no store should see, and every list to n members.
func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("\x1b[31m<script>\xff\x00" + strings.Repeat("ä", 2000))
	case reflect.Int, reflect.Int64:
		v.SetInt(-7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), n)
		}
	case reflect.Struct:
		if v.Type().PkgPath() == walked {
			for i := range v.NumField() {
				fill(v.Field(i), n)
			}
		}
	}
}

// walk calls check for every text, number and list.
func walk(t *testing.T, path string, v reflect.Value, check func(path string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(t, path, v.Elem(), check)
		}
	case reflect.Slice:
		check(path, v)
		for i := range v.Len() {
			walk(t, path+"[]", v.Index(i), check)
		}
	case reflect.Struct:
		if v.Type().PkgPath() != walked {
			return
		}
		for i := range v.NumField() {
			walk(t, path+"."+v.Type().Field(i).Name, v.Field(i), check)
		}
	case reflect.Map, reflect.Interface:
		t.Errorf("%s is a %s, which Clean does not look into", path, v.Kind())
	default:
		check(path, v)
	}
}

func fits(t *testing.T) func(path string, v reflect.Value) {
	return func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			s := v.String()
			if len(s) > contentsLimit || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
				t.Errorf("%s escaped: %.40q", path, s)
			}
			if v.Type() == macType && s != "" {
				if _, err := inventory.ParseMAC(s); err != nil {
					t.Errorf("%s is %q", path, s)
				}
			}
		case reflect.Int, reflect.Int64:
			if v.Int() < 0 || v.Int() > sizeLimit {
				t.Errorf("%s is %d", path, v.Int())
			}
		case reflect.Slice:
			if v.Len() > 1024 {
				t.Errorf("%s has %d members", path, v.Len())
			}
		}
	}
}

func TestNoFieldOfHardwareEscapesCleaning(t *testing.T) {
	var hw inventory.Hardware
	fill(reflect.ValueOf(&hw).Elem(), 3)
	seen := map[string]bool{}
	walk(t, "hardware", reflect.ValueOf(&hw), func(path string, v reflect.Value) { seen[path] = v.Kind() == reflect.String })
	if !seen["hardware.Ports[].Neighbour.System"] || !seen["hardware.PCI[].Model"] || len(seen) < 80 {
		t.Fatalf("only %d fields were filled", len(seen))
	}
	Clean(&hw)
	walk(t, "hardware", reflect.ValueOf(&hw), fits(t))
	if hw.Ports[0].MAC != "" || hw.BMC.MAC != "" {
		t.Error("a bad MAC was kept")
	}
	if hw.Firmware.Kind != "" {
		t.Errorf("firmware kind %q was kept", hw.Firmware.Kind)
	}
}

func TestListsAreBounded(t *testing.T) {
	var hw inventory.Hardware
	fill(reflect.ValueOf(&hw).Elem(), 3)
	hw.Disks = make([]inventory.Disk, 5000)
	hw.MissingDisks = make([]inventory.Disk, 5000)
	hw.Disks[255].Erases = make([]string, 999)
	hw.Ports, hw.DIMMs, hw.PCI = make([]inventory.Port, 5000), make([]inventory.DIMM, 5000), make([]inventory.PCIDevice, 5000)
	hw.Ports[0].Addresses = make([]string, 999)
	hw.CPU.Flags, hw.Firmware.BootOrder = make([]string, 5000), make([]inventory.BootEntry, 5000)
	hw.Accelerators = make([]inventory.PCIDevice, 5000)
	Clean(&hw)
	got := []int{
		len(hw.Disks), len(hw.Disks[255].Erases), len(hw.Ports), len(hw.Ports[0].Addresses), len(hw.DIMMs), len(hw.PCI),
		len(hw.CPU.Flags), len(hw.Firmware.BootOrder), len(hw.Accelerators), len(hw.MissingDisks),
	}
	if d := cmp.Diff([]int{MaxDisks, 16, 128, 64, 256, 1024, 256, 128, 128, MaxDisks}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestSizesCannotOverflowASum(t *testing.T) {
	hw := inventory.Hardware{Disks: make([]inventory.Disk, MaxDisks), DIMMs: make([]inventory.DIMM, 256)}
	for i := range hw.Disks {
		hw.Disks[i].SizeBytes = 1<<63 - 1
	}
	for i := range hw.DIMMs {
		hw.DIMMs[i].SizeBytes = 1<<63 - 1
	}
	Clean(&hw)
	if s := Summary(&hw); s == "" || strings.Contains(s, "-") {
		t.Errorf("the summary is %q", s)
	}
}

func TestAnHonestReportStaysAsItIs(t *testing.T) {
	hw := server()
	Clean(&hw)
	if d := cmp.Diff(server(), hw); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	hw.Ports[0].MAC = "52-54-00-AA-00-01"
	if Clean(&hw); hw.Ports[0].MAC != "52:54:00:aa:00:01" {
		t.Errorf("the MAC became %q", hw.Ports[0].MAC)
	}
}

func FuzzClean(f *testing.F) {
	honest, err := json.Marshal(server())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(honest)
	f.Add([]byte(`{"disks":[{"name":"\u0000\u001b","sizeBytes":-1}],"ports":[{"mac":"xx"}],"firmware":{"kind":"\u0007"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var hw inventory.Hardware
		if json.Unmarshal(text, &hw) != nil {
			return
		}
		Clean(&hw)
		walk(t, "hardware", reflect.ValueOf(&hw), fits(t))
		once, err := json.Marshal(hw)
		if err != nil {
			t.Fatal(err)
		}
		Clean(&hw)
		if twice, _ := json.Marshal(hw); string(twice) != string(once) {
			t.Fatalf("cleaned twice it is something else:\n%s\n%s", once, twice)
		}
		Summary(&hw)
		if changes := Diff(server(), hw); len(changes) > changeLimit+1 {
			t.Fatalf("%d changes", len(changes))
		}
		if changes := Diff(hw, hw); len(changes) > 0 {
			t.Fatalf("differs from itself: %v", changes)
		}
	})
}
