package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

func TestSizesAreReadAsPeopleWriteThem(t *testing.T) {
	for _, tc := range []struct {
		text string
		want int64
	}{
		{"0", 0},
		{"500", 500},
		{"64G", 64e9},
		{"64GB", 64e9},
		{"64 gb", 64e9},
		{"64Gi", 64 << 30},
		{"64GiB", 64 << 30},
		{"1.92T", 1_920_000_000_000},
		{"512k", 512_000},
		{"7b", 7},
	} {
		if got, err := ParseSize(tc.text); err != nil || got != tc.want {
			t.Errorf("%q is %d, want %d: %v", tc.text, got, tc.want, err)
		}
	}
	for _, text := range []string{"", "b", "G", "-1G", "much", "1e30", "0x10", "inf", "nan", "9999999P", "1,5G"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func TestRequirementsAreReadAsTheyAreShown(t *testing.T) {
	for name, tc := range map[string]struct {
		texts []string
		want  inventory.HardwareRequirements
	}{
		"one term":                  {[]string{"cpu=16"}, inventory.HardwareRequirements{CPUThreads: 16}},
		"commas between terms":      {[]string{"cpu=16,memory=64G,disk=1T"}, inventory.HardwareRequirements{CPUThreads: 16, MemoryBytes: 64e9, DiskBytes: 1e12}},
		"blanks between terms":      {[]string{" cpu=16  memory=64Gi "}, inventory.HardwareRequirements{CPUThreads: 16, MemoryBytes: 64 << 30}},
		"several flags":             {[]string{"cpu=16", "disks=2"}, inventory.HardwareRequirements{CPUThreads: 16, Disks: 2}},
		"the last one counts":       {[]string{"cpu=16", "cpu=8"}, inventory.HardwareRequirements{CPUThreads: 8}},
		"an empty one clears":       {[]string{"cpu=16", "", "disks=2"}, inventory.HardwareRequirements{Disks: 2}},
		"an expression is the rest": {[]string{`cpu=4,expression=host.cpu.threads > 16 && host.labels["a,b"] == "x=y"`}, inventory.HardwareRequirements{CPUThreads: 4, Expression: `host.cpu.threads > 16 && host.labels["a,b"] == "x=y"`}},
		"a port's speed":            {[]string{"port=25G"}, inventory.HardwareRequirements{PortMbps: 25000}},
		"an accelerator":            {[]string{"accelerator=10de:2331"}, inventory.HardwareRequirements{AcceleratorID: "10de:2331", Accelerators: 1}},
		"arch and firmware":         {[]string{"arch=arm64,firmware=uefi,rotational=no"}, inventory.HardwareRequirements{Arch: inventory.ARM64, Firmware: "uefi", IsRotational: new(bool)}},
	} {
		t.Run(name, func(t *testing.T) {
			var got, again inventory.HardwareRequirements
			if err := ParseRequirements(&got, tc.texts); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if err := ParseRequirements(&again, []string{RequirementsText(got)}); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(got, again); d != "" {
				t.Errorf("%s is read as something else: %s", RequirementsText(got), d)
			}
		})
	}
}

func TestBadTermsSayWhatIsMeant(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"a requirement without value", ParseRequirements(new(inventory.HardwareRequirements), []string{"cpu"}), "has no value"},
		{"a requirement that is none", ParseRequirements(new(inventory.HardwareRequirements), []string{"colour=red"}), "knows no \"colour\""},
		{"half a CPU", ParseRequirements(new(inventory.HardwareRequirements), []string{"cpu=1.5"}), "is not a count"},
		{"a speed that is none", ParseRequirements(new(inventory.HardwareRequirements), []string{"port=fast"}), "is not the speed"},
		{"neither yes nor no", ParseRequirements(new(inventory.HardwareRequirements), []string{"rotational=maybe"}), "neither yes nor no"},
		{"a disk without key", second(parseDisk("--keep-disk", "S4XY")), "has no value"},
		{"a disk of no serial", second(parseDisk("--keep-disk", "serial=")), "serial is empty"},
		{"a disk of a colour", second(parseDisk("--keep-disk", "colour=red")), "knows no"},
		{"a taint without key", second(ParseTaints([]string{"=x"})), "has no key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var wrong *usageError
			if !errors.As(tc.err, &wrong) || !strings.Contains(wrong.err.Msg, tc.want) || wrong.err.Hint == "" {
				t.Errorf("%v; want %q with a hint", tc.err, tc.want)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestDisksAreReadWithTheBlanksOfTheirModels(t *testing.T) {
	got, err := parseDisk("--keep-disk", "model=Samsung SSD 990 PRO,min-size=1T rotational=no")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(inventory.DiskHint{Model: "Samsung SSD 990 PRO", MinBytes: 1e12, IsRotational: new(bool)}, got); d != "" {
		t.Error(d)
	}
}

func FuzzParseDisk(f *testing.F) {
	for _, text := range []string{"serial=a", "model=a b,min-size=1T", "a=b=c", ",,=", "model=x y=z"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if h, err := parseDisk("--keep-disk", text); err == nil && h.IsZero() {
			t.Errorf("%q chooses any disk", text)
		}
	})
}
