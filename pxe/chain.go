package pxe

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Chain is a way from firmware to a kernel: the loader for the firmware, and the next one that this loader fetches.
type Chain string

// The chains.
const (
	ChainIPXE     Chain = "ipxe"      // an iPXE that nobody signed, or that is signed with a key the firmware knows
	ChainShimIPXE Chain = "shim-ipxe" // iPXE's signed shim, signed iPXE, autoexec.ipxe
	ChainShimGRUB Chain = "shim-grub" // a distribution's signed shim, its signed GRUB, grub.cfg
	ChainGRUB     Chain = "grub"      // GRUB without a shim
	ChainPXELinux Chain = "pxelinux"  // PXELINUX, or U-Boot, which needs no loader: both ask for pxelinux.cfg
)

// What is known of Secure Boot on a host, as the fact inventory.FactSecureBoot.
const (
	SecureBootOn  = "on"
	SecureBootOff = "off"
)

// Signer is who signed a PE file, and who signed for them: the common names of certificate and issuer.
type Signer struct {
	Name, Issuer string
}

// Loaded has facts of the boot files. A function may be nil: then there are no files, or nothing is known of them.
type Loaded struct {
	Has func(name string) bool
	// IsSigned reports whether somebody signed the file.
	IsSigned func(name string) bool
	// Trusts returns the authorities that a shim accepts besides the firmware's own.
	Trusts func(name string) []string
	// Signers returns who signed the file.
	Signers func(name string) []Signer
}

func (l Loaded) has(name string) bool      { return l.Has != nil && l.Has(name) }
func (l Loaded) isSigned(name string) bool { return l.IsSigned != nil && l.IsSigned(name) }

// isUnsigned reports whether a file is there and nobody signed it.
func (l Loaded) isUnsigned(name string) bool { return l.has(name) && !l.isSigned(name) }

func (l Loaded) trusts(name string) []string {
	if l.Trusts == nil || !l.has(name) {
		return nil
	}
	return l.Trusts(name)
}

// pair is a shim and the second stage that it asks for next to itself.
type pair struct{ shim, second string }

// shimPairs returns a distribution's shim with its GRUB for each folder of the table; the plain names come first.
func shimPairs(a inventory.Arch) []pair {
	end := map[inventory.Arch]string{inventory.X8664: "x64.efi", inventory.ARM64: "aa64.efi"}[a]
	if end == "" {
		return nil
	}
	all := []pair{{"shim" + end, "grub" + end}}
	for _, folder := range VendorFolders() {
		all = append(all, pair{folder + "/shim" + end, folder + "/grub" + end})
	}
	return all
}

// Question is the input of ChainFor.
type Question struct {
	Firmware   inventory.Firmware
	Arch       inventory.Arch
	IsHTTP     bool     // the firmware fetches URLs
	IsUBoot    bool     // no firmware at all: U-Boot asks for pxelinux.cfg
	SecureBoot string   // SecureBootOn, SecureBootOff or "": not known
	IsRefused  bool     // unsigned loaders were sent before, and nothing followed
	DB         []string // whose signatures the firmware accepts; none: not known
	Signers    []Signer
	IsRead     bool // Signers are what the kernel's file says; false: there is no kernel, or nobody has read it
	Loaded     Loaded
}

// Way is the answer of ChainFor. If there is no Chain, Reason and Hint have the cause.
type Way struct {
	Chain  Chain
	Loader string
	Reason string
	Hint   string
}

