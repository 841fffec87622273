package hardware

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestSummaryTellsAMachineInOneLine(t *testing.T) {
	amd, lab, gpu := server(), inventory.Hardware{}, server()
	amd.CPU = inventory.CPU{Model: "AMD EPYC 9354 32-Core Processor", Sockets: 1, Threads: 64}
	amd.Ports = append(amd.Ports, inventory.Port{Name: "eno3", SpeedMbps: 100000}, inventory.Port{Name: "eno4"})
	lab.CPU = inventory.CPU{Arch: inventory.X8664, Threads: 1}
	lab.MemoryBytes, lab.Disks = 976<<20, []inventory.Disk{{Name: "vda", SizeBytes: 8 << 30}, {Name: "sr0", IsRemovable: true, SizeBytes: 1 << 30}}
	gpu.Accelerators = []inventory.PCIDevice{{ID: "10de:2330", Model: "H100"}, {ID: "10de:2330", Model: "H100"}, {ID: "1da3:1020"}}
	for name, c := range map[string]struct {
		hw   *inventory.Hardware
		want string
	}{
		"a two-socket server":                     {new(server()), "2 × Xeon Gold 6338 (64 threads), 512 GiB, 4 disks 12.8 TB, 2 × 25 Gb/s"},
		"one socket, ports of several speeds":     {&amd, "EPYC 9354 (64 threads), 512 GiB, 4 disks 12.8 TB, 1 × 100 Gb/s, 2 × 25 Gb/s, 1 port without link"},
		"a virtual machine of which little shows": {&lab, "x86_64 (1 thread), 976 MiB, 1 disk 8.6 GB"},
		"accelerators by model":                   {&gpu, "2 × Xeon Gold 6338 (64 threads), 512 GiB, 4 disks 12.8 TB, 2 × 25 Gb/s, 1 × accelerator 1da3:1020, 2 × H100"},
		"nothing known":                           {&inventory.Hardware{}, ""},
		"never inspected":                         {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Summary(c.hw); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestSizesAreWrittenAsTheyAreSold(t *testing.T) {
	for n, want := range map[int64]string{
		64 << 30: "64 GiB", 1536 << 20: "1.5 GiB", 2 << 40: "2 TiB", 3_200_000_000_000: "3.2 TB", 960_197_124_096: "960.2 GB",
		999_999_000_000: "1 TB", 512: "512 bytes", 0: "0 bytes",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}

func TestPhrasesHaveAPlural(t *testing.T) {
	for one, many := range map[string]string{
		"has no disk": "have no disk", "is in maintenance": "are in maintenance", "was never inspected": "were never inspected",
		"does not meet it": "do not meet it", "waits": "wait", "stands elsewhere": "stand elsewhere",
	} {
		if got := Plural(one); got != many {
			t.Errorf("%q became %q, want %q", one, got, many)
		}
	}
}

func TestMeetsNamesTheFirstThingThatIsMissing(t *testing.T) {
	type req = inventory.HardwareRequirements
	plain := server()
	plain.DIMMs = nil
	gpu := server()
	gpu.Accelerators = []inventory.PCIDevice{{ID: "10DE:2330"}, {ID: "10de:2330"}}
	for name, c := range map[string]struct {
		r    req
		hw   *inventory.Hardware
		want string
	}{
		"nothing is asked for":                             {req{}, nil, ""},
		"all of it is there":                               {req{Arch: inventory.X8664, CPUThreads: 64, MemoryBytes: 512 << 30, Disks: 4, DiskBytes: 3e12, IsRotational: new(false), PortMbps: 25000, Firmware: "uefi"}, new(server()), ""},
		"another architecture":                             {req{Arch: inventory.ARM64}, new(server()), "is not of architecture arm64"},
		"too few threads":                                  {req{CPUThreads: 65}, new(server()), "has less than 65 CPU threads"},
		"too little memory":                                {req{MemoryBytes: 513 << 30}, new(server()), "has less than 513 GiB of memory"},
		"the kernel's share of memory does not count":      {req{MemoryBytes: 512 << 30}, &plain, ""},
		"but a missing module does":                        {req{MemoryBytes: 576 << 30}, &plain, "has less than 576 GiB of memory"},
		"memory is known from SMBIOS before an inspection": {req{MemoryBytes: 512 << 30}, nil, ""},
		"too few disks":                                    {req{Disks: 5}, new(server()), "has less than 5 disks"},
		"no disk of that kind":                             {req{IsRotational: new(true)}, new(server()), "has less than 1 rotating disk"},
		"no disk of that size":                             {req{DiskBytes: 4e12}, new(server()), "has no disk of at least 4 TB"},
		"no port of that speed":                            {req{PortMbps: 100000}, new(server()), "has no port of at least 100 Gb/s"},
		"accelerators of a vendor":                         {req{AcceleratorID: "10de", Accelerators: 2}, &gpu, ""},
		"accelerators of one kind":                         {req{AcceleratorID: "10de:2330"}, &gpu, ""},
		"a vendor's id is no prefix of another":            {req{AcceleratorID: "10d"}, &gpu, "has less than 1 10d accelerator"},
		"too few accelerators":                             {req{Accelerators: 3}, &gpu, "has less than 3 accelerators"},
		"the other firmware":                               {req{Firmware: "bios"}, new(server()), "does not start by bios"},
		"the hardware was never looked at":                 {req{CPUThreads: 1}, nil, "was never inspected"},
		"an expression":                                    {req{Expression: `host.cpu.threads > 100`}, new(server()), "does not meet the expression host.cpu.threads > 100"},
	} {
		t.Run(name, func(t *testing.T) {
			ok, why := meets(c.r, rackHost(), c.hw)
			if why != c.want || ok != (c.want == "") {
				t.Errorf("got %v, %q; want %q", ok, why, c.want)
			}
		})
	}
}

func TestRequirementsThatDoNotCompileAreMetByNoHost(t *testing.T) {
	ok, why := meets(inventory.HardwareRequirements{Expression: "host."}, rackHost(), new(server()))
	if ok || !strings.HasPrefix(why, "cannot be compared: ") {
		t.Errorf("got %v, %q", ok, why)
	}
}

// meets reports whether one host meets requirements; use a Matcher for several. An expression that does not compile is
// met by no host.
func meets(r inventory.HardwareRequirements, h inventory.Host, hw *inventory.Hardware) (ok bool, why string) {
	m, err := NewMatcher(r)
	if err != nil {
		return false, "cannot be compared: " + err.Error()
	}
	return m.Meets(NewSubject(&h, hw))
}
