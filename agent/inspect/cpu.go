package inspect

import (
	"bufio"
	"bytes"
	"cmp"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

var cpuFolder = regexp.MustCompile(`^cpu[0-9]+$`)

// cpu reads /proc/cpuinfo for names and sysfs for the topology, which is there on every architecture.
func (s *Source) cpu() inventory.CPU {
	c := s.cpuinfo()
	sockets, cores := make(map[string]bool), make(map[string]bool)
	for _, name := range s.list("sys/devices/system/cpu") {
		if !cpuFolder.MatchString(name) || s.text("sys/devices/system/cpu", name, "online") == "0" {
			continue
		}
		c.Threads++
		topology := "sys/devices/system/cpu/" + name + "/topology"
		sockets[s.text(topology, "physical_package_id")] = true
		siblings := s.text(topology, "core_cpus_list")
		if siblings == "" { // before Linux 5.4
			siblings = s.text(topology, "thread_siblings_list")
		}
		siblings = cmp.Or(siblings, name)
		cores[siblings] = true
		// A hybrid processor has several; the fastest is what the data sheet says.
		c.MHz = max(c.MHz, int(s.number("sys/devices/system/cpu", name, "cpufreq/cpuinfo_max_freq")/1000))
	}
	c.Sockets, c.Cores = len(sockets), len(cores)
	return c
}

func (s *Source) cpuinfo() inventory.CPU {
	c := inventory.CPU{Arch: map[string]inventory.Arch{"amd64": inventory.X8664, "arm64": inventory.ARM64, "386": inventory.I386}[runtime.GOARCH]}
	scanner := bufio.NewScanner(bytes.NewReader(s.raw("proc/cpuinfo")))
	scanner.Buffer(nil, 64<<10)
	for scanner.Scan() {
		key, value, ok := strings.Cut(scanner.Text(), ":")
		if !ok && c.Model != "" { // the end of the first processor
			break
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch key {
		case "vendor_id", "CPU implementer":
			c.Vendor = cpuVendor(clean(value))
		case "model name":
			c.Model = strings.Join(strings.Fields(clean(value)), " ")
		case "cpu MHz":
			mhz, _ := strconv.ParseFloat(value, 64) // 0 when it is no number
			c.MHz = int(min(max(mhz, 0), 100_000))
		case "microcode":
			c.Microcode = clean(value)
		case "flags", "Features":
			words := strings.Fields(inventory.Clean(value, 8192))
			slices.Sort(words)
			c.Flags = slices.Compact(words[:min(len(words), 400)])
		}
	}
	return c
}

func cpuVendor(id string) string {
	names := map[string]string{
		"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "HygonGenuine": "Hygon", "CentaurHauls": "VIA", "  Shanghai  ": "Zhaoxin",
		"0x41": "ARM", "0x42": "Broadcom", "0x43": "Cavium", "0x48": "HiSilicon", "0x4e": "NVIDIA", "0x50": "APM", "0xc0": "Ampere", "0x46": "Fujitsu", "0x61": "Apple",
	}
	if name, ok := names[id]; ok {
		return name
	}
	return id
}

// memory is the installed memory in bytes. The kernel's MemTotal lacks what firmware and the kernel itself took.
// SMBIOS is better where it is plausible: at least MemTotal, and at most half as much again plus 1 GiB.
func (s *Source) memory(dimms []inventory.DIMM) int64 {
	var total, built int64
	for _, line := range strings.Split(string(s.raw("proc/meminfo")), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			if kb, err := strconv.ParseInt(f[1], 10, 53); err == nil {
				total = kb << 10
			}
		}
	}
	for _, d := range dimms {
		built += d.SizeBytes
	}
	if built >= total && (total == 0 || built <= total+total/2+1<<30) {
		return built
	}
	return total
}
