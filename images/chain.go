package images

import (
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Chain is how an operating system boots with Secure Boot on: who signs its kernel, and which shim trusts them.
type Chain struct {
	// SignedBy are the authorities that sign its kernels, by the names in their certificates; one of them is enough.
	// Without any, its kernels are not signed.
	SignedBy []string `yaml:"signedBy" json:"signedBy"`
	// Loaders is the folder, below one of --loaders, with the shim and the GRUB of the same distribution; "" is those that
	// lie there without a folder, else Debian's packages'.
	Loaders string `yaml:"loaders" json:"loaders,omitempty"`
}

func (c *Chain) check(os string, bad complaint) error {
	if c == nil {
		return nil
	}
	for _, name := range c.SignedBy {
		if name == "" || inventory.Clean(name, 120) != name {
			return bad("%s: chain: %q is not the name of a certificate", os, name).WithHint("write it as: openssl x509 -noout -subject")
		}
	}
	if c.Loaders != "" && !slices.Contains(pxe.VendorFolders(), c.Loaders) {
		return bad("%s: chain: %q is not a folder of loaders", os, c.Loaders).WithHint("use %s, or none", strings.Join(pxe.VendorFolders(), ", "))
	}
	return nil
}

// needs are the files that the chain wants in addition to those of the image.
func (c *Chain) needs(a inventory.Arch) (shim, grub string) {
	end := map[inventory.Arch]string{inventory.X8664: "x64.efi", inventory.ARM64: "aa64.efi"}[a]
	if end == "" {
		return "", ""
	}
	folder := c.Loaders
	if folder != "" {
		folder += "/"
	}
	return folder + "shim" + end, folder + "grub" + end
}

// line says whether a kernel fits its entry's chain, and what machines with Secure Boot on need for it; "" when the
// catalogue knows no chain. loaders may be nil.
func (c *Chain) line(signers []pxe.Signer, a inventory.Arch, loaders *Loaders) string {
	if c == nil {
		return ""
	}
	who := "nobody signed the kernel"
	if len(signers) > 0 {
		who = "the kernel is signed by " + signers[0].Name
	}
	want := strings.Join(c.SignedBy, " or ")
	isAsNamed := slices.ContainsFunc(signers, func(s pxe.Signer) bool {
		return slices.Contains(c.SignedBy, s.Name) || slices.Contains(c.SignedBy, s.Issuer)
	})
	switch {
	case len(c.SignedBy) == 0 && len(signers) == 0:
		return who + ": machines with Secure Boot on do not start it"
	case len(c.SignedBy) == 0:
		return who
	case !isAsNamed:
		return fmt.Sprintf("%s, and the catalogue expects %s: machines with Secure Boot on may not start it", who, want)
	}
	shim, grub := c.needs(a)
	isTrusted := func(name string) bool {
		return loaders != nil && slices.ContainsFunc(loaders.Trusts(name), func(t string) bool { return slices.Contains(c.SignedBy, t) })
	}
	if shim == "" || isTrusted(shim) && loaders.Has(grub) || isTrusted(pxe.TrustedName) {
		return who
	}
	return fmt.Sprintf("%s: machines with Secure Boot on need %s and %s in a folder of --loaders", who, shim, grub)
}

// chainLine says of what an import brought how it fits the chain.
func (p *plan) chainLine(c *Cache) string {
	if p.chain == nil {
		return ""
	}
	for _, f := range p.image.Files {
		if f.Role == inventory.RoleKernel {
			signers, _ := c.Signers(f.Digest)
			return p.chain.line(signers, p.image.Arch, c.cfg.Loaders)
		}
	}
	return ""
}
