// Package hardware owns the judgement of a machine by its parts. It says whether a report is fit to store, what has
// changed, and whether the hardware is right and sufficient. It never asks a machine anything.
//
// Phrases such as "has less than 64 GiB of memory" begin with a verb in the third person. A caller can put a host in front,
// or with Plural a number of hosts.
package hardware

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Plural turns a phrase about one host into one about several: "has no disk" becomes "have no disk".
func Plural(phrase string) string {
	verb, rest, _ := strings.Cut(phrase, " ")
	switch verb {
	case "is":
		verb = "are"
	case "was":
		verb = "were"
	case "has":
		verb = "have"
	case "does":
		verb = "do"
	default:
		verb = strings.TrimSuffix(verb, "s")
	}
	return strings.TrimSpace(verb + " " + rest)
}

// Memory returns the memory of a machine in bytes, 0 for unknown. It adds up the modules where they are known, because
// firmware and kernel keep some of it.
func Memory(h *inventory.Host, hw *inventory.Hardware) int64 {
	var n int64
	if hw != nil {
		for _, d := range hw.DIMMs {
			n += d.SizeBytes
		}
		n = max(n, hw.MemoryBytes)
	}
	if n == 0 && h != nil {
		n = int64(h.MemoryMiB) << 20
	}
	return n
}

// Arch returns a machine's architecture, "" when it is not known.
func Arch(h *inventory.Host, hw *inventory.Hardware) inventory.Arch {
	if hw != nil && hw.CPU.Arch != "" {
		return hw.CPU.Arch
	}
	return h.Arch
}

// Bytes writes a size for people: in powers of two when that is a round number, as for memory. Else it uses powers of ten,
// as for disks.
func Bytes(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}} {
		if n >= u.size && n%(u.size/2) == 0 {
			return decimals(float64(n)/float64(u.size)) + " " + u.name
		}
	}
	return decimal(n)
}

// decimal writes a size in powers of ten.
func decimal(n int64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}} {
		if float64(n) >= u.size*0.9995 {
			return decimals(float64(n)/u.size) + " " + u.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// decimals writes a number with one digit after the point, unless that is a zero.
func decimals(f float64) string { return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") }

// Speed writes a port's speed for people.
func Speed(mbps int) string {
	switch {
	case mbps <= 0:
		return "unknown speed"
	case mbps >= 1000:
		return decimals(float64(mbps)/1000) + " Gb/s"
	}
	return fmt.Sprintf("%d Mb/s", mbps)
}

// Summary describes a machine in one line, for lists. An example is "2 × Xeon Gold 6338 (64 threads), 512 GiB, 4 disks
// 12.8 TB, 2 × 25 Gb/s".
func Summary(hw *inventory.Hardware) string {
	if hw == nil {
		return ""
	}
	parts := []string{cpuSummary(hw.CPU)}
	if n := Memory(nil, hw); n > 0 {
		parts = append(parts, MemoryText(n))
	}
	parts = append(parts, diskSummary(hw.Disks), portSummary(hw.Ports), acceleratorSummary(hw.Accelerators))
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// MemoryText writes memory to the next GiB: a kernel shows a little less than there is.
func MemoryText(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", (n+1<<19)>>20)
	}
	return fmt.Sprintf("%d GiB", (n+1<<29)>>30)
}

func cpuSummary(c inventory.CPU) string {
	model := cmp.Or(ShortCPU(c.Model), string(c.Arch))
	if model == "" && c.Threads == 0 {
		return ""
	}
	if c.Sockets > 1 {
		model = fmt.Sprintf("%d × %s", c.Sockets, model)
	}
	if c.Threads > 0 {
		model = strings.TrimSpace(fmt.Sprintf("%s (%s)", model, count(c.Threads, "thread")))
	}
	return model
}

// noise is what vendors put into the name of a processor that does not tell it from others.
var noise = strings.NewReplacer("(R)", " ", "(r)", " ", "(TM)", " ", "(tm)", " ", "®", " ", "™", " ")

// ShortCPU shortens a processor's name: "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz" becomes "Xeon Gold 6338".
func ShortCPU(model string) string {
	model, _, _ = strings.Cut(noise.Replace(model), "@")
	var words []string
	for _, w := range strings.Fields(model) {
		switch {
		case w == "CPU", w == "Processor", w == "Intel", w == "AMD", strings.HasSuffix(w, "-Core"):
		default:
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

func diskSummary(disks []inventory.Disk) string {
	n, total := 0, int64(0)
	for _, d := range disks {
		if isFixed(d) {
			n++
			total += d.SizeBytes
		}
	}
	if n == 0 {
		return ""
	}
	return count(n, "disk") + " " + decimal(total)
}

// isFixed reports whether a disk belongs to the machine: it is not a stick, a card reader or a BMC's virtual drive.
func isFixed(d inventory.Disk) bool { return !d.IsRemovable && d.SizeBytes > 0 }

func portSummary(ports []inventory.Port) string {
	byMbps := map[int]int{}
	for _, p := range ports {
		mbps := max(p.SpeedMbps, 0)
		if mbps == 0 && p.HasLink { // virtual ones do not say
			mbps = -1
		}
		byMbps[mbps]++
	}
	var parts []string
	for _, mbps := range slices.Backward(slices.Sorted(maps.Keys(byMbps))) { // the fastest first
		if n := byMbps[mbps]; mbps < 0 {
			parts = append(parts, count(n, "port"))
		} else if mbps == 0 {
			parts = append(parts, count(n, "port")+" without link")
		} else {
			parts = append(parts, fmt.Sprintf("%d × %s", n, Speed(mbps)))
		}
	}
	return strings.Join(parts, ", ")
}

func acceleratorSummary(all []inventory.PCIDevice) string {
	byModel := map[string]int{}
	for _, a := range all {
		name := cmp.Or(strings.TrimSpace(a.Model), "accelerator "+a.ID)
		byModel[name]++
	}
	var parts []string
	for name, n := range byModel {
		parts = append(parts, fmt.Sprintf("%d × %s", n, name))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
