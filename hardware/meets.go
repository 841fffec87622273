package hardware

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Matcher is a set of requirements, ready to be evaluated for many hosts.
type Matcher struct {
	rules      []rule
	expression *Expression
}

// rule is one requirement. Its phrase says what a host is that does not meet it; have says what it has instead.
type rule struct {
	phrase string
	meets  func(*Subject) bool
	have   func(*Subject) string
	// isOfHardware marks what only an inspection can tell.
	isOfHardware bool
	// what is asked about, and asked how much of it; amount is how much a host has, where that is a number, and isKnown
	// whether that is known: after an inspection when nil.
	what, asked string
	amount      func(*Subject) int64
	write       func(int64) string
	isKnown     func(*Subject) bool
}

// Miss is one requirement that a host does not meet.
type Miss struct {
	What  string // "memory"
	Asked string // "64 GiB"; "" for what is not measured
	Have  int64  // how much the host has, where that is a number
	Has   string // Have for people: "32 GiB"; "" where it is no number
	Note  string // what else to say of it
}

// Detail says what is required and what there is: "64 GiB required, 32 GiB at most" where several hosts share it.
func (m *Miss) Detail(isShared bool) string {
	switch {
	case m.Asked == "":
		return m.Note
	case m.Has == "":
		return m.Asked + " asked"
	case isShared:
		return m.Asked + " asked, " + m.Has + " at most"
	}
	return m.Asked + " asked, " + m.Has + " there"
}

// Misses returns all requirements that a host does not meet. Unknown hardware counts as met.
func (m *Matcher) Misses(s *Subject) (all []Miss) {
	for i := range m.rules {
		r := &m.rules[i]
		isKnown := s.hw != nil
		if r.isKnown != nil {
			isKnown = r.isKnown(s)
		}
		if !isKnown || r.meets(s) {
			continue
		}
		x := Miss{What: r.what, Asked: r.asked}
		if r.amount != nil {
			x.Have = r.amount(s)
			x.Has = r.write(x.Have)
		}
		all = append(all, x)
	}
	if m.expression != nil {
		if ok, why := m.expression.Holds(s); !ok && why != errNeverInspected.Error() {
			all = append(all, Miss{What: "the expression " + inventory.Clean(m.expression.String(), 120)})
		}
	}
	return all
}

// NewMatcher makes requirements ready; it fails if their expression cannot be compiled.
func NewMatcher(r inventory.HardwareRequirements) (*Matcher, error) {
	m := &Matcher{rules: append(rules(r), diskRules(r)...)}
	if strings.TrimSpace(r.Expression) == "" {
		return m, nil
	}
	var err error
	m.expression, err = Compile(r.Expression)
	return m, err
}

// Meets reports whether a host is enough, and if not, in a phrase, the first thing that it lacks. A required part that is
// unknown counts as missing.
func (m *Matcher) Meets(s *Subject) (ok bool, why string) {
	for i := range m.rules {
		if r := &m.rules[i]; !r.meets(s) {
			if s.hw == nil && r.isOfHardware {
				return false, errNeverInspected.Error()
			}
			return false, r.phrase
		}
	}
	if m.expression != nil {
		return m.expression.Holds(s)
	}
	return true, ""
}

// faults returns everything that a host lacks, with what it has instead.
func (m *Matcher) faults(s *Subject) (all []string) {
	for _, r := range m.rules {
		switch {
		case r.meets(s):
		case r.have == nil:
			all = append(all, r.phrase)
		default:
			all = append(all, r.phrase+": "+r.have(s))
		}
	}
	if m.expression != nil {
		if ok, why := m.expression.Holds(s); !ok {
			all = append(all, why)
		}
	}
	return all
}

func rules(r inventory.HardwareRequirements) (all []rule) {
	if r.Arch != "" {
		all = append(all, rule{
			phrase: "is not of architecture " + string(r.Arch),
			meets:  func(s *Subject) bool { return Arch(s.host, s.hw) == r.Arch },
			have:   func(s *Subject) string { return orUnknown(string(Arch(s.host, s.hw))) },
			what:   "architecture", asked: string(r.Arch), isKnown: func(s *Subject) bool { return Arch(s.host, s.hw) != "" },
		})
	}
	if r.CPUThreads > 0 {
		all = append(all, rule{
			phrase:       fmt.Sprintf("has less than %s", count(r.CPUThreads, "CPU thread")),
			meets:        func(s *Subject) bool { return s.hw != nil && s.hw.CPU.Threads >= r.CPUThreads },
			have:         func(s *Subject) string { return fmt.Sprint(s.hw.CPU.Threads) },
			isOfHardware: true,
			what:         "CPU threads", asked: fmt.Sprint(r.CPUThreads), write: plain, amount: func(s *Subject) int64 { return int64(s.hw.CPU.Threads) },
		})
	}
	if r.MemoryBytes > 0 {
		all = append(all, rule{
			phrase: fmt.Sprintf("has less than %s of memory", Bytes(r.MemoryBytes)),
			meets:  func(s *Subject) bool { return isEnoughMemory(s, r.MemoryBytes) },
			have:   func(s *Subject) string { return MemoryText(Memory(s.host, s.hw)) },
			what:   "memory", asked: Bytes(r.MemoryBytes), write: MemoryText, amount: func(s *Subject) int64 { return Memory(s.host, s.hw) },
			isKnown: func(s *Subject) bool { return Memory(s.host, s.hw) > 0 },
		})
	}
	if r.PortMbps > 0 {
		all = append(all, rule{
			phrase:       "has no port of at least " + Speed(r.PortMbps),
			meets:        func(s *Subject) bool { return s.hw != nil && fastest(s.hw) >= r.PortMbps },
			have:         func(s *Subject) string { return "the fastest has " + Speed(fastest(s.hw)) },
			isOfHardware: true,
			what:         "port speed", asked: Speed(r.PortMbps), amount: func(s *Subject) int64 { return int64(fastest(s.hw)) },
			write:   func(n int64) string { return Speed(int(n)) },
			isKnown: func(s *Subject) bool { return s.hw != nil && (fastest(s.hw) > 0 || len(s.hw.Ports) == 0) }, // without a link it is not
		})
	}
	if n := r.Accelerators; n > 0 || r.AcceleratorID != "" {
		n = max(n, 1)
		all = append(all, rule{
			phrase:       "has less than " + count(n, strings.TrimSpace(r.AcceleratorID+" accelerator")),
			meets:        func(s *Subject) bool { return s.hw != nil && accelerators(s.hw, r.AcceleratorID) >= n },
			have:         func(s *Subject) string { return fmt.Sprint(accelerators(s.hw, r.AcceleratorID)) },
			isOfHardware: true,
			what:         strings.TrimSpace(r.AcceleratorID + " accelerators"), asked: fmt.Sprint(n), write: plain,
			amount: func(s *Subject) int64 { return int64(accelerators(s.hw, r.AcceleratorID)) },
		})
	}
	if r.Firmware != "" {
		all = append(all, rule{
			phrase: "does not start by " + r.Firmware,
			meets:  func(s *Subject) bool { return isSameFirmware(firmware(s), inventory.Firmware(r.Firmware)) },
			have:   func(s *Subject) string { return orUnknown(string(firmware(s))) },
			what:   "firmware", asked: r.Firmware, isKnown: func(s *Subject) bool { return firmware(s) != "" },
		})
	}
	return all
}

