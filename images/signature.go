package images

import (
	"errors"

	"slipway.dev/slipway/images/authenticode"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// signatures remembers who signed which artefact, and which is no PE file: content never changes.
type signatures struct {
	byDigest map[inventory.Digest]signature
}

type signature struct {
	signers []pxe.Signer
	isPE    bool
}

const maxRemembered = 1024

// Signers returns the signers of a kernel. ok is false when the artefact is no PE file or cannot be read. The cache
// reads each file once; callers wait for each other meanwhile, because a boot script asks for the same kernel for
// many hosts.
func (c *Cache) Signers(d inventory.Digest) (signers []pxe.Signer, ok bool) {
	c.signedMu.Lock()
	defer c.signedMu.Unlock()
	if s, ok := c.signed.byDigest[d]; ok {
		return s.signers, s.isPE
	}
	f, a, err := c.Open(d)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	signers, err = authenticode.Signers(f, a.SizeBytes)
	ok = err == nil
	if !ok && !errors.Is(err, authenticode.ErrNotPE) {
		return nil, false
	}
	if c.signed.byDigest == nil || len(c.signed.byDigest) >= maxRemembered {
		c.signed.byDigest = map[inventory.Digest]signature{}
	}
	c.signed.byDigest[d] = signature{signers, ok}
	return signers, ok
}
