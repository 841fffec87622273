package pxe

import (
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

// loadedWith are boot files: those with a star are signed, and shims trust who stands behind =.
func loadedWith(words string) Loaded {
	signed, trusts, all := map[string]bool{}, map[string][]string{}, []string{}
	for _, w := range strings.Fields(words) {
		w, who, _ := strings.Cut(w, "=")
		w, isSigned := strings.CutSuffix(w, "*")
		all, signed[w] = append(all, w), isSigned
		if who != "" {
			trusts[w] = []string{who}
		}
	}
	return Loaded{
		Has:      func(n string) bool { return slices.Contains(all, n) },
		IsSigned: func(n string) bool { return signed[n] },
		Trusts:   func(n string) []string { return trusts[n] },
	}
}

func TestChainFor(t *testing.T) {
	const (
		debian = "snponly.efi ipxe.efi undionly.kpxe shimx64.efi*=DebianCA grubx64.efi*"
		ubuntu = " ubuntu/shimx64.efi*=CanonicalCA ubuntu/grubx64.efi*"
		signed = " ipxe-shimx64.efi* ipxe.efi*"
	)
	canonical := []Signer{{"Canonical Signing", "CanonicalCA"}}
	for _, tt := range []struct {
		name   string
		q      Question
		loaded string
		want   string // chain and loader
		why    string
	}{
		{"nothing is known of Secure Boot: iPXE, for its HTTP", Question{}, debian, "ipxe snponly.efi", ""},
		{"Secure Boot is off", Question{SecureBoot: SecureBootOff}, debian + signed, "ipxe snponly.efi", ""},
		{"Secure Boot is on: the distribution's shim", Question{SecureBoot: SecureBootOn}, debian, "shim-grub shimx64.efi", ""},
		{"Secure Boot is on: signed iPXE goes before GRUB", Question{SecureBoot: SecureBootOn}, debian + signed, "shim-ipxe ipxe-shimx64.efi", ""},
		{"a signed shim beside an unsigned iPXE is no chain", Question{SecureBoot: SecureBootOn}, debian + " ipxe-shimx64.efi*", "shim-grub shimx64.efi", ""},
		{"snponly's shim asks for ipxe.efi, which nobody signed", Question{SecureBoot: SecureBootOn}, "snponly.efi* ipxe.efi snponly-shimx64.efi* shimx64.efi* grubx64.efi*", "shim-grub shimx64.efi", ""},
		{"it may ask for snponly.efi, which nobody signed", Question{SecureBoot: SecureBootOn}, "snponly.efi ipxe.efi* snponly-shimx64.efi* shimx64.efi* grubx64.efi*", "shim-grub shimx64.efi", ""},
		{"snponly's shim with all that it may ask for", Question{SecureBoot: SecureBootOn}, "snponly.efi* ipxe.efi* snponly-shimx64.efi*", "shim-ipxe snponly-shimx64.efi", ""},
		{"the kernel's signer chooses the shim", Question{SecureBoot: SecureBootOn, Signers: canonical, IsRead: true}, debian + ubuntu, "shim-grub ubuntu/shimx64.efi", ""},
		{"a kernel that nobody has read gets the plain one", Question{SecureBoot: SecureBootOn, Signers: canonical}, debian + ubuntu, "shim-grub shimx64.efi", ""},
		{"a kernel that no shim trusts is told so by the chain it gets", Question{SecureBoot: SecureBootOn, Signers: canonical, IsRead: true}, debian, "shim-grub shimx64.efi", ""},
		{"iPXE was refused twice", Question{IsRefused: true}, debian, "shim-grub shimx64.efi", ""},
		{"refused, and there is nothing else", Question{IsRefused: true}, "snponly.efi", "ipxe snponly.efi", ""},
		{"a shim without its second stage is none", Question{SecureBoot: SecureBootOn}, "snponly.efi shimx64.efi*", " ", "shim-signed"},
		{"iPXE signed with a key of the site's own", Question{SecureBoot: SecureBootOn}, "ipxe.efi*", "ipxe ipxe.efi", ""},
		{"Secure Boot on and nothing signed", Question{SecureBoot: SecureBootOn}, "snponly.efi", " ", "grub-efi-amd64-signed"},
		{"HTTP Boot with Secure Boot needs signed iPXE", Question{Firmware: inventory.UEFIHTTP, IsHTTP: true, SecureBoot: SecureBootOn}, debian + signed, "shim-ipxe ipxe-shimx64.efi", ""},
		{"GRUB cannot go on over HTTP", Question{Firmware: inventory.UEFIHTTP, IsHTTP: true, SecureBoot: SecureBootOn}, debian, " ", "PXE over IPv4"},
		{"HTTP Boot that refused iPXE is sent the same again", Question{Firmware: inventory.UEFIHTTP, IsHTTP: true, IsRefused: true}, debian, "ipxe snponly.efi", ""},
		{"a BIOS knows no Secure Boot", Question{Firmware: inventory.BIOS, SecureBoot: SecureBootOn}, debian, "ipxe undionly.kpxe", ""},
		{"arm64 with an admin's iPXE", Question{Arch: inventory.ARM64}, "ipxe-arm64.efi grubaa64.efi", "ipxe ipxe-arm64.efi", ""},
		{"arm64 with GRUB alone", Question{Arch: inventory.ARM64}, "grubaa64.efi", "grub grubaa64.efi", ""},
		{"arm64 with Secure Boot", Question{Arch: inventory.ARM64, SecureBoot: SecureBootOn}, "shimaa64.efi* grubaa64.efi*", "shim-grub shimaa64.efi", ""},
		{"arm64 with nothing", Question{Arch: inventory.ARM64}, debian, " ", "snponly-arm64.efi"},
		{"32 bits and Secure Boot", Question{Arch: inventory.I386, SecureBoot: SecureBootOn}, debian, " ", "switch Secure Boot off"},
		{"U-Boot asks for its files itself", Question{IsUBoot: true, Arch: inventory.ARM64}, "", "pxelinux ", ""},
		{"a BIOS without iPXE: PXELINUX", Question{Firmware: inventory.BIOS}, "pxelinux.0 ldlinux.c32", "pxelinux pxelinux.0", ""},
		{"a BIOS with both: iPXE, for its HTTP", Question{Firmware: inventory.BIOS}, debian + " pxelinux.0 ldlinux.c32", "ipxe undionly.kpxe", ""},
		{"PXELINUX without the rest of it", Question{Firmware: inventory.BIOS}, "pxelinux.0", " ", "undionly.kpxe"},
		{"no firmware that we know", Question{Firmware: "none"}, debian, " ", "no network boot loader"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.q.Firmware == "" && !tt.q.IsUBoot {
				tt.q.Firmware = inventory.UEFI
			}
			if tt.q.Arch == "" {
				tt.q.Arch = inventory.X8664
			}
			tt.q.Loaded = loadedWith(tt.loaded)
			w := ChainFor(tt.q)
			if got := string(w.Chain) + " " + w.Loader; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if (w.Chain == "") != (w.Reason != "" && w.Hint != "") || !strings.Contains(w.Reason+w.Hint, tt.why) {
				t.Errorf("reason %q, hint %q", w.Reason, w.Hint)
			}
		})
	}
}