// ChainFor chooses the chain. Without Secure Boot iPXE comes first, for its HTTP. A machine that checks signatures gets
// signed files only; of several shims, it gets the one that trusts the signer of its kernel.
func ChainFor(q Question) Way {
	switch {
	case q.IsUBoot:
		return Way{Chain: ChainPXELinux}
	case q.Firmware != inventory.UEFI && q.Firmware != inventory.UEFIHTTP || q.SecureBoot != SecureBootOn && !q.IsRefused:
		if w := unsignedChain(q); w.Chain != "" {
			return w
		}
		return Way{Reason: "no boot file", Hint: missingLoader(Candidates(q.Firmware, q.Arch))}
	}
	if w := signedChain(q); w.Chain != "" {
		return w
	}
	if q.SecureBoot != SecureBootOn { // refused by whatever reason: better the same again than nothing
		return unsignedChain(q)
	}
	if w := refusedByDB(q); w.Reason != "" {
		return w
	}
	if q.IsHTTP {
		return Way{
			Reason: "Secure Boot is on, and Debian's signed GRUB cannot go on over HTTP",
			Hint:   "choose PXE over IPv4 in its firmware's boot order, or put iPXE's signed ipxe-shim" + archEnd(q.Arch) + " and ipxe.efi into a folder named with --loaders",
		}
	}
	return Way{Reason: "Secure Boot is on, and there is no signed boot file for it", Hint: missingSigned(q.Arch)}
}

// unsignedChain is iPXE, or where there is none GRUB under UEFI and PXELINUX under BIOS.
func unsignedChain(q Question) Way {
	for _, l := range Candidates(q.Firmware, q.Arch) {
		if q.Loaded.has(l.Name) {
			return Way{Chain: ChainIPXE, Loader: l.Name}
		}
	}
	if q.Firmware == inventory.BIOS && q.Arch == inventory.X8664 && q.Loaded.has(PXELINUXName) && q.Loaded.has(ldlinuxName) {
		return Way{Chain: ChainPXELinux, Loader: PXELINUXName}
	}
	if q.Firmware != inventory.UEFI || q.IsHTTP {
		return Way{}
	}
	for _, p := range shimPairs(q.Arch) {
		if q.Loaded.has(p.second) {
			return Way{Chain: ChainGRUB, Loader: p.second}
		}
	}
	return Way{}
}

func signedChain(q Question) Way {
	for _, p := range ipxePairs(q.Arch) {
		if q.Loaded.has(p.shim) && q.Loaded.has(p.second) && !q.refuses(p.shim) && !slices.ContainsFunc(p.asksFor(), q.Loaded.isUnsigned) {
			return Way{Chain: ChainShimIPXE, Loader: p.shim}
		}
	}
	var found []pair
	for _, p := range shimPairs(q.Arch) {
		if !q.IsHTTP && q.Loaded.has(p.shim) && q.Loaded.has(p.second) && !q.refuses(p.shim) {
			found = append(found, p)
		}
	}
	for _, p := range found {
		if q.IsRead && isTrusted(q.Signers, q.Loaded.trusts(p.shim)) {
			return Way{Chain: ChainShimGRUB, Loader: p.shim}
		}
	}
	if len(found) > 0 {
		return Way{Chain: ChainShimGRUB, Loader: found[0].shim}
	}
	for _, l := range Candidates(q.Firmware, q.Arch) { // signed with a key of the site's own
		if q.Loaded.has(l.Name) && q.Loaded.isSigned(l.Name) && !q.refuses(l.Name) {
			return Way{Chain: ChainIPXE, Loader: l.Name}
		}
	}
	return Way{}
}

// asksFor are the names that one of iPXE's shims may ask for: of snponly-shimx64.efi, releases differ.
func (p pair) asksFor() []string {
	if folder, name := path.Split(p.shim); strings.HasPrefix(name, "snponly") {
		return []string{p.second, folder + "snponly.efi"}
	}
	return []string{p.second}
}

// ipxePairs are iPXE's signed shims, with the second stage that each asks for: snponly-shimx64.efi, too, asks for ipxe.efi.
func ipxePairs(a inventory.Arch) []pair {
	switch a {
	case inventory.X8664:
		return []pair{{"snponly-shimx64.efi", "ipxe.efi"}, {"ipxe-shimx64.efi", "ipxe.efi"}}
	case inventory.ARM64:
		return []pair{{arm64Folder + "snponly-shimaa64.efi", arm64Folder + "ipxe.efi"}, {arm64Folder + "ipxe-shimaa64.efi", arm64Folder + "ipxe.efi"}}
	}
	return nil
}

