package doctor

import (
	"strings"
	"testing"

	"slipway.dev/slipway/pxe"
)

func TestTheHostsThatTheNextShimLosesAreCounted(t *testing.T) {
	loaders := map[string][]pxe.Signer{"shimx64.efi": {{Name: "Microsoft Windows UEFI Driver Publisher", Issuer: microsoft2011}}}
	hosts := []SecureHost{
		{"old", []string{microsoft2011}},
		{"older", []string{"Microsoft Windows Production PCA 2011", microsoft2011}},
		{"both", []string{microsoft2011, microsoft2023}},
		{"young", []string{microsoft2023}},
		{"unseen", nil},
	}
	var lines []string
	for _, c := range JudgeSecureBoot(hosts, loaders) {
		lines = append(lines, string(c.Status)+": "+c.Detail)
		if c.Hint == "" {
			t.Errorf("%q has no hint", c.Detail)
		}
	}
	got := strings.Join(lines, "\n")
	for _, want := range []string{"1 hosts trust none of the signed loaders here, and do not boot: young", "2 hosts trust Microsoft's certificate of 2011", ": old, older", "of 1 hosts the certificates that their firmware trusts are not known: unseen"} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing says %q:\n%s", want, got)
		}
	}
	if checks := JudgeSecureBoot(hosts[2:3], loaders); len(checks) != 1 || checks[0].Status != OK {
		t.Errorf("a host that trusts both: %v", checks)
	}
	if checks := JudgeSecureBoot(nil, loaders); len(checks) != 0 {
		t.Errorf("no host has Secure Boot on: %v", checks)
	}
}