func TestAHostThatCannotVerifyItsPayloadIsToldSo(t *testing.T) {
	signatures := func(s ...Signer) func(*Plan) {
		l := loadedWith("shimx64.efi*=DebianCA grubx64.efi* trusted.pem=SiteCA")
		return func(p *Plan) {
			p.Signatures = Signatures{IsSigned: l.IsSigned, Trusts: l.Trusts, OfKernel: func(inventory.Digest) ([]Signer, bool) { return s, true }}
			p.Image.Files = []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: "d"}}
		}
	}
	on := func(h *inventory.Host) { h.Facts = map[string]string{inventory.FactSecureBoot: SecureBootOn} }
	grub := uefi()
	grub.Stage, grub.SecureBoot = StageGRUB, SecureBootOn
	for _, tt := range []struct {
		name string
		c    Client
		h    *inventory.Host
		p    Plan
		want Boot
		why  string
	}{
		{"unsigned", uefi(), host(on), plan(live, signatures()), BootWait, "nobody signed the kernel of image"},
		{"unsigned, as GRUB says it of itself", grub, host(), plan(live, signatures()), BootWait, "signed by DebianCA or SiteCA"},
		{"signed by a stranger", uefi(), host(on), plan(live, signatures(Signer{"Eve", "EveCA"})), BootWait, `signed by "Eve", whom no shim here trusts`},
		{"signed by the distribution", uefi(), host(on), plan(live, signatures(Signer{"Debian Signer", "DebianCA"})), BootImage, ""},
		{"signed with the site's own key", uefi(), host(on), plan(live, signatures(Signer{"SiteCA", "SiteCA"})), BootImage, ""},
		{"Secure Boot off", uefi(), host(), plan(live, signatures()), BootImage, ""},
		{"a BIOS", bios(), host(on), plan(live, signatures()), BootImage, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := Decide(tt.c, tt.h, tt.p, testNow)
			if d.Boot != tt.want || d.IsTrap != (tt.want == BootWait) || !strings.Contains(d.Reason+" | "+d.Hint, tt.why) {
				t.Errorf("got %s, trap %v: %s | %s", d.Boot, d.IsTrap, d.Reason, d.Hint)
			}
		})
	}
}