// isTrusted reports whether one of the authorities signed, or signed for one who did.
func isTrusted(signers []Signer, authorities []string) bool {
	return slices.ContainsFunc(signers, func(s Signer) bool {
		return slices.Contains(authorities, s.Name) || slices.Contains(authorities, s.Issuer)
	})
}

// authorities are all that any shim for that architecture accepts, and what the site has put in addition to them.
func authorities(l Loaded, a inventory.Arch) (all []string) {
	for _, p := range shimPairs(a) {
		all = append(all, l.trusts(p.shim)...)
	}
	if l.Trusts != nil {
		all = append(all, l.Trusts(TrustedName)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// untrusted says why a machine with Secure Boot on would refuse a kernel; "" when it would not, or nobody knows.
func untrusted(q Question, image string) (reason, hint string) {
	all := authorities(q.Loaded, q.Arch)
	if q.SecureBoot != SecureBootOn || !q.IsRead || isTrusted(q.Signers, all) {
		return "", ""
	}
	who := "nobody signed the kernel of image " + image
	if len(q.Signers) > 0 {
		who = fmt.Sprintf("the kernel of image %s is signed by %q, whom no shim here trusts", image, q.Signers[0].Name)
	}
	hint = "use an image whose kernel is signed, or switch Secure Boot off in its firmware's setup"
	if len(all) > 0 {
		hint = "use an image whose kernel is signed by " + strings.Join(all, " or ") + ", or switch Secure Boot off in its firmware's setup"
	}
	return "Secure Boot is on, and " + who, hint
}

func archEnd(a inventory.Arch) string {
	if a == inventory.ARM64 {
		return "aa64.efi"
	}
	return "x64.efi"
}

func missingSigned(a inventory.Arch) string {
	p := shimPairs(a)
	if len(p) == 0 {
		return "switch Secure Boot off in its firmware's setup"
	}
	hint := "put " + p[0].shim + " and " + p[0].second + " into a folder named with --loaders"
	if a == inventory.X8664 {
		hint = "install Debian's packages shim-signed and grub-efi-amd64-signed, or " + hint
	}
	return hint
}

// chainOf is the chain that a loader begins, as far as its name tells.
func chainOf(loader string) Chain {
	switch base := loader[strings.LastIndexByte(loader, '/')+1:]; {
	case base == PXELINUXName:
		return ChainPXELinux
	case strings.Contains(base, "-shim"):
		return ChainShimIPXE
	case strings.HasPrefix(base, "shim"):
		return ChainShimGRUB
	case strings.HasPrefix(base, "grub"):
		return ChainGRUB
	}
	return ChainIPXE
}

// usesShim reports whether iPXE is to have a shim check the kernel: where signatures are checked, or may be because
// iPXE came by a signed chain. Older iPXE, which cannot, comes by no such chain.
func usesShim(in ScriptInput, i *inventory.Image) bool {
	a := asked{c: in.Client, h: in.Host, p: in.Plan}
	q := a.question(i)
	a.quirk = QuirkFor(in.Plan.Quirks, in.Host, q.Firmware)
	return q.SecureBoot == SecureBootOn || q.SecureBoot == "" && a.withLoader(Decision{Boot: BootImage}).Chain == ChainShimIPXE
}

// shimFor is the shim that iPXE has check an image's kernel, "" for none.
func shimFor(in ScriptInput, i *inventory.Image) string {
	q := asked{c: in.Client, h: in.Host, p: in.Plan}.question(i)
	for _, p := range shimPairs(q.Arch) {
		if q.IsRead && isTrusted(q.Signers, q.Loaded.trusts(p.shim)) && !q.refuses(p.shim) {
			return p.shim
		}
	}
	return ""
}
