package inventory

import "slices"

// The levels of x86-64 processors, as the psABI of x86-64 names them; a system may be built for one of them and those above.
const (
	CPULevel1 = "x86-64-v1"
	CPULevel2 = "x86-64-v2"
	CPULevel3 = "x86-64-v3"
	CPULevel4 = "x86-64-v4"
)

// CPULevels returns all levels, the lowest first.
func CPULevels() []string { return []string{CPULevel1, CPULevel2, CPULevel3, CPULevel4} }

// levelFlags are what each level adds, as Linux names it in /proc/cpuinfo. It calls lzcnt abm, and lahf and sahf lahf_lm.
var levelFlags = [][]string{
	{"cmov", "cx8", "fpu", "fxsr", "mmx", "sse", "sse2"},
	{"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
	{"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"},
	{"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"},
}

// CPULevelOf returns the level of an x86-64 processor by its flags; "" when nobody has told them.
func CPULevelOf(c *CPU) string {
	if c.Arch != X8664 && c.Arch != "" || len(c.Flags) == 0 {
		return ""
	}
	level := ""
	for i, flags := range levelFlags {
		for _, f := range flags {
			if !slices.Contains(c.Flags, f) {
				return level
			}
		}
		level = CPULevels()[i]
	}
	return level
}

// TooOld says why an image does not run on a processor of a level, nil when it does or when nobody knows.
func (i *Image) TooOld(level string) *Error {
	if i == nil || !IsBelow(level, i.CPULevel) {
		return nil
	}
	return Errorf(Conflict, "image %s needs a processor of level %s, and this machine's is %s", i.Name, i.CPULevel, level).
		WithHint("give it an older release, or another build of the system for %s", level)
}

// IsBelow reports whether a processor of a level cannot run what is built for another. A level that is not known is not
// below any.
func IsBelow(have, want string) bool {
	i, j := slices.Index(CPULevels(), have), slices.Index(CPULevels(), want)
	return i >= 0 && j >= 0 && i < j
}