func TestTheMenuIsOfferedToAcceptedHostsOnly(t *testing.T) {
	menu := func(p *Plan) { p.MenuFor = 5e9 }
	chose := func(c Choice) Client { x := asking(uefi()); x.Choice = c; return x }
	for _, tt := range []struct {
		name string
		c    Client
		h    *inventory.Host
		p    Plan
		want Boot
	}{
		{"off", asking(uefi()), host(), plan(live), BootImage},
		{"on", asking(uefi()), host(), plan(live, menu), BootMenu},
		{"the first question, by DHCP", uefi(), host(), plan(live, menu), BootImage},
		{"somebody chose to go on", chose(ChoiceContinue), host(), plan(live, menu), BootImage},
		{"somebody chose the disk", chose(ChoiceDisk), host(), plan(live, menu), BootDisk},
		{"somebody chose the disk where there is no menu", chose(ChoiceDisk), host(), plan(live), BootImage},
		{"a choice that there is no image for", chose(ChoiceRescue), host(), plan(live, menu), BootWait},
		{"not accepted", asking(uefi()), host(state(inventory.Discovered)), plan(live, menu), BootDisk},
		{"in maintenance", asking(uefi()), host(inMaintenance), plan(live, menu), BootDisk},
		{"adopted", chose(ChoiceRescue), host(adopted), plan(live, menu), BootDisk},
		{"quarantined", asking(uefi()), host(state(inventory.Failed)), plan(live, menu), BootPark},
		{"something is being done with it", asking(uefi()), host(), plan(live, menu, func(p *Plan) { p.Work = &Work{Boot: BootWait, Reason: "wipe"} }), BootWait},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := Decide(tt.c, tt.h, Chosen(tt.c, tt.h, tt.p), testNow); d.Boot != tt.want {
				t.Errorf("got %s (%s), want %s", d.Boot, d.Reason, tt.want)
			}
		})
	}
}

// TestSignedIPXEHasAShimCheckTheKernel holds for a machine of which nothing else is known than that it refused iPXE: older
// iPXE, which came by no signed chain, knows no such command.
func TestSignedIPXEHasAShimCheckTheKernel(t *testing.T) {
	signed := "snponly.efi ipxe.efi* ipxe-shimx64.efi* shimx64.efi* grubx64.efi*"
	for _, c := range []struct {
		name, secure, loaded string
		isRefused, want      bool
	}{
		{"Secure Boot is on", SecureBootOn, signed, false, true},
		{"nothing is known, and iPXE was refused", "", signed, true, true},
		{"nothing is known", "", signed, false, false},
		{"Secure Boot is off", SecureBootOff, signed, true, false},
		{"refused, and there is no signed iPXE", "", "snponly.efi", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := scriptCases()["image"]
			in.Client.Stage, in.Client.SecureBoot = StageIPXE, c.secure
			if c.isRefused {
				in.Host.Facts = map[string]string{inventory.FactLoaderRefused: "snponly.efi"}
			}
			l := loadedWith(c.loaded)
			in.Plan.Loaders = l.Has
			in.Plan.Signatures = Signatures{
				IsSigned: l.IsSigned, Trusts: func(string) []string { return []string{"CA"} },
				OfKernel: func(inventory.Digest) ([]Signer, bool) { return []Signer{{Name: "x", Issuer: "CA"}}, true },
			}
			script, err := Script(in)
			if err != nil || strings.Contains(string(script), "shim --timeout 15000 ") != c.want {
				t.Errorf("a shim is wanted: %v; %v\n%s", c.want, err, script)
			}
		})
	}
}
