package cli

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// units are what sizes are written in. G is 10^9, as disks are sold, and Gi is 2^30.
var units = []struct {
	suffix string
	bytes  float64
}{
	{"ki", 1 << 10},
	{"mi", 1 << 20},
	{"gi", 1 << 30},
	{"ti", 1 << 40},
	{"pi", 1 << 50},
	{"k", 1e3},
	{"m", 1e6},
	{"g", 1e9},
	{"t", 1e12},
	{"p", 1e15},
}

// ParseSize reads a size in bytes: 500, 64G, 64GB, 64GiB, 1.92T.
func ParseSize(text string) (int64, error) {
	number := strings.ToLower(strings.TrimSpace(text))
	factor := 1.0
	if trimmed := strings.TrimSuffix(number, "b"); trimmed != "" {
		number = trimmed
	}
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n*factor > 1<<62 || strings.ContainsAny(number, "xpe") {
		return 0, Usage("write it as 64G (10^9 bytes), 64Gi (2^30 bytes) or 1.92T", "%q is not a size", text)
	}
	return int64(n * factor), nil
}

// keyValue is one KEY=VALUE of a flag that takes several.
type keyValue struct{ key, value string }

// parseTerms takes KEY=VALUE,KEY=VALUE apart; blanks separate as commas do. The value of the key named last, such as an
// expression, is all that follows.
func parseTerms(flag, text, last string) ([]keyValue, error) {
	var terms []keyValue
	for text = strings.TrimLeft(text, ", \t"); text != ""; text = strings.TrimLeft(text, ", \t") {
		key, rest, ok := strings.Cut(text, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if !ok || key == "" || strings.ContainsAny(key, ", ") {
			return nil, Usage("write it as KEY=VALUE, and more of them with commas between", "%s %q has no value", flag, text)
		}
		if key == last {
			return append(terms, keyValue{key, strings.TrimSpace(rest)}), nil
		}
		end := nextTerm(rest)
		terms, text = append(terms, keyValue{key, strings.Trim(rest[:end], ", \t")}), rest[end:]
	}
	return terms, nil
}

// nextTerm finds where the next KEY= begins, so that the blank in "model=Samsung SSD" separates nothing.
func nextTerm(text string) int {
	for i := 0; i < len(text); i++ {
		if text[i] == ',' {
			return i
		}
		if text[i] != ' ' && text[i] != '\t' {
			continue
		}
		word, _, _ := strings.Cut(strings.TrimLeft(text[i:], " \t"), " ")
		if key, _, ok := strings.Cut(word, "="); ok && key != "" && !strings.Contains(key, ",") {
			return i
		}
	}
	return len(text)
}

// requirementKeys are the keys of --require, in the order that people are told of them.
var requirementKeys = []string{"cpu", "memory", "disk", "disks", "rotational", "port", "accelerator", "accelerators", "arch", "firmware", "expression"}

// ParseRequirements lays the terms of --require over requirements. An empty text takes them all away.
func ParseRequirements(r *inventory.HardwareRequirements, texts []string) error {
	for _, text := range texts {
		if strings.TrimSpace(text) == "" {
			*r = inventory.HardwareRequirements{}
			continue
		}
		terms, err := parseTerms("--require", text, "expression")
		if err != nil {
			return err
		}
		for _, t := range terms {
			if err := require(r, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func require(r *inventory.HardwareRequirements, t keyValue) (err error) {
	switch t.key {
	case "cpu":
		r.CPUThreads, err = parseCount("--require cpu", t.value)
	case "memory":
		r.MemoryBytes, err = ParseSize(t.value)
	case "disk":
		r.DiskBytes, err = ParseSize(t.value)
	case "disks":
		r.Disks, err = parseCount("--require disks", t.value)
	case "rotational":
		r.IsRotational, err = parseYesNo("--require rotational", t.value)
	case "port":
		r.PortMbps, err = parseSpeed(t.value)
	case "accelerator":
		r.AcceleratorID = t.value
		r.Accelerators = max(r.Accelerators, 1)
	case "accelerators":
		r.Accelerators, err = parseCount("--require accelerators", t.value)
	case "arch":
		r.Arch = inventory.Arch(t.value)
	case "firmware":
		r.Firmware = t.value
	case "expression":
		r.Expression = t.value
	default:
		return Usage("use "+strings.Join(requirementKeys, ", "), "--require knows no %q", t.key)
	}
	return err
}

func parseCount(flag, text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, Usage("write a whole number", "%s: %q is not a count", flag, text)
	}
	return int(n), nil
}

func parseYesNo(flag, text string) (*bool, error) {
	is := text == "yes" || text == "true"
	if !is && text != "no" && text != "false" {
		return nil, Usage("write yes or no", "%s: %q is neither yes nor no", flag, text)
	}
	return &is, nil
}

// parseSpeed reads the speed of a port in Mb/s: 25G, 1000M or 1000.
func parseSpeed(text string) (int, error) {
	number, factor := strings.ToLower(text), 1.0
	if rest, ok := strings.CutSuffix(number, "g"); ok {
		number, factor = rest, 1000
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(number, "m"), 32)
	if err != nil || math.IsNaN(n) || n < 0 || n > 1e6 {
		return 0, Usage("write it as 25G or 1000M, in bits per second", "%q is not the speed of a port", text)
	}
	return int(n * factor), nil
}

// diskKeys are the keys that choose a disk.
var diskKeys = []string{"serial", "wwn", "name", "by-path", "vendor", "model", "transport", "min-size", "max-size", "rotational"}

// parseDisk reads what chooses a disk: serial=S4XY or model=PM9A3,min-size=1T.
func parseDisk(flag, text string) (h inventory.DiskHint, err error) {
	terms, err := parseTerms(flag, text, "")
	if err != nil {
		return h, err
	}
	for _, t := range terms {
		if t.value == "" {
			return h, Usage("write it as "+t.key+"=VALUE", "%s: %s is empty", flag, t.key)
		}
		switch t.key {
		case "serial":
			h.Serial = t.value
		case "wwn":
			h.WWN = t.value
		case "name":
			h.Name = t.value
		case "by-path":
			h.ByPath = t.value
		case "vendor":
			h.Vendor = t.value
		case "model":
			h.Model = t.value
		case "transport":
			h.Transport = t.value
		case "min-size":
			h.MinBytes, err = ParseSize(t.value)
		case "max-size":
			h.MaxBytes, err = ParseSize(t.value)
		case "rotational":
			h.IsRotational, err = parseYesNo(flag+" rotational", t.value)
		default:
			return h, Usage("use "+strings.Join(diskKeys, ", "), "%s knows no %q", flag, t.key)
		}
		if err != nil {
			return h, err
		}
	}
	if h.IsZero() {
		return h, Usage("write it as serial=S4XY, or with another of "+strings.Join(diskKeys, ", "), "%s names no disk", flag)
	}
	return h, nil
}

// none is how a list or a text of a host is taken away.
const none = "none"

// ParseDisks reads a list of disks; none alone is an empty list.
func ParseDisks(flag string, texts []string) ([]inventory.DiskHint, error) {
	disks := []inventory.DiskHint{}
	if slices.Equal(texts, []string{none}) {
		return disks, nil
	}
	for _, text := range texts {
		h, err := parseDisk(flag, text)
		if err != nil {
			return nil, err
		}
		disks = append(disks, h)
	}
	return disks, nil
}

// ParseTaints reads KEY=VALUE or KEY; none alone is an empty list.
func ParseTaints(texts []string) ([]inventory.Taint, error) {
	taints := []inventory.Taint{}
	if slices.Equal(texts, []string{none}) {
		return taints, nil
	}
	for _, text := range texts {
		key, value, _ := strings.Cut(text, "=")
		if key == "" {
			return nil, Usage("write KEY=VALUE or KEY, or none for no taint", "--taint %q has no key", text)
		}
		taints = append(taints, inventory.Taint{Key: key, Value: value})
	}
	return taints, nil
}

// RootFlags choose the disk that operating systems are written to; nil is not given.
type RootFlags struct {
	RootSerial  *string `help:"Root disk: its serial number." placeholder:"SERIAL"`
	RootWWN     *string `name:"root-wwn" help:"Root disk: its world wide name." placeholder:"WWN"`
	RootName    *string `help:"Root disk: its name, such as sda; names change between boots." placeholder:"NAME"`
	RootByPath  *string `help:"Root disk: its name below /dev/disk/by-path." placeholder:"PATH"`
	RootModel   *string `help:"Root disk: part of its model." placeholder:"TEXT"`
	RootMinSize *string `help:"Root disk: its least size, such as 480G." placeholder:"SIZE"`
}

// IsGiven reports whether any of them was given.
func (f RootFlags) IsGiven() bool { return f != RootFlags{} }

// Apply lays the flags over a hint; none and an empty text take a part of it away.
func (f RootFlags) Apply(h *inventory.DiskHint) error {
	for _, x := range []struct {
		from *string
		to   *string
	}{{f.RootSerial, &h.Serial}, {f.RootWWN, &h.WWN}, {f.RootName, &h.Name}, {f.RootByPath, &h.ByPath}, {f.RootModel, &h.Model}} {
		if Set(x.to, x.from); *x.to == none {
			*x.to = ""
		}
	}
	if f.RootMinSize == nil {
		return nil
	}
	h.MinBytes = 0
	if *f.RootMinSize == "" || *f.RootMinSize == none {
		return nil
	}
	var err error
	h.MinBytes, err = ParseSize(*f.RootMinSize)
	return err
}
