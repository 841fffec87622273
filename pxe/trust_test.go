package pxe

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

const (
	ms2011 = "Microsoft Corporation UEFI CA 2011"
	ms2023 = "Microsoft UEFI CA 2023"
)

// signedBy returns loaders that are there, with who signed them: NAME=AUTHORITY, or NAME=AUTHORITY+AUTHORITY.
func signedBy(words string) Loaded {
	signers := map[string][]Signer{}
	for _, w := range strings.Fields(words) {
		name, who, _ := strings.Cut(w, "=")
		signers[name] = nil
		for year := range strings.SplitSeq(who, "+") {
			switch year {
			case "2011":
				signers[name] = append(signers[name], Signer{"Microsoft Windows UEFI Driver Publisher", ms2011})
			case "2023":
				signers[name] = append(signers[name], Signer{"Microsoft UEFI CA 2023 Signing", ms2023})
			case "own":
				signers[name] = append(signers[name], Signer{"Site", "Site"})
			}
		}
	}
	return Loaded{
		Has:      func(n string) bool { _, ok := signers[n]; return ok },
		IsSigned: func(n string) bool { return len(signers[n]) > 0 },
		Signers:  func(n string) []Signer { return signers[n] },
	}
}

func TestALoaderIsChosenThatTheFirmwareTrusts(t *testing.T) {
	const (
		old  = "snponly.efi shimx64.efi=2011 grubx64.efi=own"
		both = old + " ubuntu/shimx64.efi=2023 ubuntu/grubx64.efi=own"
	)
	for _, c := range []struct {
		name, secure, db, loaded string
		want, why                string
	}{
		{"2011 alone, shim of 2011", SecureBootOn, ms2011, old, "shimx64.efi", ""},
		{"2011 alone, both shims", SecureBootOn, ms2011, both, "shimx64.efi", ""},
		{"2023 alone, both shims", SecureBootOn, ms2023, both, "ubuntu/shimx64.efi", ""},
		{"both, both shims", SecureBootOn, ms2011 + "; " + ms2023, both, "shimx64.efi", ""},
		{"2023 alone, shim of 2011", SecureBootOn, ms2023, old, "", `it trusts "Microsoft UEFI CA 2023", and shimx64.efi is signed for "Microsoft Corporation UEFI CA 2011"`},
		{"2011 alone, shim of 2023", SecureBootOn, ms2011, "shimx64.efi=2023 grubx64.efi=own", "", "trusts none of the loaders here"},
		{"a shim that both signed", SecureBootOn, ms2023, "shimx64.efi=2011+2023 grubx64.efi=own", "shimx64.efi", ""},
		{"not known is not no", SecureBootOn, "", old, "shimx64.efi", ""},
		{"a signer that cannot be read is not no", SecureBootOn, ms2023, "snponly.efi shimx64.efi grubx64.efi", "shimx64.efi", ""},
		{"Secure Boot off: nothing is checked", SecureBootOff, ms2023, old, "snponly.efi", ""},
		{"the site's own key", SecureBootOn, "Site", "ipxe.efi=own shimx64.efi=2011 grubx64.efi=own", "ipxe.efi", ""},
		{"iPXE's shim that is not trusted gives way to a shim that is", SecureBootOn, ms2011, "ipxe-shimx64.efi=2023 ipxe.efi=own " + old, "shimx64.efi", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &inventory.Host{Facts: map[string]string{inventory.FactSecureBootDB: c.db}}
			w := ChainFor(Question{
				Firmware: inventory.UEFI, Arch: inventory.X8664, SecureBoot: c.secure, DB: trustedNames(h), Loaded: signedBy(c.loaded),
			})
			if w.Loader != c.want || !strings.Contains(w.Reason, c.why) || c.why != "" && w.Hint == "" {
				t.Errorf("got %+v, want %q because %q", w, c.want, c.why)
			}
		})
	}
}

func TestExplainSaysWhetherTheFirmwareTrustsItsLoader(t *testing.T) {
	l := signedBy("shimx64.efi=2011 grubx64.efi=own")
	p := Plan{Loaders: l.Has, Signatures: Signatures{IsSigned: l.IsSigned, SignersOf: l.Signers}}
	for _, c := range []struct{ secure, db, want string }{
		{SecureBootOn, ms2011, "yes: it is signed for"},
		{SecureBootOn, ms2023, "no: it is signed for"},
		{SecureBootOn, "", "could not be checked: the certificates"},
		{SecureBootOff, ms2011, ""},
	} {
		h := &inventory.Host{Firmware: inventory.UEFI, Facts: map[string]string{inventory.FactSecureBoot: c.secure, inventory.FactSecureBootDB: c.db}}
		got := LoaderTrust(Client{Stage: StageFirmware, Arch: inventory.X8664, Firmware: inventory.UEFI}, h, p, "shimx64.efi")
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s with %q: %q, want %q", c.secure, c.db, got, c.want)
		}
	}
}

func TestEachShimKnowsItsSecondStageOfItsOwnArchitecture(t *testing.T) {
	for _, a := range []inventory.Arch{inventory.X8664, inventory.ARM64} {
		for _, p := range append(ipxePairs(a), shimPairs(a)...) {
			for _, name := range append(p.asksFor(), p.shim) {
				row, ok := LoaderByName(name)
				if !ok || row.Arch != a {
					t.Errorf("%s for %s asks for %s, which is for %q", p.shim, a, name, row.Arch)
				}
			}
			if SecondStage(p.shim) != p.second {
				t.Errorf("%s asks for %s, and not for %q", p.shim, p.second, SecondStage(p.shim))
			}
		}
	}
	if SecondStage("snponly.efi") != "" || !IsAutoexec("arm64/autoexec.ipxe") || !IsLoader("arm64/autoexec.ipxe") || IsAutoexec("x/autoexec.ipxe") {
		t.Error("what is no shim has a second stage, or iPXE on arm64 does not find its script")
	}
}

func TestAnImageForNewerProcessorsIsRefusedBeforeTheTry(t *testing.T) {
	for _, c := range []struct{ needs, has, want string }{
		{"x86-64-v3", "x86-64-v2", "needs a processor of level x86-64-v3, and this machine's is x86-64-v2"},
		{"x86-64-v3", "x86-64-v4", ""},
		{"x86-64-v3", "", ""},
		{"", "x86-64-v1", ""},
	} {
		a := asked{c: Client{Arch: inventory.X8664, Firmware: inventory.UEFI}, h: &inventory.Host{Facts: map[string]string{inventory.FactCPULevel: c.has}}}
		d, isLacking := a.lacking(&inventory.Image{Name: "el10", Arch: inventory.X8664, CPULevel: c.needs})
		if isLacking != (c.want != "") || !strings.Contains(d.Reason, c.want) || isLacking && (!d.IsTrap || d.Boot != BootWait) {
			t.Errorf("%+v: got %+v", c, d)
		}
	}
}
