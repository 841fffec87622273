package pxe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// The firmware of a machine with Secure Boot on starts a loader only if db, its list of certificates, has who signed it.
// Microsoft's UEFI CA of 2011 ended in June 2026: shims of before are signed for it, newer ones for that of 2023, some for
// both, and machines trust one of them or both.

// trustedNames are the certificates that a host's firmware trusts, as its fact says; none: not known.
func trustedNames(h *inventory.Host) (names []string) {
	for name := range strings.SplitSeq(h.Facts[inventory.FactSecureBootDB], "; ") {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (l Loaded) signers(name string) []Signer {
	if l.Signers == nil || !l.has(name) {
		return nil
	}
	return l.Signers(name)
}

// refuses reports whether it is known that the firmware does not start a signed file. What is not known is no refusal.
func (q Question) refuses(name string) bool {
	signers := q.Loaded.signers(name)
	return q.SecureBoot == SecureBootOn && len(q.DB) > 0 && len(signers) > 0 && !isTrusted(signers, q.DB)
}

// refusedByDB says which signed loaders are there that the firmware does not start; without a Reason there are none.
func refusedByDB(q Question) Way {
	var refused []string
	for _, name := range firstFiles(q.Arch, q.IsHTTP) {
		if q.Loaded.has(name) && q.refuses(name) {
			refused = append(refused, fmt.Sprintf("%s is signed for %q", name, forWhom(q.Loaded.signers(name))))
		}
	}
	if len(refused) == 0 {
		return Way{}
	}
	return Way{
		Reason: fmt.Sprintf("Secure Boot is on, and its firmware trusts none of the loaders here: it trusts %s, and %s",
			quoted(q.DB), strings.Join(refused[:min(3, len(refused))], ", ")),
		Hint: "put a shim that is signed for one of these into a folder of --loaders; or add the certificate to its firmware, " +
			"which an update of the firmware does, and inspect the host again",
	}
}

// firstFiles are the signed files that firmware of an architecture may be given first.
func firstFiles(a inventory.Arch, isHTTP bool) (names []string) {
	for _, p := range ipxePairs(a) {
		names = append(names, p.shim)
	}
	if !isHTTP {
		for _, p := range shimPairs(a) {
			names = append(names, p.shim)
		}
	}
	for _, l := range Candidates(inventory.UEFI, a) {
		names = append(names, l.Name)
	}
	return names
}

// SecondStage is the file that a shim requests next to itself, "" when the loader is no shim.
func SecondStage(shim string) string {
	for _, a := range []inventory.Arch{inventory.X8664, inventory.ARM64} {
		for _, p := range slices.Concat(ipxePairs(a), shimPairs(a)) {
			if p.shim == shim {
				return p.second
			}
		}
	}
	return ""
}

// SignedFirst are the first files for firmware with Secure Boot on, on x86-64 and arm64.
func SignedFirst() []string {
	return slices.Concat(firstFiles(inventory.X8664, false), firstFiles(inventory.ARM64, false))
}

// IsTrustedBy reports whether one of the authorities signed, or signed for one who did.
func IsTrustedBy(signers []Signer, authorities []string) bool { return isTrusted(signers, authorities) }

// forWhom names the authority behind a signature: who issued the certificate of who signed.
func forWhom(signers []Signer) string {
	var names []string
	for _, s := range signers {
		name := cmp.Or(s.Issuer, s.Name)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

func quoted(names []string) string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, fmt.Sprintf("%q", n))
	}
	return strings.Join(out, ", ")
}

// LoaderTrust returns in words whether a host's firmware trusts its loader; "" if the firmware checks nothing.
func LoaderTrust(c Client, h *inventory.Host, p Plan, loader string) string {
	q := asked{c: c, h: h, p: p}.question(nil)
	if q.SecureBoot != SecureBootOn || loader == "" {
		return ""
	}
	signers := q.Loaded.signers(loader)
	switch {
	case len(q.DB) == 0:
		return "could not be checked: the certificates that its firmware trusts are not known; inspect the host"
	case len(signers) == 0:
		return "could not be checked: who signed " + loader + " cannot be read"
	case isTrusted(signers, q.DB):
		return fmt.Sprintf("yes: it is signed for %q, and its firmware trusts that", forWhom(signers))
	}
	return fmt.Sprintf("no: it is signed for %q, and its firmware trusts %s", forWhom(signers), quoted(q.DB))
}