func diskRules(r inventory.HardwareRequirements) (all []rule) {
	kind, isRotational := "disk", r.IsRotational
	if isRotational != nil {
		kind = map[bool]string{true: "rotating disk", false: "solid-state disk"}[*isRotational]
	}
	if n := r.Disks; n > 0 || isRotational != nil && r.DiskBytes == 0 {
		n = max(n, 1)
		all = append(all, rule{
			phrase:       "has less than " + count(n, kind),
			meets:        func(s *Subject) bool { return s.hw != nil && disks(s.hw, isRotational, 0) >= n },
			have:         func(s *Subject) string { return fmt.Sprint(disks(s.hw, isRotational, 0)) },
			isOfHardware: true,
			what:         kind + "s", asked: fmt.Sprint(n), write: plain, amount: func(s *Subject) int64 { return int64(disks(s.hw, isRotational, 0)) },
		})
	}
	if r.DiskBytes > 0 {
		all = append(all, rule{
			phrase:       fmt.Sprintf("has no %s of at least %s", kind, Bytes(r.DiskBytes)),
			meets:        func(s *Subject) bool { return s.hw != nil && disks(s.hw, isRotational, r.DiskBytes) > 0 },
			isOfHardware: true,
			what:         "size of a " + kind, asked: Bytes(r.DiskBytes), write: Bytes, amount: func(s *Subject) int64 { return biggest(s.hw, isRotational) },
		})
	}
	return all
}

// isEnoughMemory compares memory where the modules are known, and else with what a kernel shows, which is up to 3 % less
// than is built in: a machine of 64 GiB is not turned away for showing 62.6 GiB.
func isEnoughMemory(s *Subject, want int64) bool {
	have := Memory(s.host, s.hw)
	if s.hw != nil && len(s.hw.DIMMs) > 0 {
		return have >= want
	}
	return have >= want-want/32
}

// disks counts the disks that belong to the machine and can be written, of a kind and size.
func disks(hw *inventory.Hardware, isRotational *bool, minBytes int64) (n int) {
	for _, d := range hw.Disks {
		if isFixed(d) && !d.IsReadOnly && d.SizeBytes >= minBytes && (isRotational == nil || *isRotational == d.IsRotational) {
			n++
		}
	}
	return n
}

// biggest returns the size of the biggest disk that disks counts.
func biggest(hw *inventory.Hardware, isRotational *bool) (n int64) {
	for _, d := range hw.Disks {
		if isFixed(d) && !d.IsReadOnly && (isRotational == nil || *isRotational == d.IsRotational) {
			n = max(n, d.SizeBytes)
		}
	}
	return n
}

func fastest(hw *inventory.Hardware) (mbps int) {
	for _, p := range hw.Ports {
		mbps = max(mbps, p.SpeedMbps)
	}
	return mbps
}

// accelerators counts those of a vendor, such as 10de, or of one kind, such as 10de:2330.
func accelerators(hw *inventory.Hardware, id string) (n int) {
	id = strings.ToLower(id)
	for _, a := range hw.Accelerators {
		if have := strings.ToLower(a.ID); id == "" || have == id || strings.HasPrefix(have, id+":") {
			n++
		}
	}
	return n
}

// firmware returns how a machine starts, "" when not known.
func firmware(s *Subject) inventory.Firmware {
	if s.hw != nil && s.hw.Firmware.Kind != "" {
		return s.hw.Firmware.Kind
	}
	return s.host.Firmware
}

func isSameFirmware(a, b inventory.Firmware) bool {
	return a == b || a == inventory.UEFIHTTP && b == inventory.UEFI
}

func orUnknown(s string) string {
	if s == "" {
		return "it is not known"
	}
	return "it is " + s
}
