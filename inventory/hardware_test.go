package inventory

import (
	"strings"
	"testing"
)

func TestTheLevelOfAProcessorIsToldByItsFlags(t *testing.T) {
	const v1 = "fpu cx8 cmov mmx fxsr sse sse2 "
	const v2 = v1 + "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 "
	const v3 = v2 + "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave "
	for flags, want := range map[string]string{
		v1: CPULevel1, v2: CPULevel2, v3: CPULevel3, v3 + "avx512bw avx512cd avx512dq avx512f avx512vl": CPULevel4,
		v2 + "avx xsave": CPULevel2, "": "", "fpu": "",
	} {
		if got := CPULevelOf(&CPU{Arch: X8664, Flags: strings.Fields(flags)}); got != want {
			t.Errorf("%s is %q, want %q", flags, got, want)
		}
	}
	if got := CPULevelOf(&CPU{Arch: ARM64, Flags: []string{"asimd"}}); got != "" {
		t.Errorf("arm64 has the level %q", got)
	}
	if !IsBelow(CPULevel2, CPULevel3) || IsBelow(CPULevel3, CPULevel3) || IsBelow("", CPULevel3) || IsBelow(CPULevel1, "") {
		t.Error("what is not known is taken for less, or less for enough")
	}
}
